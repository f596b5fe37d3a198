"""A module's state in parts: each section is saved, checked and restored by itself."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from core.weights.container import read, write
from core.weights.document import NAME, SECTIONS, digest, sealed
from core.weights.refusal import Stage, WeightsRefused
from core.weights.state import load_state, restore, restore_optimizer, save_state, sections_of

X = np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32)


class Model(nnx.Module):
    def __init__(self, rngs, width=4):
        self.linear = nnx.Linear(3, width, rngs=rngs)
        self.norm = nnx.BatchNorm(width, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.drop(self.norm(self.linear(x)))


def forward(model):
    return {"y": model(X)}


def trained(steps=3, seed=0):
    """A model in the middle of training, and its optimizer's state."""
    model = Model(nnx.Rngs(seed))
    model.train()
    tx = optax.adam(1e-2)
    moments = tx.init(nnx.state(model, nnx.Param))
    for _ in range(steps):
        gradients = nnx.grad(lambda m: jnp.sum(m(X) ** 2))(model)
        updates, moments = tx.update(gradients, moments, nnx.state(model, nnx.Param))
        nnx.update(model, optax.apply_updates(nnx.state(model, nnx.Param), updates))
    return model, tx, moments


def fresh(seed=9):
    model = Model(nnx.Rngs(seed))
    model.train()
    return model


def parts(model):
    return {name: section.digest for name, section in sections_of(model).items()}


@pytest.fixture
def model_tx_moments():
    return trained()


@pytest.fixture
def data(model_tx_moments):
    model, _, moments = model_tx_moments
    return save_state(model, forward, optimizer=moments, seed=0)


def test_the_four_sections_are_in_the_file_each_with_its_hash(data, model_tx_moments):
    stored = load_state(data)
    assert set(stored.sections) == set(SECTIONS)
    assert stored.seed == 0
    assert set(stored.sections["batch_stats"].leaves) == {"norm.mean", "norm.var"}
    assert stored.sections["rng"].variables["drop.rngs.key"].startswith("RngKey ")
    assert stored.sections["rng"].leaves["drop.rngs.count"] == 3
    assert len({section.digest for section in stored.sections.values()}) == 4
    own = parts(model_tx_moments[0])
    assert {name: stored.sections[name].digest for name in own} == own


@pytest.mark.parametrize("section", ["params", "batch_stats", "rng"])
def test_restoring_one_section_leaves_the_others(data, section, model_tx_moments):
    model = fresh()
    before, wanted = parts(model), parts(model_tx_moments[0])
    assert all(before[name] != wanted[name] for name in before)
    restore(model, load_state(data), section, forward)
    after = parts(model)
    assert after[section] == wanted[section]
    assert {n: d for n, d in after.items() if n != section} == {n: d for n, d in before.items() if n != section}


def test_all_sections_together_go_on_exactly_where_it_stopped(data, model_tx_moments):
    model, tx, moments = model_tx_moments
    other = fresh()
    stored = load_state(data)
    for section in ("params", "batch_stats", "rng"):
        restore(other, stored, section, forward)
    again = restore_optimizer(tx.init(nnx.state(other, nnx.Param)), stored)
    assert jax.tree.structure(again) == jax.tree.structure(moments)
    assert all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(moments), strict=True))
    assert np.array_equal(model(X), other(X))  # the same mask of dropout: key and count came back
    assert np.array_equal(model(X), other(X))


def test_saving_and_restoring_draw_nothing_from_the_models_own_keys(data, model_tx_moments):
    assert model_tx_moments[0].drop.rngs.count[...] == 3
    model = fresh()
    restore(model, load_state(data), "params", forward)
    assert model.drop.rngs.count[...] == 0


def test_an_nnx_optimizer_is_restored_in_place():
    model = fresh(0)
    optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
    optimizer.update(model, nnx.grad(lambda m: jnp.sum(m(X) ** 2))(model))
    stored = load_state(save_state(model, forward, optimizer=optimizer))
    other = nnx.Optimizer(fresh(0), optax.adam(1e-2), wrt=nnx.Param)
    assert other.step[...] == 0
    assert restore_optimizer(other, stored) is other
    assert other.step[...] == 1
    ours, theirs = (jax.tree.leaves(nnx.state(o)) for o in (optimizer, other))
    assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))


