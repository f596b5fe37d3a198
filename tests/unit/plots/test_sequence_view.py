"""The Sequence page's figure: where carries stand on the axis of time, what is drawn of them, and in which words."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.sequences import Direction, Masking, SequenceResult
from core.contract.subject import SequenceTrial
from core.plots.sequence_axis import edges, pieces, runs, skipped
from core.plots.sequence_traces import spread
from core.plots.sequence_view import Chosen, sequence_view
from core.runners.sequence import run_sequence
from core.runners.sequence_read import visiting


def trial(**changes) -> SequenceTrial:
    data = np.sin(np.arange(3 * 6 * 2, dtype=np.float32)).reshape(3, 6, 2)
    base = SequenceTrial("LSTMCell", data, "BTF", 4, masking=Masking.LENGTHS, lengths=(6, 4, 2))
    return replace(base, **changes)


@pytest.fixture(scope="module")
def forward() -> SequenceResult:
    return run_sequence(trial())


def direction(order: np.ndarray) -> Direction:
    length, batch = order.shape
    zeros = np.zeros((length, batch, 1), np.float32)
    carry = np.zeros((length + 1, batch, 1), np.float32)
    return Direction((carry,), zeros, {}, order, np.ones_like(order, bool), (carry[-1],))


@given(st.integers(1, 9), st.lists(st.integers(-3, 12), min_size=1, max_size=4), st.booleans())
@settings(max_examples=60)
def test_each_carry_has_an_edge_of_its_own(length: int, lengths: list[int], backwards: bool) -> None:
    order = visiting(length, len(lengths), np.array(lengths), backwards)
    for example, steps in enumerate(lengths):
        at = edges(direction(order), example)
        assert sorted(at.tolist()) == list(range(length + 1))
        if not backwards:
            assert at.tolist() == list(range(length + 1))
        elif length > 1 and 1 <= steps <= length:
            assert at[: steps + 1].tolist() == list(range(steps, -1, -1))


def test_a_reversed_line_breaks_between_init_and_padding() -> None:
    result = run_sequence(trial(reverse=True))
    at = edges(result.forward, 1)
    assert pieces(at) == [[4, 3, 2, 1, 0], [6, 5]]
    (line,) = [t for t in sequence_view(result, Chosen(1, 2, 0)).figure["data"] if t.get("marker")][:1]
    assert line["x"] == [0, 1, 2, 3, 4, None, 5, 6]
    assert line["marker"]["symbol"][4] == "circle-open"


def test_runs_and_padding_columns(forward: SequenceResult) -> None:
    assert runs(np.array([1, 1, 0, 1, 0, 0, 1], bool)) == [(0, 2), (3, 4), (6, 7)]
    assert skipped(forward.forward, 2).tolist() == [False, False, True, True, True, True]


def test_points_carry_their_position_and_unit(forward: SequenceResult) -> None:
    view = sequence_view(forward, Chosen(0, 3, 2))
    values = forward.forward.carries[0]
    lines = [t for t in view.figure["data"] if t.get("yaxis") == "y2"]
    assert len(lines) == 2, "the other units are one trace"
    for line in lines:
        for x, y, point in zip(line["x"], line["y"], line["customdata"], strict=True):
            if point is not None:
                position, unit = point
                assert x == position
                assert y == pytest.approx(values[position, 0, unit], rel=1e-5)
    assert {p[1] for p in lines[0]["customdata"] if p} == {0, 1, 3}
    assert {p[1] for p in lines[1]["customdata"] if p} == {2}


def test_a_heatmap_has_a_row_for_each_unit_and_pale_padding(forward: SequenceResult) -> None:
    data = sequence_view(forward, Chosen(2, 1, 0), heatmap=True).figure["data"]
    real, pale = [t for t in data if t["type"] == "heatmap" and t["yaxis"] == "y2"]
    assert len(real["z"]) == 4
    assert [v is None for v in real["z"][0]] == [False, False, False, True, True, True, True]
    assert [v is None for v in pale["z"][0]] == [True, True, True, False, False, False, False]
    assert real["zmax"] == -real["zmin"] == pale["zmax"]
    assert real["customdata"][3][2] == [2, 3]


def test_gates_stand_at_the_carry_that_their_step_made(forward: SequenceResult) -> None:
    data = sequence_view(forward, Chosen(0, 1, 1)).figure["data"]
    gates = [t for t in data if t.get("yaxis") == "y4"]
    assert len(gates) == 4
    assert gates[0]["x"] == [1, 2, 3, 4, 5, 6]
    assert gates[0]["y"] == pytest.approx(forward.forward.gates["i"][:, 0, 1].tolist(), rel=1e-5)
    assert len({t["line"]["dash"] for t in gates}) == 4


def test_words_and_table_say_the_numbers(forward: SequenceResult) -> None:
    view = sequence_view(forward, Chosen(1, 4, 1))
    assert view.alt.startswith("LSTMCell, example 1, forward, t = 0 to 6.")
    assert "all 4 units lie between" in view.alt
    assert "The gates of unit 1: i from" in view.alt
    assert view.table["t"] == list(range(7))
    assert view.table["part of it"] == [None, True, True, True, True, False, False]
    assert view.table["c[1]"] == forward.forward.carries[0][:, 1, 1].astype(float).tolist()
    assert view.table["f[1]"][0] is None


def test_a_second_run_is_dashed_and_under_the_first(forward: SequenceResult) -> None:
    other = run_sequence(trial(hidden_features=2))
    data = sequence_view(forward, Chosen(0, 1, 3), second=other).figure["data"]
    dashes = [t["line"]["dash"] for t in data if t.get("yaxis") == "y2" and "dash" in t["line"]]
    assert dashes == ["dash", "solid"]


def test_what_is_not_finite_is_a_gap_and_said() -> None:
    data = trial().inputs.copy()
    data[0, 2, 0] = np.nan
    view = sequence_view(run_sequence(trial(inputs=data)), Chosen(0, 5, 0))
    assert any(a["text"] == "not finite from here" and a["x"] == 3 for a in view.figure["layout"]["annotations"])
    line = next(t for t in view.figure["data"] if t.get("marker"))
    assert line["y"][3:] == [None] * 4
    said = [a for a in view.figure["layout"]["annotations"] if a["text"] == "not finite from here"]
    assert len(said) == 1, "c and h are NaN from the same t on: said once, with a line in both panels"
    assert (
        sum(
            s.get("x0") == s.get("x1") == 3 and s["line"].get("dash") == "dot"
            for s in view.figure["layout"]["shapes"]
            if "line" in s
        )
        >= 2
    )


@pytest.mark.parametrize("kind", ["GRUCell", "SimpleCell"])
@pytest.mark.parametrize("length", [0, 1])
def test_other_cells_and_short_sequences_are_drawn(kind: str, length: int) -> None:
    result = run_sequence(
        trial(kind=kind, inputs=np.zeros((3, length, 2), np.float32), masking=Masking.NONE, lengths=None)
    )
    for heatmap in (False, True):
        view = sequence_view(result, Chosen(9, 9, 9, 1), heatmap=heatmap)
        assert view.figure["data"]
        assert len(view.positions) == length + 1


def test_what_is_chosen_comes_into_range(forward: SequenceResult) -> None:
    assert Chosen(9, 99, 9, 1).within(forward) == Chosen(2, 6, 3, 0)
    assert Chosen(-1, -1, -1, 0).within(forward) == Chosen()


def test_many_units_are_cut_and_the_chosen_one_stays() -> None:
    result = run_sequence(trial(hidden_features=80))
    view = sequence_view(result, Chosen(0, 1, 79), heatmap=True)
    heat = next(t for t in view.figure["data"] if t["type"] == "heatmap")
    assert len(heat["z"]) == 64
    assert heat["customdata"][-1][0][1] == 79
    assert view.notes == ("64 of 80 units are drawn.",)


@given(st.lists(st.floats(-0.5, 1.5), min_size=1, max_size=5))
def test_names_of_gates_do_not_lie_on_each_other(places: list[float]) -> None:
    out = spread(places, 0.16)
    assert all(-1e-9 <= p <= 1 + 1e-9 for p in out)
    ordered = sorted(out)
    assert all(b - a >= 0.16 - 1e-9 for a, b in pairwise(ordered))
