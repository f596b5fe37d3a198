"""L308: initialize_carry is given another shape than one input's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.contract.record import CellEvents, recording
from core.contract.subject import ScanCall
from tests.support.capture import capture
from tests.unit.contract.cell_support import (
    CELLS,
    PAIR_CELLS,
    built,
    clean,
    mended,
    note,
    raised,
    run,
    silent,
    some,
    step_of,
    trial,
)

XS = some(5, 2, 3)


# --- direct calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("steps", [2, 5])
def test_the_shape_of_the_sequence(cell: type, steps: int) -> None:
    places = Places({"carry_shape": Field("lstm_input_shape", "input_shape"), "input": Field("lstm_input", "input")})
    subject = trial(cell, input_shape=(steps, 2, 3), places=places)
    assert run(subject)[1].shape == (steps, 2, 4)
    violation = silent(subject, "L308")
    assert violation.message == (
        f"initialize_carry was given ({steps}, 2, 3), but one step takes float32[2,3]: the carry is "
        f"float32[{steps},2,4], with axes that one step does not have."
    )
    assert violation.place == Field("lstm_input_shape", "input_shape")
    assert violation.because is not None
    assert violation.because.place == Field("lstm_input", "input")
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (float(steps), 1.0)
    for kind in ("input_shape", "carry_shape"):
        np.testing.assert_allclose(run(mended(subject, "L308", kind))[1], run(trial(cell))[1])


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("given", [(2,), (3,), ()], ids=["(B,)", "(F,)", "()"])
def test_a_shape_without_a_batch(cell: type, given: tuple[int, ...]) -> None:
    subject = trial(cell, input_shape=given)
    violation = silent(subject, "L308")
    assert "without the batch axes of one step" in violation.message
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (2.0, 1.0)
    clean(mended(subject, "L308", "input_shape"), notes=())


@pytest.mark.parametrize("cell", CELLS)
def test_a_shape_that_does_not_broadcast(cell: type) -> None:
    subject = trial(cell, input_shape=(2, 5, 3))
    raised(subject, "L308")
    clean(mended(subject, "L308", "input_shape"), notes=())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("given", "words", "fixed"),
    [
        ([2, 3], "[2, 3]", True),
        (some(2, 3), "an array float32[2,3]", True),
        (2, "2", False),
        (None, "nothing", False),
        ((2.0, 3), "(2.0, 3)", False),
    ],
)
def test_what_is_no_shape_raises(cell: type, given: Any, words: str, fixed: bool) -> None:
    subject = trial(cell, input_shape=given)
    violation = raised(subject, "L308")
    assert violation.message.startswith(f"initialize_carry was given {words} for input_shape")
    assert bool(violation.fixes) is fixed
    if fixed:
        assert mended(subject, "L308", "input_shape").input_shape == (2, 3)


def test_nothing_shared_is_a_note() -> None:
    subject = trial(sizes=(3, 4, 1), input_shape=(3,))
    note(subject, "L308")
    assert run(subject)[1].shape == (1, 4)


# --- scans ----------------------------------------------------------------------------------------------------------


def initialised(cell: Any, shape: tuple[int, ...]) -> tuple[Any, CellEvents]:
    """A carry from `initialize_carry`, and the record of it."""
    events = CellEvents()
    with recording(events):
        return cell.initialize_carry(shape, nnx.Rngs(1)), events


@pytest.mark.parametrize("cell", CELLS)
def test_the_shape_of_the_sequence_is_silent_in_a_scan_too(cell: type) -> None:
    layer = built(cell)
    init, events = initialised(layer, XS.shape)
    call = ScanCall(step_of(layer), init, XS, earlier=events)
    assert run(call)[1].shape == (5, 5, 2, 4)
    silent(call, "L308")
    assert run(mended(call, "L308", "carry_shape"))[1].shape == (5, 2, 4)


@pytest.mark.parametrize("cell", CELLS)
def test_a_carry_without_batch_raises_in_a_scan(cell: type) -> None:
    layer = built(cell)
    init, events = initialised(layer, (3,))
    call = ScanCall(step_of(layer), init, XS, earlier=events)
    raised(call, "L308")
    right = ScanCall(call.step, initialised(layer, (2, 3))[0], XS)
    np.testing.assert_allclose(run(mended(call, "L308", "carry_shape"))[1], run(right)[1])


def test_in_a_script() -> None:
    captured = capture(
        "import jax, jax.numpy as jnp\n"
        "from jax.lax import scan\n"
        "from flax import nnx\n"
        "frames = jnp.ones((7, 2, 3))\n"
        "gru = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))\n"
        "memory = gru.initialize_carry(frames.shape, nnx.Rngs(1))\n"
        "final, out = scan(lambda h, x: gru(h, x), memory, frames)\n"
    )
    assert captured.error is None
    violation, *rest = captured.violations()
    assert [v.code for v in rest if v.code.startswith("L")] == []
    assert (violation.code, violation.place.line, violation.because.place.line) == ("L308", 6, 7)


# --- near misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_shapes_that_fit_what_is_stepped(cell: type) -> None:
    clean(trial(cell), notes=())
    clean(trial(cell, input_shape=(3,), inputs=some(3)), notes=())
    clean(trial(cell, input_shape=(5, 2, 3), inputs=some(5, 2, 3)), notes=())
    clean(trial(cell, input_shape=(np.int64(2), 3)), notes=())


@pytest.mark.parametrize("cell", CELLS)
def test_the_last_number_does_not_matter(cell: type) -> None:
    clean(trial(cell, input_shape=(2, 4)), notes=())
    clean(trial(cell, input_shape=(2, 0)), notes=())


@pytest.mark.parametrize("cell", CELLS)
def test_a_carry_that_is_made_to_fit(cell: type) -> None:
    def first(c: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf[0], c)

    clean(trial(cell, input_shape=(5, 2, 3), carry=first), notes=())


@pytest.mark.parametrize("cell", CELLS)
def test_scans_that_step_what_was_initialised_for(cell: type) -> None:
    layer = built(cell)
    for shape, xs in [((2, 3), XS), ((3,), some(5, 3)), ((2, 6, 3), some(5, 2, 6, 3))]:
        init, events = initialised(layer, shape)
        clean(ScanCall(step_of(layer), init, xs, earlier=events), notes=())
    init, events = initialised(layer, (5, 2, 3))
    kept = jax.tree.map(lambda leaf: leaf[0], init)
    clean(ScanCall(step_of(layer), kept, XS, earlier=events), notes=())
    assert isinstance(init, tuple) is (cell in PAIR_CELLS)
    assert jnp.shape(jax.tree.leaves(kept)[0]) == (2, 4)
