"""What the Scan page draws and says of an evaluation."""

from __future__ import annotations

import json

import pytest

from core.inputs.scan_check import evaluate
from core.inputs.scan_fields import follow, opening
from core.plots.scan_view import flow_mark, full, player_data, result_rows, summary
from core.steps.library import FAULTY, STEPS


def looked(step: str, **edits):
    return evaluate(follow(opening(step), edits))


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("running_sum", "final carry 6 · ys [1, 3, 6]"),
        ("running_variance", "final carry count 8, mean 5, squares 32 · ys mean"),
        ("fibonacci", "final carry a 55, b 89 · ys [0, 1, 1, 2, 3, 5, …]"),
        ("tanh_rnn", "ys float32[6,4]"),
    ],
)
def test_summary(step, words):
    found = looked(step)
    text = summary(found.result, found.step.leaves)
    assert words in text
    assert len(text) < 170


def test_summary_of_a_reversed_scan_keeps_the_order_of_xs():
    found = looked("running_sum", reverse=True)
    assert summary(found.result, {}) == "final carry 6 · ys [6, 5, 3]"
    assert result_rows(found.result)[1] == ("ys", "ys", "float32[3]", "[6, 5, 3]")


@pytest.mark.parametrize("step", STEPS)
def test_every_step_has_data_for_the_player(step):
    found = evaluate(opening(step))
    data = player_data(found, chart="chart")
    json.dumps(data)
    assert (data["broken"] is None) == (found.result is not None)
    assert data["follow"] == [{"key": "chart", "axis": "carry"}]


@pytest.mark.parametrize(
    ("step", "edits", "where"),
    [
        ("grows", {}, "carry"),
        ("no_pair", {}, "step"),
        ("running_sum", {"as_list": True}, "xs"),
        ("running_sum", {"length_argument": "9"}, "length"),
        ("running_sum", {"source": "generate", "length": 10**9}, "length"),
    ],
)
def test_what_breaks_is_drawn_where_it_breaks(step, edits, where):
    mark = flow_mark(looked(step, **edits).report)
    assert mark.where == where
    assert "`" not in mark.label


def test_a_kept_contract_has_no_mark():
    assert flow_mark(looked("running_sum").report) is None
    assert flow_mark(None) is None


def test_values_in_full_and_in_short():
    import numpy as np

    assert full(np.float32(0.1)) == "0.1"
    assert full(np.arange(3)) == "[0, 1, 2]"
    assert "..." in full(np.ones(1000, np.float32))
    assert full(np.array([np.nan, np.inf], np.float32)) == "[nan, inf]"


def test_keys_are_shown_as_what_they_are():
    rows = result_rows(looked("random_walk").result)
    assert rows[0][:3] == ("final carry", "carry", "float32[]")


@pytest.mark.parametrize("step", [step.id for step in FAULTY if step.right])
def test_a_broken_step_stands_for_the_loop_of_the_step_that_keeps_the_contract(step):
    """What breaks is marked in the diagram; the loop and the number of leaves are those of the scan that was meant."""
    broken = player_data(evaluate(opening(step)), chart="chart")
    kept = player_data(evaluate(opening(STEPS[step].right)), chart="chart")
    assert broken["broken"] is not None
    assert broken["T"] == kept["T"]
    assert {**broken["counts"], "y": 0} == {**kept["counts"], "y": 0}  # a broken step may return another y
    assert [line for line in broken["loop"] if line["phase"] != "done"] == [
        line for line in kept["loop"] if line["phase"] != "done"
    ]


def test_a_broken_scan_over_no_xs_says_so():
    data = player_data(evaluate(opening("list_for_tuple")), chart="chart")
    text = [line["text"].strip() for line in data["loop"]]
    assert "carry, ys = jax.tree.map(jnp.asarray, init), []" in text
    assert "for _ in range(10):" in text
    assert "carry, y = step(carry, None)" in text
    assert data["counts"] == {"carry": 2, "x": 0, "y": 1}


def test_a_broken_scan_in_reverse_is_the_reversed_loop():
    data = player_data(looked("grows", reverse=True), chart="chart")
    assert "for x in xs[::-1]:" in [line["text"] for line in data["loop"]]