def test_an_optimizer_of_another_kind_is_refused_and_named(data):
    with pytest.raises(WeightsRefused) as caught:
        restore_optimizer(optax.sgd(0.1, momentum=0.9).init(nnx.state(fresh(), nnx.Param)), load_state(data))
    assert caught.value.stage is Stage.LEAVES
    assert "trace" in str(caught.value)


def test_a_file_without_an_optimizer_says_what_it_has():
    model, _, moments = trained(1)
    with pytest.raises(WeightsRefused) as caught:
        restore_optimizer(moments, load_state(save_state(model, forward)))
    assert "params, batch_stats, rng" in str(caught.value)


def test_a_module_of_another_width_is_refused_and_stays(data):
    model = Model(nnx.Rngs(9), width=5)
    model.train()
    before = parts(model)
    with pytest.raises(WeightsRefused) as caught:
        restore(model, load_state(data), "params", forward)
    assert caught.value.stage is Stage.LEAVES
    assert "[4]" in str(caught.value)
    assert parts(model) == before


def test_a_module_without_dropout_is_refused(data):
    with pytest.raises(WeightsRefused) as caught:
        restore(nnx.Linear(3, 4, rngs=nnx.Rngs(0)), load_state(data), "params", lambda m: m(X))
    assert caught.value.stage is Stage.LEAVES


def spoilt(data, tensor, change, *, rehash):
    container = read(data)
    tensors, document = dict(container.tensors), json.loads(container.metadata[NAME])
    tensors[tensor] = change(np.array(tensors[tensor]))
    if rehash:
        section = tensor.split("/")[0]
        own = {t.removeprefix(f"{section}/"): a for t, a in tensors.items() if t.startswith(f"{section}/")}
        document["sections"][section]["sha256"] = digest(own)
    return write(tensors, {NAME: sealed(document)})


@pytest.mark.parametrize(
    "tensor", ["params/linear.kernel", "batch_stats/norm.mean", "rng/drop.rngs.count", "optimizer/[0].count"]
)
def test_each_section_fails_its_own_hash(data, tensor):
    with pytest.raises(WeightsRefused) as caught:
        load_state(spoilt(data, tensor, lambda a: (a + 1).astype(a.dtype), rehash=False))
    assert caught.value.stage is Stage.HASH
    assert caught.value.leaf == tensor.split("/")[0]


@pytest.mark.parametrize("tensor", ["params/linear.kernel", "rng/drop.rngs.count"])
def test_a_section_with_a_new_hash_fails_the_control_and_nothing_moves(data, tensor):
    stored = load_state(spoilt(data, tensor, lambda a: (a + 1).astype(a.dtype), rehash=True))
    model = fresh()
    before = parts(model)
    with pytest.raises(WeightsRefused) as caught:
        restore(model, stored, "batch_stats", forward)
    assert caught.value.stage is Stage.CONTROL
    assert parts(model) == before


def test_a_nan_statistic_is_refused(data):
    with pytest.raises(WeightsRefused) as caught:
        load_state(spoilt(data, "batch_stats/norm.var", lambda a: a * np.nan, rehash=True))
    assert caught.value.stage is Stage.FINITE


def test_another_forward_is_noticed(data):
    stored = load_state(data)
    for wrong in (lambda m: {"z": m(X)}, lambda m: {"y": m(X) + 1}):
        with pytest.raises(WeightsRefused) as caught:
            restore(fresh(), stored, "params", wrong)
        assert caught.value.stage is Stage.CONTROL


def test_a_variable_of_no_section_is_not_left_out_silently():
    class Counts(nnx.Variable):
        pass

    class Odd(nnx.Module):
        def __init__(self):
            self.seen = Counts(jnp.zeros(2))

    with pytest.raises(ValueError, match="seen"):
        sections_of(Odd())


def test_no_other_section_can_be_asked_for(data):
    with pytest.raises(ValueError):
        restore(fresh(), load_state(data), "optimizer", forward)
