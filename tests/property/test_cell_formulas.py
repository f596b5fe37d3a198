"""NumPy's formulas and the real cells give the same step, whatever the weights, the carry and the input."""

from functools import cache

import hypothesis.extra.numpy as arrays
import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st

from core.runners.cell_formulas import KINDS, formula_step, gate_weights
from core.runners.cells import parts_of, run_step

#: Numbers small enough that the sums before a curve, of at most seven products, round well below the tolerance.
#: Few sizes, with F ≠ H ≠ B among them and ones: each is compiled once.
SIZES = ((1, 1, 1), (3, 4, 2), (2, 1, 3), (1, 3, 1))


@cache
def template(name, features, hidden):
    return nnx.split(KINDS[name].cell(features, hidden, rngs=nnx.Rngs(0)))


def floats(*shape, width):
    elements = st.floats(-width, width, width=32)
    return arrays.arrays(np.float32, shape, elements=elements)


@st.composite
def cases(draw):
    """(kind, cell with drawn weights and biases, carry, inputs)."""
    name = draw(st.sampled_from(tuple(KINDS)))
    features, hidden, batch = draw(st.sampled_from(SIZES))
    kind = KINDS[name]
    graph, state = template(name, features, hidden)
    leaves, tree = jax.tree.flatten(state)
    weights = [jnp.asarray(draw(floats(*leaf.shape, width=1.0))) for leaf in leaves]
    cell = nnx.merge(graph, jax.tree.unflatten(tree, weights))
    parts = tuple(jnp.asarray(draw(floats(batch, hidden, width=1.5))) for _ in kind.parts)
    return kind, cell, parts if kind.pair else parts[0], jnp.asarray(draw(floats(batch, features, width=1.5)))


@given(cases())
def test_formula_and_cell_agree(case):
    kind, cell, carry, x = case
    step = run_step(cell, carry, x)
    formula = formula_step(kind, gate_weights(kind, cell), tuple(map(np.asarray, parts_of(kind, carry))), np.asarray(x))
    for got, want in zip((*formula.carry, formula.output), (*step.after, step.output), strict=True):
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    for gate in step.gates:
        np.testing.assert_allclose(formula.gates[gate.name], gate.value, rtol=1e-5, atol=1e-6)
    assert step.numpy.within


@given(cases())
def test_eager_jit_and_vmap_agree(case):
    _, cell, carry, x = case
    step = run_step(cell, carry, x)
    assert step.vmap is not None
    assert step.eager.within
    assert step.vmap.within
    assert step.finite


@given(cases())
def test_gates_stay_where_their_curve_puts_them(case):
    _, cell, carry, x = case
    for gate in run_step(cell, carry, x).gates:
        low = 0.0 if gate.curve == "sigmoid" else -1.0
        assert (gate.value >= low).all()
        assert (gate.value <= 1.0).all()


@given(cases(), st.integers(0, 2))
def test_one_example_never_moves_another(case, moved):
    """The batch is a batch: changing one example leaves the others as they are, to the bit."""
    _, cell, carry, x = case
    row = moved % x.shape[0]
    before = run_step(cell, carry, x)
    after = run_step(cell, carry, x.at[row].add(1.0))
    others = [i for i in range(x.shape[0]) if i != row]
    for one, two in zip(before.after, after.after, strict=True):
        assert np.array_equal(one[others], two[others])
