"""L305: the width of the input is not in_features."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest

from core.base.places import Field, Places
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.support.capture import capture
from tests.unit.contract.cell_support import (
    CELLS,
    PAIR_CELLS,
    SIZES,
    built,
    clean,
    mended,
    pair,
    raised,
    run,
    some,
    step_of,
    trial,
)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("width", [1, 4, 5])
def test_another_width_raises(cell: type, width: int) -> None:
    places = Places({"input": Field("lstm_input", "input"), "cell": Field("lstm_cell", "cell")})
    subject = trial(cell, inputs=some(2, width), places=places)
    violation = raised(subject, "L305")
    assert violation.message == f"The input is float32[2,{width}]: its last axis must be in_features, 3."
    assert violation.place == Field("lstm_input", "input")
    assert violation.because is not None
    assert violation.because.place == Field("lstm_cell", "cell")
    assert run(mended(subject, "L305", "input_width"))[1].shape == (2, 4)


@pytest.mark.parametrize("shape", [(5,), (2, 7, 5)])
def test_other_batch_axes(shape: tuple[int, ...]) -> None:
    raised(trial(carry=pair(*shape[:-1], 4), inputs=some(*shape)), "L305")


def test_a_number_as_input() -> None:
    violation = raised(trial(carry=pair(4), inputs=1.0), "L305")
    assert "one number without an axis" in violation.message
    assert violation.fixes == ()


@pytest.mark.parametrize("cell", CELLS)
def test_in_a_scan(cell: type) -> None:
    init: Any = pair(2, 4) if cell in PAIR_CELLS else some(2, 4)
    raised(ScanCall(step_of(built(cell)), init, some(5, 2, 7)), "L305")


def test_in_a_script_with_the_place_of_the_argument() -> None:
    captured = capture(
        "import jax, jax.numpy as jnp\n"
        "from flax import nnx\n"
        "rnn = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))\n"
        "def advance(h, frame):\n"
        "    return rnn(h, jnp.tanh(frame))\n"
        "jax.lax.scan(advance, jnp.zeros((2, 4)), jnp.ones((6, 2, 5)))\n"
    )
    (violation,) = captured.violations()
    assert violation.code == "L305"
    assert captured.source.lines[4][violation.place.col : violation.place.end_col] == "jnp.tanh(frame)"
    assert (violation.place.line, violation.because.place.line) == (5, 3)


def test_a_wrong_width_and_a_wrong_carry_are_two_faults() -> None:
    report = check(trial(carry=some(3, 4), inputs=some(3, 5)))
    assert [v.code for v in report.broken] == ["L301", "L305"]


# --- near misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("sizes", SIZES)
def test_the_right_width(cell: type, sizes: tuple[int, int, int]) -> None:
    clean(trial(cell, sizes), notes=())


@pytest.mark.parametrize("cell", CELLS)
def test_inputs_of_other_kinds(cell: type) -> None:
    clean(trial(cell, inputs=jnp.ones((2, 3), jnp.int32)), notes=())
    clean(trial(cell, inputs=jnp.ones((2, 3), jnp.bfloat16)), notes=())
    clean(trial(cell, inputs=[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), notes=())


def test_the_batch_may_have_the_width_of_anything() -> None:
    clean(trial(sizes=(4, 3, 4)), notes=())
    clean(trial(sizes=(3, 3, 3)), notes=())
