"""N501 on the Sequence page: the first value that is not finite, and where it came from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from core.base.places import Field
from core.contract.engine import check
from core.contract.subject import SequenceTrial
from core.runners.layers import parameters
from tests.unit.contract.sequence_support import HOLES, LENGTHS, MASK, RAGGED, clean, note, only, some, trial

NAN, INF = float("nan"), float("inf")


def with_x(value: float, *places: tuple[int, int, int], **changes: Any) -> SequenceTrial:
    """A trial with a value of x put at (example, t, feature)."""
    it = trial(**changes)
    data = it.inputs.copy()
    for b, t, f in places:
        data[(b, t, f) if it.axes == "BTF" else (t, b, f)] = value
    return replace(it, inputs=data)


@pytest.mark.parametrize("axes", ["BTF", "TBF"])
def test_a_nan_that_came_in_with_x_is_a_note_that_says_so(axes: str) -> None:
    violation = note(with_x(NAN, (1, 2, 1), axes=axes), "N501")
    assert violation.message == (
        "x at t = 2 of example 1, feature 1, is nan, and from step 2 on it is in c of example 1: 36 of the 180 numbers "
        "that come out are NaN or infinite."
    )
    assert violation.place == Field("sequence_source", "source")


def test_the_first_step_and_example_are_named() -> None:
    violation = note(with_x(NAN, (2, 4, 0), (1, 3, 0), (0, 3, 1)), "N501")
    assert violation.message.startswith("x at t = 3 of example 0, feature 1,")


def test_a_reversed_layer_meets_the_last_one_first() -> None:
    violation = note(with_x(NAN, (1, 4, 0), (0, 1, 0), reverse=True, keep_order=True), "N501")
    assert violation.message.startswith("x at t = 4 of example 1")


def test_both_directions_are_looked_at() -> None:
    violation = note(with_x(NAN, (1, 2, 0), bidirectional=True), "N501")
    assert "of the backward direction" not in violation.message
    assert "72 of the 360 numbers" in violation.message


def test_nan_in_padding_reaches_nobody_who_is_told() -> None:
    clean(with_x(NAN, (1, 4, 0), masking=LENGTHS, lengths=RAGGED))
    clean(with_x(NAN, (0, 1, 0), masking=MASK, mask=HOLES))


def test_nan_in_padding_that_nobody_is_told_of() -> None:
    report = check(with_x(NAN, (1, 4, 0), lengths=RAGGED))
    assert [v.code for v in report.violations] == ["L311", "N501"]


def test_infinity_is_worn_down_by_the_gates_and_no_fault() -> None:
    """σ and tanh of an infinity are finite, where no other infinity meets it."""
    clean(with_x(INF, (1, 2, 1), kind="SimpleCell"))


def test_init_that_is_not_finite() -> None:
    c = some(3, 4)
    c[1, 2] = INF
    violation = note(trial(init=(c, some(3, 4, seed=1))), "N501")
    assert violation.message.startswith(
        "init's c of example 1, unit 2, is inf, and from step 0 on it is in c of example 1:"
    )
    assert violation.place == Field("sequence_init", "init")


def test_weights_that_are_not_finite() -> None:
    violation = note(trial(weights={"recurrent_scale": INF}), "N501")
    assert violation.message.startswith("A weight of gate i is ")


def born(kind: str, **way: bool) -> SequenceTrial:
    """Finite x and init whose products overflow both ways: x·W is +∞ and h·W is −∞ at unit 0 of the first gate."""
    it = trial((2, 3, 6, 5), kind=kind, weights={"recurrent_scale": 10.0}, **way)
    weights = next(iter(parameters(it)[0].values()))
    top = np.float32(3e38)
    data = it.inputs.copy()
    first = -1 if way.get("reverse") else 0
    data[1, first] = top * np.sign(np.asarray(weights.kernel_x)[:, 0])
    h = np.zeros((2, 5), np.float32)
    h[1] = -top * np.sign(np.asarray(weights.kernel_h)[:, 0])
    parts = (np.zeros((2, 5), np.float32), h) if kind.endswith("LSTMCell") else (h,)
    return replace(it, inputs=data, init=parts)


@pytest.mark.parametrize(
    ("kind", "way"),
    [("LSTMCell", {}), ("OptimizedLSTMCell", {}), ("SimpleCell", {"reverse": True, "keep_order": True})],
)
def test_a_value_that_is_born_in_the_layer_is_a_warning(kind: str, way: dict[str, bool]) -> None:
    it = born(kind, **way)
    violation = only(it, "N501")
    t = 2 if way else 0
    assert f"of example 1 becomes nan at unit 0 in step {t}. It is born there" in violation.message
    assert "The largest number of x is 3e+38 there; float32 ends at 3.402823e+38." in violation.message
    assert violation.silent
    assert violation.proof is not None
    assert violation.proof.before > 0
    assert violation.proof.expected == 0


def test_a_birth_is_said_before_what_came_in() -> None:
    it = born("LSTMCell")
    data = it.inputs.copy()
    data[0, 0, 0] = NAN
    assert "becomes nan" in only(replace(it, inputs=data), "N501").message


def test_misread_data_are_named_by_their_true_axes() -> None:
    report = check(with_x(NAN, (1, 2, 1), time_major=True))
    (found,) = [v for v in report.violations if v.code == "N501"]
    assert found.message.startswith("x at t = 2 of example 1, feature 1,")
