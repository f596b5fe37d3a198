"""The batch as a grid: which steps are real, which the layer counts, and along which axis it scans."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.base.sequences import Masking, Slip
from core.contract.subject import SequenceTrial
from core.plots.sequence_grid import grid_payload, scan_of
from core.plots.sequence_view import Chosen
from core.runners.sequence import run_sequence


def trial(**changes) -> SequenceTrial:
    data = np.arange(2 * 5 * 1, dtype=np.float32).reshape(2, 5, 1)
    return replace(SequenceTrial("GRUCell", data, "BTF", 3, masking=Masking.LENGTHS, lengths=(5, 3)), **changes)


def states(one: SequenceTrial) -> list[str]:
    return [row["states"] for row in grid_payload(one, None, Chosen())["rows"]]


def test_lengths_make_padding() -> None:
    payload = grid_payload(trial(), None, Chosen())
    assert [row["states"] for row in payload["rows"]] == ["11111", "11100"]
    assert [row["length"] for row in payload["rows"]] == ["5 of 5", "3 of 5"]
    assert payload["used"] == ["1", "0"]
    assert payload["rows"][0]["levels"] == "01234"
    assert payload["rows"][1]["levels"] == "56789"


def test_padding_that_the_layer_counts_is_told_apart() -> None:
    assert states(trial(masking=Masking.NONE)) == ["11111", "111!!"]


@pytest.mark.parametrize(
    ("lengths", "expected"), [((5, 0), "!!!!!"), ((5, 9), "11111"), ((5, -1), "!!!!0"), ((5, 2.5), "11?00")]
)
def test_lengths_that_are_none(lengths: tuple[float, float], expected: str) -> None:
    payload = grid_payload(trial(lengths=lengths), None, Chosen())
    assert payload["rows"][1]["states"] == expected
    assert payload["rows"][1]["bad"]
    assert not payload["rows"][0]["bad"]


def test_a_summed_mask_loses_real_steps() -> None:
    mask = np.array([[1, 0, 1, 1, 1], [1, 1, 1, 1, 1]], bool)
    one = trial(lengths=None, mask=mask, slips=frozenset({Slip.SUMMED_MASK}))
    assert states(one) == ["1!11?", "11111"]
    assert states(trial(lengths=None, mask=mask, masking=Masking.MASK)) == ["10111", "11111"]


@pytest.mark.parametrize(
    ("changes", "way"),
    [
        ({}, "right"),
        ({"reverse": True}, "left"),
        ({"bidirectional": True}, "both"),
        ({"time_major": True}, "down"),
        ({"time_major": True, "reverse": True}, "up"),
        ({"time_major": True, "axes": "TBF"}, "right"),
        ({"axes": "TBF", "bidirectional": True}, "updown"),
    ],
)
def test_the_arrow_runs_where_the_layer_scans(changes: dict, way: str) -> None:
    one = trial(**changes)
    payload = grid_payload(one, None, Chosen())
    assert scan_of(one) == payload["scan"] == way
    assert payload["misread"] == (way in ("down", "up", "updown"))
    assert ("the batch" in payload["scan_text"]) == payload["misread"]
    assert f"axis {int(not one.time_major)}" in payload["scan_text"]


def test_the_chosen_step_is_the_column_it_read() -> None:
    one = trial(reverse=True)
    result = run_sequence(one)
    assert grid_payload(one, result, Chosen(1, 1, 0))["chosen"] == {"row": 1, "column": 2}
    assert grid_payload(one, result, Chosen(1, 0, 0))["chosen"] == {"row": 1, "column": None}


def test_misread_turns_rows_and_columns() -> None:
    one = trial(time_major=True, masking=Masking.NONE, lengths=None)
    chosen = Chosen(4, 2, 0)
    assert grid_payload(one, run_sequence(one), chosen)["chosen"] == {"row": 1, "column": 4}


def test_what_is_not_finite_is_said() -> None:
    data = trial().inputs.copy()
    data[0, 1] = np.inf
    assert grid_payload(trial(inputs=data), None, Chosen())["rows"][0]["levels"][1] == "n"


def test_a_large_batch_is_reduced_to_runs() -> None:
    data = np.ones((20, 100, 1), np.float32)
    payload = grid_payload(trial(inputs=data, lengths=(*range(1, 20), 100)), None, Chosen())
    assert payload["reduced"]
    assert not payload["editable"]
    assert payload["rows"][2]["runs"] == [[0, 3, "1"], [3, 100, "0"]]
    assert "states" not in payload["rows"][2]


def test_a_sequence_without_steps() -> None:
    payload = grid_payload(trial(inputs=np.zeros((2, 0, 1), np.float32), lengths=None), None, Chosen())
    assert payload["rows"][0]["length"] == "no steps"
