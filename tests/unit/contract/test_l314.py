"""L314: the dtype of the carry is not what the cell computes in."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.support.capture import capture
from tests.unit.contract.cell_support import (
    CELLS,
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
BF16 = jnp.bfloat16
#: A cell all in bfloat16; the default initialiser of OptimizedLSTMCell cannot draw in it.
ALL_BF16 = {"dtype": BF16, "param_dtype": BF16, "recurrent_kernel_init": nnx.initializers.normal()}


def carry(cell: type, dtype: Any) -> Any:
    return pair(2, 4, dtype=dtype) if cell in PAIR_CELLS else some(2, 4, seed=1, dtype=dtype)


def cast(dtype: Any) -> Any:
    return lambda tree: jax.tree.map(lambda leaf: leaf.astype(dtype), tree)


# --- direct calls ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", [BF16, jnp.float16, jnp.int32, jnp.bool_])
def test_a_direct_call_promotes_silently(cell: type, dtype: Any) -> None:
    places = Places({"carry": Field("lstm_carry", "carry")})
    subject = trial(cell, carry=carry(cell, dtype), places=places)
    assert {leaf.dtype.name for leaf in jax.tree.leaves(run(subject)[0])} == {"float32"}
    violation = silent(subject, "L314")
    name = jnp.dtype(dtype).name
    label = "carry (c and h)" if cell in PAIR_CELLS else "carry"
    assert violation.message == f"{label}: {name}[2,4] goes into {cell.__name__} and float32 comes back."
    assert violation.place == Field("lstm_carry", "carry")
    assert violation.proof is not None
    assert violation.proof.before == (2.0 if cell in PAIR_CELLS else 1.0)
    fixed = mended(subject, "L314", "carry_dtype", "float32")
    np.testing.assert_allclose(run(fixed)[1], run(subject)[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("which", [0, 1])
def test_one_part_alone(which: int) -> None:
    parts = list(pair(2, 4))
    parts[which] = parts[which].astype(BF16)
    violation = silent(trial(carry=tuple(parts)), "L314")
    assert violation.path == f"carry[{which}]"


def test_the_initialised_carry_cast() -> None:
    clean(mended(trial(carry=cast(BF16)), "L314", "carry_dtype"), notes=())


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype")
def test_a_carry_of_the_cell_itself() -> None:
    """SimpleCell computes in float32 unless told, whatever its parameters are: its own carry does not fit it."""

    class Half(nnx.SimpleCell):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, param_dtype=BF16, recurrent_kernel_init=nnx.initializers.normal(), **kwargs)

    violation = silent(trial(Half), "L314")
    assert violation.message == "carry: bfloat16[2,4] goes into Half and float32 comes back."


# --- scans ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", [BF16, jnp.int32])
def test_a_scan_refuses_the_new_dtype(cell: type, dtype: Any) -> None:
    call = ScanCall(step_of(built(cell)), cast(dtype)(jax.tree.map(jnp.zeros_like, carry(cell, jnp.float32))), XS)
    violation = raised(call, "L314")
    assert violation.path == "carry"
    right = ScanCall(call.step, jax.tree.map(jnp.zeros_like, carry(cell, jnp.float32)), XS)
    np.testing.assert_allclose(run(mended(call, "L314", "carry_dtype"))[1], run(right)[1], rtol=1e-6)


def test_another_leaf_that_changes_is_another_fault() -> None:
    layer = built()

    def step(state: Any, x: Any) -> Any:
        new, y = layer(state[0], x)
        return (new, state[1] + 0.5), y

    report = check(ScanCall(step, (pair(2, 4, dtype=BF16), jnp.int32(0)), XS))
    assert {v.code: v.path for v in report.broken} == {"L314": "carry[0]", "S104": "carry[1]"}
    assert all(v.severity is Severity.ERROR for v in report.broken)


def test_slots_without_a_container() -> None:
    layer = built()

    def step(state: Any, x: Any) -> Any:
        (c, h), y = layer((state["c"], state["h"]), x)
        return {"c": c, "h": h}, y

    c, h = pair(2, 4, dtype=BF16)
    call = ScanCall(step, {"c": c, "h": h}, XS)
    assert raised(call, "L314").message.startswith("carry['c'] (c) and carry['h'] (h): bfloat16[2,4]")
    run(mended(call, "L314", "carry_dtype"))


def test_a_float32_carry_in_a_bfloat16_simple_cell() -> None:
    call = ScanCall(step_of(built(nnx.SimpleCell, **ALL_BF16)), some(2, 4), XS)
    violation = raised(call, "L314")
    assert violation.message == "carry: float32[2,4] goes into SimpleCell and bfloat16 comes back."
    assert run(mended(call, "L314", "carry_dtype", "bfloat16"))[1].dtype == BF16


# --- near misses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_a_cell_all_in_bfloat16(cell: type) -> None:
    class Half(cell):  # type: ignore[misc,valid-type]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **ALL_BF16, **kwargs)

    clean(trial(Half), notes=())
    clean(ScanCall(step_of(built(cell, **ALL_BF16)), carry(cell, BF16), XS), notes=())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("dtype", [BF16, jnp.float16, jnp.int32])
def test_float32_carry_and_other_inputs(cell: type, dtype: Any) -> None:
    clean(trial(cell, inputs=some(2, 3).astype(dtype)), notes=())
    clean(ScanCall(step_of(built(cell)), carry(cell, jnp.float32), XS.astype(dtype)), notes=())


@pytest.mark.parametrize("cell", PAIR_CELLS)
def test_a_float32_carry_stays_float32_in_a_bfloat16_lstm(cell: type) -> None:
    clean(ScanCall(step_of(built(cell, **ALL_BF16)), pair(2, 4), XS), notes=())


def test_numpy_float64_is_float32_to_jax() -> None:
    clean(trial(carry=tuple(np.asarray(p, np.float64) for p in pair(2, 4))), notes=())


@pytest.mark.parametrize("cell", CELLS)
def test_a_step_that_casts_back_on_purpose(cell: type) -> None:
    layer = built(cell)

    def step(state: Any, x: Any) -> Any:
        new, y = layer(state, x)
        return cast(BF16)(new), y

    clean(ScanCall(step, carry(cell, BF16), XS), notes=())


LOOP = """\
import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
h = jnp.zeros((2, 4), jnp.bfloat16)
for x in jnp.ones((3, 2, 3)):
    h, y = cell(h, x)
    {then}
"""


def test_a_python_loop() -> None:
    (violation,) = capture(LOOP.format(then="pass")).violations()
    assert (violation.code, violation.place.line, violation.severity) == ("L314", 6, Severity.WARNING)
    assert capture(LOOP.format(then="h = h.astype(jnp.bfloat16)")).violations() == []
