from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from core.contract.engine import check
from core.contract.facts import ScanFacts, run_trial
from core.contract.record import CELLS
from core.contract.subject import CellTrial, FreshRngs, ScanCall


def test_a_weak_xs_is_weak_in_the_step_as_in_lax_scan() -> None:
    """``jnp.full(3, 2)`` is weak: it takes the carry's dtype, and JAX runs it."""
    call = ScanCall(lambda c, x: (c * x, x), jnp.int8(1), jnp.full(3, 2))
    final, _ = lax.scan(call.step, call.init, call.xs)
    assert final.dtype == jnp.int8
    assert "S104" not in check(call).codes
    assert [str(t) for t in ScanFacts(call).carry_in] == ["int8[]"]
    assert [t.aval.weak for t in ScanFacts(call).x_types if t.aval] == [True]


def test_a_strong_xs_and_keys_stay_strong() -> None:
    xs = {"k": jax.random.split(jax.random.key(0), 2), "x": np.ones(2, np.int32)}
    facts = ScanFacts(ScanCall(lambda c, x: (c + x["x"] * jax.random.normal(x["k"]), None), 0.0, xs))
    assert [(str(t), t.aval.weak) for t in facts.x_types if t.aval] == [("key<fry>[]", False), ("int32[]", False)]
    assert facts.jax is None


# --- a cell whose draws are known -----------------------------------------------------------------------------------


@pytest.mark.parametrize("cell", CELLS)
def test_a_known_cell_stands_for_what_its_constructor_gives(cell):
    given = CellTrial(cell, 3, 5, FreshRngs(7), (2, 3), FreshRngs(1), jnp.ones((2, 3)))
    known, made = run_trial(given), run_trial(given, constructor=True)
    (one,), (other,) = known.builds, made.builds
    assert (one.cell_type, one.in_features, one.hidden_features) == (cell, 3, 5)
    assert type(one.cell) is type(other.cell)
    assert int(one.rngs["default"].count[...]) == int(other.rngs["default"].count[...])
    results = [
        jax.tree.leaves((nnx.state(e.builds[0].cell), e.steps[0].carry, e.steps[0].result)) for e in (known, made)
    ]
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_a_constructor_raises_is_the_constructors_own():
    given = CellTrial(nnx.LSTMCell, 3, -1, FreshRngs(7), (2, 3), FreshRngs(1), jnp.ones((2, 3)))
    (build,) = run_trial(given).builds
    with pytest.raises(type(build.error)):
        nnx.LSTMCell(3, -1, rngs=nnx.Rngs(7))


def test_a_subclass_is_built_by_its_own_constructor():
    class Own(nnx.GRUCell):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.own = True

    given = CellTrial(Own, 3, 5, FreshRngs(7), (2, 3), FreshRngs(1), jnp.ones((2, 3)))
    assert run_trial(given).builds[0].cell.own
