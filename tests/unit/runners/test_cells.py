import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.runners import cells
from core.runners.cache import PROGRAMS, count_compiles
from core.runners.cell_formulas import KINDS, formula_step, gate_weights
from core.runners.cells import run_step

ALL = tuple(KINDS)
PAIRS = tuple(name for name, kind in KINDS.items() if kind.pair)


def built(name="LSTMCell", features=3, hidden=4, seed=0):
    return KINDS[name].cell(features, hidden, rngs=nnx.Rngs(seed))


def drawn(cell, batch=2, seed=1):
    shape = (batch, cell.in_features)
    return cell.initialize_carry(shape, rngs=nnx.Rngs(seed), carry_init=nnx.initializers.normal(1.0))


def noise(batch=2, features=3, seed=7):
    return jnp.asarray(np.random.default_rng(seed).standard_normal((batch, features)), jnp.float32)


def sigmoid(z):
    return 1 / (1 + np.exp(-np.float64(z)))


# --- the guide's case -------------------------------------------------------------------------------------------------


def test_the_case_of_the_guide():
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    carry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
    step = run_step(cell, carry, jnp.ones((2, 3)))
    assert [part.shape for part in step.before] == [(2, 4), (2, 4)]
    assert [part.shape for part in step.after] == [(2, 4), (2, 4)]
    assert step.output.shape == (2, 4)
    assert step.finite
    assert not np.asarray(step.before).any()
    (new_c, new_h), output = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))(carry, jnp.ones((2, 3)))
    np.testing.assert_allclose(step.after[0], new_c, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(step.after[1], new_h, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(step.output, output, rtol=1e-5, atol=1e-6)
    assert np.array_equal(step.output[0], step.output[1]), "both examples are ones"


@pytest.mark.parametrize("name", ALL)
def test_values_are_those_of_the_real_cell(name):
    cell, x = built(name), noise()
    carry = drawn(cell)
    new_carry, output = built(name)(carry, x)
    step = run_step(cell, carry, x)
    want = new_carry if KINDS[name].pair else (new_carry,)
    for got, real in zip((*step.after, step.output), (*want, output), strict=True):
        np.testing.assert_allclose(got, real, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_four_ways_agree_within_the_stated_tolerance(name):
    step = run_step(built(name), drawn(built(name)), noise())
    for way in (step.numpy, step.eager, step.vmap):
        assert way is not None
        assert way.within
        assert (way.tolerance.rtol, way.tolerance.atol) == (1e-5, 1e-6)
        assert way.largest < 1e-6


# --- gates ------------------------------------------------------------------------------------------------------------


def test_the_gates_are_the_cells_own_and_in_their_order():
    cell, x = built(), noise()
    c, h = drawn(cell)
    step = run_step(cell, (c, h), x)
    assert [gate.name for gate in step.gates] == ["i", "f", "g", "o"]
    layers = {"i": (cell.ii, cell.hi), "f": (cell.if_, cell.hf), "g": (cell.ig, cell.hg), "o": (cell.io, cell.ho)}
    for gate in step.gates:
        layer_x, layer_h = layers[gate.name]
        pre = np.float64(x) @ layer_x.kernel[...] + np.float64(h) @ layer_h.kernel[...] + layer_h.bias[...]
        np.testing.assert_allclose(gate.pre, pre, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(gate.value, np.tanh(pre) if gate.name == "g" else sigmoid(pre), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PAIRS)
def test_gates_and_carry_make_the_new_carry(name):
    step = run_step(built(name), drawn(built(name)), noise())
    i, f, g, o = (np.float64(gate.value) for gate in step.gates)
    c, h = step.after
    np.testing.assert_allclose(c, f * step.before[0] + i * g, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(h, o * np.tanh(np.float64(c)), rtol=1e-5, atol=1e-6)
    assert np.array_equal(step.output, h)


def test_gates_of_a_gru_make_its_new_state():
    step = run_step(built("GRUCell"), drawn(built("GRUCell")), noise())
    r, z, n = (np.float64(gate.value) for gate in step.gates)
    from_x, from_h = (np.float64(a) for a in (step.gates[2].from_x, step.gates[2].from_h))
    np.testing.assert_allclose(n, np.tanh(from_x + step.gates[2].bias + r * from_h), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(step.output, (1 - z) * n + z * step.before[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_shares_of_x_and_h_and_the_bias_add_up(name):
    cell = built(name)
    for layer in (getattr(cell, "dense_h", None), getattr(cell, "dense_i", None), getattr(cell, "hf", None)):
        if layer is not None and layer.bias is not None:
            layer.bias[...] = jnp.linspace(-1.0, 1.0, layer.bias[...].shape[0])
    step = run_step(cell, drawn(cell), noise())
    for gate in step.gates:
        if gate.name != "n":  # there r comes in between
            np.testing.assert_allclose(gate.from_x + gate.from_h + gate.bias, gate.pre, rtol=1e-5, atol=1e-6)
    assert step.numpy.within


def test_both_lstms_have_one_formula_and_the_same_numbers_for_the_same_weights():
    plain, packed = built("LSTMCell"), built("OptimizedLSTMCell")
    w = gate_weights(KINDS["LSTMCell"], plain)
    packed.dense_i.kernel[...] = jnp.concatenate([w[g].kernel_x for g in "ifgo"], axis=1)
    packed.dense_h.kernel[...] = jnp.concatenate([w[g].kernel_h for g in "ifgo"], axis=1)
    carry, x = drawn(plain), noise()
    one, other = run_step(plain, carry, x), run_step(packed, carry, x)
    np.testing.assert_allclose(one.output, other.output, rtol=1e-5, atol=1e-6)


# --- the checks can fail ----------------------------------------------------------------------------------------------


def test_a_wrong_formula_is_told(monkeypatch):
    def forgets_nothing(kind, weights, carry, inputs):
        right = formula_step(kind, weights, carry, inputs)
        return type(right)({**right.gates, "f": np.ones_like(right.gates["f"])}, right.carry, right.output)

    monkeypatch.setattr(cells, "formula_step", forgets_nothing)
    step = run_step(built(), drawn(built()), noise())
    assert not step.numpy.within
    assert step.numpy.largest > 0.1
    assert step.eager.within


def test_a_cell_that_answers_differently_without_jit_is_told():
    class Fickle(nnx.LSTMCell):
        def __call__(self, carry, inputs):
            (c, h), y = super().__call__(carry, inputs)
            return (c, h), y if isinstance(y, jax.core.Tracer) else y + 1e-3

    Fickle.__name__ = "LSTMCell"
    step = run_step(Fickle(3, 4, rngs=nnx.Rngs(0)), drawn(built()), noise())
    assert not step.eager.within
    assert step.eager.largest == pytest.approx(1e-3, rel=1e-2)


# --- wrong ways that JAX is silent about ------------------------------------------------------------------------------


def test_one_array_for_the_pair_unpacks_along_the_batch():
    cell, h = built(), noise(2, 4)
    step = run_step(cell, h, noise())
    assert np.array_equal(step.before[0], np.broadcast_to(h[0], (2, 4)))
    assert np.array_equal(step.before[1], np.broadcast_to(h[1], (2, 4)))
    assert step.vmap is None
    assert [str(leaf) for leaf in step.carry] == ["float32[2,4]"]


def test_a_carry_of_batch_one_is_shared():
    cell = built()
    step = run_step(cell, drawn(cell, batch=1), noise())
    assert [part.shape for part in step.before] == [(2, 4), (2, 4)]
    assert np.array_equal(step.before[0][0], step.before[0][1])
    assert step.vmap is None
    assert step.numpy.within


def test_a_carry_with_a_time_axis_makes_an_output_with_one():
    cell = built()
    carry = cell.initialize_carry((5, 2, 3), rngs=nnx.Rngs(1))
    step = run_step(cell, carry, noise())
    assert step.examples == (5, 2)
    assert step.gates[0].value.shape == (5, 2, 4)


def test_a_bfloat16_carry_is_widened():
    cell = built()
    carry = jax.tree.map(lambda part: part.astype(jnp.bfloat16), drawn(cell))
    step = run_step(cell, carry, noise())
    assert [str(leaf) for leaf in step.carry] == ["bfloat16[2,4]"] * 2
    assert [str(leaf) for leaf in step.new_carry] == ["float32[2,4]"] * 2
    assert step.numpy.within


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_run_and_are_said(value):
    cell = built()
    step = run_step(cell, drawn(cell), noise().at[0, 1].set(value))
    assert np.isnan(step.output[0]).any() or not np.isnan(value)
    assert step.finite == (not np.isnan(step.output).any())
    assert np.isfinite(step.output[1]).all()
    assert step.numpy.within, "NaN stands at the same places"


def test_what_the_cell_raises_is_raised():
    cell = built()
    with pytest.raises(TypeError):
        run_step(cell, drawn(cell, batch=3), noise())
    with pytest.raises(ValueError, match="unpack"):
        run_step(cell, noise(3, 4), noise(3))


def test_a_cell_of_another_kind_is_refused():
    with pytest.raises(KeyError):
        run_step(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), jnp.zeros((2, 4)), noise())


# --- programs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_moving_values_and_seeds_compiles_nothing(name):
    def one(seed):
        cell = built(name, seed=seed)
        return run_step(cell, drawn(cell, seed=seed + 1), noise(seed=seed))

    assert one(0).output.shape == (2, 4)
    with count_compiles() as compiles:
        steps = [one(seed) for seed in range(1, 6)]
    assert compiles.count == 0
    assert not any(step.compiled for step in steps)
    assert len({step.output.tobytes() for step in steps}) == 5


def test_a_new_size_says_that_it_compiled():
    PROGRAMS.clear()
    cell = built(hidden=6)
    assert run_step(cell, drawn(cell), noise()).compiled
    assert not run_step(cell, drawn(cell), noise()).compiled


def test_types_of_everything():
    cell = built()
    step = run_step(cell, drawn(cell), noise())
    types = {leaf.path: str(leaf) for leaf in (*step.parameters, *step.carry, *step.new_carry, step.result)}
    assert types["cell.ii.kernel"] == "float32[3,4]"
    assert types["cell.hf.kernel"] == "float32[4,4]"
    assert types["cell.ho.bias"] == "float32[4]"
    assert types["carry[0]"] == types["new_carry[1]"] == types["output"] == "float32[2,4]"
    assert len(step.parameters) == 12


def test_the_formula_refuses_shapes_that_do_not_fit():
    cell = built()
    weights = gate_weights(KINDS["LSTMCell"], cell)
    with pytest.raises(ValueError, match="matmul"):
        formula_step(KINDS["LSTMCell"], weights, (np.zeros((2, 4)), np.zeros((2, 5))), np.ones((2, 3)))
