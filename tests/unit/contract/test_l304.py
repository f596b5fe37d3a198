"""L304: the width of the carry is not hidden_features."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from core.contract.subject import ScanCall
from tests.unit.contract.cell_support import (
    CELLS,
    ONE_CELLS,
    PAIR_CELLS,
    built,
    clean,
    mended,
    pair,
    raised,
    run,
    silent,
    some,
    step_of,
    trial,
)

XS = some(5, 2, 3)


def carry(cell: type, *shape: int) -> Any:
    return pair(*shape) if cell in PAIR_CELLS else some(*shape, seed=1)


# --- direct calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("width", [1, 3, 6])
def test_a_carry_of_another_width_raises(cell: type, width: int) -> None:
    subject = trial(cell, carry=carry(cell, 2, width))
    violation = raised(subject, "L304")
    label = "carry (c and h)" if cell in PAIR_CELLS else "carry"
    assert violation.message == (f"The carry's last axis must be hidden_features, 4: {label} float32[2,{width}].")
    assert {str(t) for t in violation.expected} == {"float32[2,4]"}
    for kind in ("carry_shape", "carry_init"):
        assert run(mended(subject, "L304", kind))[1].shape == (2, 4)


@pytest.mark.parametrize("cell", PAIR_CELLS)
@pytest.mark.parametrize("lead", [(2,), ()], ids=["batched", "unbatched"])
def test_a_c_of_width_one_is_silent(cell: type, lead: tuple[int, ...]) -> None:
    subject = trial(cell, carry=(some(*lead, 1), some(*lead, 4)), inputs=some(*lead, 3))
    violation = silent(subject, "L304")
    assert violation.path == "carry[0]"
    assert violation.message.endswith(f"each row is one number, shared by all 4 units of {cell.__name__}.")
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (4.0, 1.0)
    np.testing.assert_allclose(run(subject)[1], run(mended(subject, "L304", "carry_shape"))[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_a_number_for_c_is_silent(cell: type) -> None:
    subject = trial(cell, carry=(0.0, some(2, 4)))
    violation = silent(subject, "L304")
    assert violation.message == "carry[0] (c) is float32[]: one number, shared by all units of all examples."
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (8.0, 1.0)
    np.testing.assert_allclose(run(subject)[1], run(mended(subject, "L304", "carry_shape"))[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_a_number_for_h_raises(cell: type) -> None:
    number = (some(2, 4), 0.0) if cell in PAIR_CELLS else 0.0
    violation = raised(trial(cell, carry=number), "L304")
    assert violation.message.endswith("float32[], one number without an axis.")


@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_one_unit_spread_over_a_wider_c(cell: type) -> None:
    subject = trial(cell, (3, 1, 2), carry=(some(2, 5), some(2, 1)))
    violation = silent(subject, "L304")
    assert violation.message.endswith("hidden_features=1: its one unit is spread over 5.")
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.expected) == (5.0, 1.0)


def test_only_c_or_only_h() -> None:
    assert raised(trial(carry=(some(2, 6), some(2, 4))), "L304").path == "carry[0]"
    assert raised(trial(carry=(some(2, 4), some(2, 6))), "L304").path == "carry[1]"


# --- scans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_in_a_scan(cell: type) -> None:
    call = ScanCall(step_of(built(cell)), carry(cell, 2, 6), XS)
    violation = raised(call, "L304")
    assert violation.path == "carry"
    assert violation.because is not None
    assert "init made carry" in violation.because.text
    assert run(mended(call, "L304", "carry_shape"))[1].shape == (5, 2, 4)


@pytest.mark.parametrize("c", [jnp.zeros((2, 1)), 0.0], ids=["width 1", "a number"])
def test_a_c_that_broadcasts_raises_in_a_scan(c: Any) -> None:
    call = ScanCall(step_of(built()), (c, some(2, 4)), XS)
    violation = raised(call, "L304")
    assert violation.path == "carry[0]"
    assert run(mended(call, "L304", "carry_shape"))[1].shape == (5, 2, 4)


def test_h_grows_where_c_is_too_wide() -> None:
    call = ScanCall(step_of(built(hidden=1)), (some(2, 5), some(2, 1)), XS)
    assert raised(call, "L304").path == "carry[0]"


# --- near misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_the_right_width(cell: type) -> None:
    clean(trial(cell), notes=())
    clean(trial(cell, (3, 1, 2), carry=carry(cell, 2, 1)), notes=())
    clean(trial(cell, (3, 4, 2), carry=carry(cell, 4), inputs=some(3)), notes=())
    clean(ScanCall(step_of(built(cell)), carry(cell, 2, 4), XS), notes=())


@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_one_unit_one_example_and_a_number(cell: type) -> None:
    clean(trial(cell, (3, 1, 1), carry=(0.0, some(1, 1))), notes=())


@pytest.mark.parametrize("cell", ONE_CELLS)
def test_a_stacked_cell_of_another_width(cell: type) -> None:
    one, two = built(cell), built(cell, features=4, hidden=7)

    def step(state: Any, x: Any) -> Any:
        a, y = one(state[0], x)
        b, y = two(state[1], y)
        return (a, b), y

    clean(ScanCall(step, (some(2, 4), some(2, 7)), XS), notes=())
