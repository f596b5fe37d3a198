"""L303: the batch of the carry is not the batch of the input."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.unit.contract.cell_support import (
    CELLS,
    ONE_CELLS,
    PAIR_CELLS,
    SIZES,
    built,
    clean,
    mended,
    note,
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
    """A carry of this cell with arrays of this shape."""
    return pair(*shape) if cell in PAIR_CELLS else some(*shape, seed=1)


# --- direct calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("lead", [(), (1,)], ids=["no batch axis", "batch of one"])
def test_one_state_for_all(cell: type, lead: tuple[int, ...]) -> None:
    subject = trial(cell, carry=carry(cell, *lead, 4))
    violation = silent(subject, "L303")
    label = "carry (c and h)" if cell in PAIR_CELLS else "carry"
    shape = ",".join(map(str, (*lead, 4)))
    assert violation.message == f"All 2 examples share one row of memory: {label} float32[{shape}], input float32[2,3]."
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after, violation.proof.expected) == (2.0, 1.0, 1.0)
    before, after = run(subject), run(mended(subject, "L303", "carry_batch"))
    for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)  # the same numbers, in rows of their own


@pytest.mark.parametrize("sizes", SIZES)
def test_sizes(sizes: tuple[int, int, int]) -> None:
    _, hidden, batch = sizes
    violation = silent(trial(nnx.GRUCell, sizes, carry=some(hidden)), "L303")
    assert violation.proof is not None
    assert violation.proof.before == batch


@pytest.mark.parametrize("which", [0, 1])
def test_only_one_part_of_the_pair(which: int) -> None:
    parts = [some(2, 4), some(2, 4, seed=1)]
    parts[which] = some(1, 4)
    violation = silent(trial(carry=tuple(parts)), "L303")
    assert f"carry[{which}] ({'ch'[which]}) float32[1,4]" in violation.message
    assert violation.path == f"carry[{which}]"
    assert [t.path for t in violation.got] == [f"carry[{which}]"]


@pytest.mark.parametrize("cell", CELLS)
def test_an_input_of_batch_one(cell: type) -> None:
    subject = trial(cell, sizes=(3, 4, 5), inputs=some(1, 3))
    violation = silent(subject, "L303")
    assert violation.message.startswith("All 5 examples share one row of input: input float32[1,3], carry")
    assert [(t.path, str(t)) for t in violation.expected] == [("inputs", "float32[5,3]")]
    assert len(violation.fixes) == 2
    repeated = mended(subject, "L303", "input_batch")
    np.testing.assert_allclose(run(subject)[1], run(repeated)[1], rtol=1e-5, atol=1e-6)
    assert run(mended(subject, "L303", "input_shape"))[1].shape == (1, 4)


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("batch", [3, 5])
def test_batches_that_do_not_broadcast(cell: type, batch: int) -> None:
    subject = trial(cell, carry=carry(cell, batch, 4))
    violation = raised(subject, "L303")
    assert violation.message.startswith("The carry's batch does not fit the input's: carry")
    assert run(mended(subject, "L303", "carry_shape"))[1].shape == (2, 4)


@pytest.mark.parametrize("cell", CELLS)
def test_initialised_for_another_batch(cell: type) -> None:
    places = Places({"carry": Field("lstm_carry", "carry"), "carry_shape": Field("lstm_carry_shape", "input_shape")})
    subject = trial(cell, input_shape=(5, 3), places=places)
    violation = raised(subject, "L303")
    assert violation.place == Field("lstm_carry", "carry")
    assert violation.because is not None
    assert violation.because.place == Field("lstm_carry_shape", "input_shape")
    assert violation.because.text == "initialize_carry made it float32[5,4] here"
    clean(mended(subject, "L303", "input_shape"), notes=())


def test_parts_that_clash_with_each_other() -> None:
    raised(trial(carry=(some(2, 4), some(5, 4)), inputs=some(1, 3)), "L303")


def test_batch_and_width_are_two_faults() -> None:
    report = check(trial(nnx.GRUCell, carry=some(5, 6)))
    assert [v.code for v in report.broken] == ["L303", "L304"]
    assert [fix.remaining for fix in report.broken[1].fixes] == [("L303",), ()]


# --- scans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("lead", [(), (1,)], ids=["no batch axis", "batch of one"])
def test_a_scan_refuses_what_comes_back(cell: type, lead: tuple[int, ...]) -> None:
    init = jax.tree.map(jnp.zeros_like, carry(cell, *lead, 4))
    call = ScanCall(step_of(built(cell)), init, XS)
    violation = raised(call, "L303")
    assert violation.message.startswith("The input float32[2,3] spreads the carry over the batch: carry")
    assert violation.because is not None
    assert "init made carry" in violation.because.text
    right = ScanCall(call.step, jax.tree.map(jnp.zeros_like, carry(cell, 2, 4)), XS)
    np.testing.assert_allclose(run(mended(call, "L303", "carry_batch"))[1], run(right)[1])


@pytest.mark.parametrize("cell", ONE_CELLS)
def test_one_message_where_two_slots_grow(cell: type) -> None:
    layer = built(cell)

    def step(state: Any, x: Any) -> Any:
        h, y = layer(state["h"], x)
        return {"h": h, "n": state["n"] + 1}, y

    violation = raised(ScanCall(step, {"h": jnp.zeros(4), "n": 0}, XS), "L303")
    assert violation.path == "carry['h']"


@pytest.mark.parametrize("cell", CELLS)
def test_an_input_of_batch_one_is_silent_in_a_scan(cell: type) -> None:
    call = ScanCall(step_of(built(cell)), carry(cell, 4, 4), some(5, 1, 3))
    violation = silent(call, "L303")
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (4.0, 1.0)
    repeated = mended(call, "L303", "input_batch")
    assert repeated.xs.shape == (5, 4, 3)
    np.testing.assert_allclose(run(call)[1], run(repeated)[1], rtol=1e-5, atol=1e-6)


def test_an_unbatched_input_in_a_scan() -> None:
    call = ScanCall(step_of(built()), pair(4, 4), {"frame": some(5, 3)}["frame"])
    silent(call, "L303")
    assert mended(call, "L303", "input_batch").xs.shape == (5, 4, 3)


def test_a_carry_with_a_time_axis_is_silent_in_a_scan() -> None:
    call = ScanCall(step_of(built()), pair(5, 2, 4), XS)
    assert run(call)[1].shape == (5, 5, 2, 4)
    violation = silent(call, "L303")
    assert violation.message.startswith("All 10 examples share 2 rows of input")


def test_batches_that_do_not_broadcast_in_a_scan() -> None:
    call = ScanCall(step_of(built()), pair(3, 4), XS)
    violation = raised(call, "L303")
    assert violation.path == "carry"
    assert run(mended(call, "L303", "carry_shape"))[1].shape == (5, 2, 4)


def test_a_step_that_cuts_the_growth_off_is_silent() -> None:
    layer = built(nnx.GRUCell)
    call = ScanCall(lambda h, x: (layer(h, x)[0][:1], None), some(1, 4), XS)
    silent(call, "L303")


# --- notes and near misses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(
    ("lead", "inputs"), [((), (1, 3)), ((1,), (3,)), ((1, 2), (2, 3))], ids=["(H,)", "(1, H)", "(1, 2, H)"]
)
def test_nothing_is_shared(cell: type, lead: tuple[int, ...], inputs: tuple[int, ...]) -> None:
    subject = trial(cell, carry=carry(cell, *lead, 4), inputs=some(*inputs))
    violation = note(subject, "L303")
    assert violation.message.startswith("Nothing is shared")
    fixed = mended(subject, "L303", "carry_batch")
    clean(fixed, notes=())
    np.testing.assert_allclose(np.ravel(run(subject)[1]), np.ravel(run(fixed)[1]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cell", CELLS)
def test_batches_that_agree(cell: type) -> None:
    clean(trial(cell), notes=())
    clean(trial(cell, sizes=(3, 4, 1)), notes=())
    clean(trial(cell, carry=carry(cell, 4), inputs=some(3)), notes=())
    clean(trial(cell, carry=carry(cell, 2, 5, 4), inputs=some(2, 5, 3)), notes=())
    clean(trial(cell, sizes=(4, 4, 4)), notes=())


@pytest.mark.parametrize("cell", CELLS)
def test_scans_whose_batches_agree(cell: type) -> None:
    layer = built(cell)
    clean(ScanCall(step_of(layer), carry(cell, 2, 4), XS), notes=())
    clean(ScanCall(step_of(layer), carry(cell, 4), some(5, 3)), notes=())
    clean(ScanCall(lambda c, x: jax.vmap(layer, in_axes=(0, None))(c, x), carry(cell, 2, 4), some(5, 3)), notes=())
    clean(ScanCall(step_of(layer), carry(cell, 3, 2, 4), some(5, 3, 2, 3)), notes=())
