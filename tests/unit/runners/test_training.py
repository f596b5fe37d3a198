"""One update of a model: each pure function alone, the mode, the stream, and all of it together."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from core.base.training import TrainingSpec
from core.runners.cache import count_compiles
from core.runners.cell_formulas import KINDS
from core.runners.layers import built
from core.runners.training import losses, task, train_once
from core.runners.training_model import DropoutCell, SequenceModel, dropped, forward, gradient, loss, update

INPUTS, TARGETS = task(4, 6, 3)
SPEC = TrainingSpec(INPUTS, TARGETS, hidden_features=5)


def model(kind="LSTMCell", *, train=False):
    made = SequenceModel(KINDS[kind], built(kind, 3, 5, 0), 1, seed=0)
    (made.train if train else made.eval)()
    return nnx.split(made)


# --- dropout --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_dropout_is_flax_s_own(rate):
    key, x = jax.random.key(3), jnp.asarray(INPUTS)
    want = nnx.Dropout(rate)(x, rngs=key)
    assert (dropped(x, 1.0 - rate, key) == want).all()
    compiled = jax.jit(dropped)(x, 1.0 - rate, key)
    assert ((compiled == 0) == (want == 0)).all()
    np.testing.assert_allclose(compiled, want, rtol=1e-6)  # compiled, a division by a number is a product
    assert (dropped(x, 1.0, key) == x).all()


def test_the_wrapper_follows_the_mode_of_its_model():
    cell = DropoutCell(built("GRUCell", 3, 5, 0))
    carry, x, key = jnp.zeros((4, 5)), jnp.asarray(INPUTS[:, 0]), jax.random.key(0)
    plain = cell.cell(carry, x)[0]
    assert (cell(carry, x, keep=0.5, key=key)[0] != plain).any()
    with pytest.raises(ValueError, match="rngs"):
        cell(carry, x, keep=0.5)
    cell.eval()
    assert (cell(carry, x, keep=0.5)[0] == plain).all()
    cell.train()
    assert not cell.deterministic


def test_every_step_drops_other_numbers():
    """One key a pass, split into T: the same x at each step does not lose the same features at each."""
    key = jax.random.key(0)
    masks = np.stack([dropped(jnp.ones((4, 3)), 0.5, k) for k in jax.random.split(key, 6)])
    assert (masks[0] != masks[1]).any()
    graph, params = model(train=True)
    same = jnp.broadcast_to(jnp.ones(3), (1, 6, 3))
    manual, carry = nnx.merge(graph, params), (jnp.zeros((1, 5)), jnp.zeros((1, 5)))
    for k in jax.random.split(key, 6):
        carry, _ = manual.steps.cell(carry, dropped(same[:, 0], 0.5, k))
    np.testing.assert_allclose(forward(graph, params, same, 0.5, key), manual.readout(carry[1]), rtol=1e-5, atol=1e-6)


# --- the pure functions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_forward_is_nnx_rnn_and_the_readout(kind):
    graph, params = model(kind)
    made = nnx.merge(graph, params)
    carry, _ = nnx.RNN(made.steps.cell)(INPUTS, return_carry=True)
    want = made.readout(carry[1] if KINDS[kind].pair else carry)
    np.testing.assert_allclose(forward(graph, params, INPUTS), want, rtol=1e-5, atol=1e-6)


def test_loss_is_the_mean_square():
    graph, params = model()
    want = np.mean((np.asarray(forward(graph, params, INPUTS)) - TARGETS) ** 2)
    np.testing.assert_allclose(loss(graph, params, INPUTS, TARGETS), want, rtol=1e-6)
    assert loss(graph, params, INPUTS, forward(graph, params, INPUTS)) == 0


def test_gradient_is_that_of_differences():
    graph, params = model("GRUCell", train=True)
    key, keep = jax.random.key(1), 1.0
    value, got = gradient(graph, params, INPUTS, TARGETS, keep, key)
    np.testing.assert_allclose(value, loss(graph, params, INPUTS, TARGETS, keep, key), rtol=1e-6)
    leaves, tree = jax.tree.flatten(params)
    data = INPUTS.astype(np.float64), TARGETS.astype(np.float64)
    of = jax.jit(lambda leaves: loss(graph, jax.tree.unflatten(tree, leaves), *data, keep, key))
    with jax.enable_x64(True):
        wide = [np.asarray(leaf, np.float64) for leaf in leaves]
        for i, slope in enumerate(jax.tree.leaves(got)):
            at = np.unravel_index(int(np.argmax(np.abs(slope))), slope.shape)
            moved = [[w.copy() for w in wide] for _ in range(2)]
            moved[0][i][at] += 6e-6
            moved[1][i][at] -= 6e-6
            np.testing.assert_allclose(slope[at], (of(moved[0]) - of(moved[1])) / 1.2e-5, rtol=1e-4, atol=1e-6)


def test_sgd_steps_against_the_gradient():
    params, slopes = {"w": jnp.array([1.0, 2.0])}, {"w": jnp.array([0.5, -1.0])}
    new, _ = update("sgd", 0.1, params, slopes, optax.sgd(0.1).init(params))
    np.testing.assert_allclose(new["w"], [0.95, 2.1])
    assert params["w"].tolist() == [1, 2]


def test_the_first_step_of_adam_is_the_rate_in_the_direction_of_the_sign():
    params, slopes = {"w": jnp.array([1.0, 2.0])}, {"w": jnp.array([0.5, -7.0])}
    state = optax.adam(0.1).init(params)
    new, state = update("adam", 0.1, params, slopes, state)
    np.testing.assert_allclose(new["w"], [0.9, 2.1], rtol=1e-5)
    again, _ = update("adam", 0.1, new, slopes, state)
    np.testing.assert_allclose(again["w"], [0.8, 2.2], rtol=1e-5)
    with pytest.raises(KeyError):
        update("no such", 0.1, params, slopes, state)


# --- one update -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_falls(kind, optimizer):
    step = train_once(replace(SPEC, kind=kind, optimizer=optimizer, learning_rate=0.01))
    assert step.loss_after < step.loss_before
    assert step.finite
    assert step.norm > 0
    assert step.predictions.shape == TARGETS.shape
    assert step.gradients[-1].path.startswith("readout")


def test_it_is_the_pure_functions_one_after_the_other():
    step = train_once(replace(SPEC, train=False))
    graph, params = model()
    before, slopes = gradient(graph, params, INPUTS, TARGETS)
    new, _ = update("sgd", 0.1, params, slopes, optax.sgd(0.1).init(params))
    after = loss(graph, new, INPUTS, TARGETS)
    np.testing.assert_allclose([step.loss_before, step.loss_after], [before, after], rtol=1e-5)
    norms = {
        ".".join(str(k.key) for k in path).removeprefix("steps."): np.linalg.norm(np.ravel(leaf))
        for path, leaf in jax.tree_util.tree_flatten_with_path(nnx.to_pure_dict(slopes))[0]
    }
    assert {leaf.path for leaf in step.gradients} == set(norms)
    for leaf in step.gradients:
        np.testing.assert_allclose(leaf.norm, norms[leaf.path], rtol=1e-4, atol=1e-6)
        assert leaf.finite


def test_use_is_the_same_every_time_and_asks_for_no_key():
    one, two = (train_once(replace(SPEC, train=False, dropout_seed=seed)) for seed in (1, 2))
    assert (one.loss_before, one.loss_after, one.draws) == (two.loss_before, two.loss_after, {"dropout": 0})
    assert (one.predictions == two.predictions).all()
    assert one.mode == "eval"
    none = train_once(replace(SPEC, train=False, dropout_seed=None))
    assert (none.predictions == one.predictions).all()


def test_training_is_the_same_with_the_same_key_and_another_with_another():
    one, again, other = (train_once(replace(SPEC, dropout_seed=seed)) for seed in (1, 1, 2))
    assert (one.predictions == again.predictions).all()
    assert (one.loss_before, one.loss_after) == (again.loss_before, again.loss_after)
    assert (one.predictions != other.predictions).any()
    assert (one.mode, one.draws) == ("train", {"dropout": 1})


def test_training_without_rngs_raises_what_flax_raises():
    with pytest.raises(ValueError, match="rngs") as ours:
        train_once(replace(SPEC, dropout_seed=None))
    with pytest.raises(ValueError) as theirs:
        nnx.Dropout(0.2)(jnp.ones(3))
    assert str(ours.value) == str(theirs.value)


def test_a_rate_of_0_drops_nothing_and_wants_no_rngs():
    none = train_once(replace(SPEC, rate=0.0, dropout_seed=None))
    assert none.mode == "train"
    assert none.loss_before == train_once(replace(SPEC, train=False)).loss_before


def test_a_gradient_that_is_not_finite_is_said():
    inputs = INPUTS.copy()
    inputs[0, 2, 0] = np.nan
    step = train_once(replace(SPEC, inputs=inputs))
    assert not step.finite
    assert not all(leaf.finite for leaf in step.gradients)


def test_many_updates_bring_the_loss_down_and_each_asks_once():
    got = losses(replace(SPEC, rate=0.0, learning_rate=0.05, optimizer="adam"), 30)
    assert got.shape == (31,)
    assert got[-1] < got[0] / 2
    one = losses(SPEC, 1)
    step = train_once(SPEC)
    assert one.tolist() == [step.loss_before, step.loss_after]
    assert (losses(SPEC, 3) == losses(SPEC, 3)).all()
    assert losses(SPEC, 3)[1] != step.loss_after, "the second update drops other numbers"


def test_sliders_compile_nothing():
    train_once(SPEC)
    with count_compiles() as compiles:
        for spec in (
            replace(SPEC, rate=0.5),
            replace(SPEC, learning_rate=0.01),
            replace(SPEC, dropout_seed=9),
            replace(SPEC, inputs=INPUTS * 2, targets=TARGETS + 1),
        ):
            assert not train_once(spec).compiled
    assert compiles.count == 0


def test_the_task_is_to_remember():
    inputs, targets = task(3, 5, 2, seed=4)
    assert (inputs.shape, targets.shape, inputs.dtype) == ((3, 5, 2), (3, 1), np.float32)
    assert (targets[:, 0] == inputs[:, 0, 0]).all()
    assert (task(3, 5, 2, seed=4)[0] == inputs).all()


@pytest.mark.parametrize("kind", list(KINDS))
def test_the_readout_is_drawn_after_the_cell_from_the_same_rngs(kind):
    rngs = nnx.Rngs(7)
    cell = KINDS[kind].cell(3, 5, rngs=rngs)
    readout = nnx.Linear(5, 1, rngs=rngs)
    made = SequenceModel(KINDS[kind], cell, 1, seed=7)
    np.testing.assert_array_equal(made.readout.kernel[...], readout.kernel[...])
    again = nnx.Linear(5, 1, rngs=nnx.Rngs(7))
    assert not np.array_equal(made.readout.kernel[...], again.kernel[...]), "the cell's own first key"
