"""Cells built quickly are Flax's own, to the last bit; changed weights change what they say."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import jax
import numpy as np
import pytest
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st

from core.base.limits import LIMITS
from core.base.sequences import Masking
from core.contract.subject import SequenceTrial
from core.runners import layers, recipe
from core.runners.cache import clear_all, count_compiles
from core.runners.cell_formulas import KINDS, gate_weights
from core.runners.layers import built, cells_of, layer_of, parameters, parts_of_cell, weights_of


def leaves(cell):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state(cell))]


def trial(kind="LSTMCell", hidden=4, **changes):
    inputs = np.random.default_rng(0).normal(size=(2, 3, 3)).astype(np.float32)
    return SequenceTrial(kind, inputs, "BTF", hidden, **changes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("features", "hidden"), [(1, 1), (3, 5), (70, 64), (2, 0), (0, 3)])
def test_the_same_cell_as_flax_builds(kind, features, hidden):
    ours, theirs = built(kind, features, hidden, 7), KINDS[kind].cell(features, hidden, rngs=nnx.Rngs(7))
    assert nnx.split(ours)[0] == nnx.split(theirs)[0]
    for got, want in zip(leaves(ours), leaves(theirs), strict=True):
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)


def test_the_largest_cells_too():
    hidden, features = LIMITS["hidden"].value, LIMITS["features"].value
    ours = built("OptimizedLSTMCell", features, hidden, 0)
    theirs = nnx.OptimizedLSTMCell(features, hidden, rngs=nnx.Rngs(0))
    for got, want in zip(leaves(ours), leaves(theirs), strict=True):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("seed", [0, 999, 1000, 2**32 + 5, -1])
def test_any_seed(seed):
    for got, want in zip(
        leaves(built("GRUCell", 3, 4, seed)), leaves(nnx.GRUCell(3, 4, rngs=nnx.Rngs(seed))), strict=True
    ):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("hidden", "seed"), [(-1, 0), (2.5, 0), ("4", 0), (4, 1.5), (4, None), (4, 2**70)])
def test_nonsense_raises_what_flax_raises(hidden, seed):
    with pytest.raises(Exception) as theirs:  # any: the next line says that ours is the same
        nnx.LSTMCell(3, hidden, rngs=nnx.Rngs(seed))
    with pytest.raises(theirs.type):
        built("LSTMCell", 3, hidden, seed)


def test_without_numbers_that_begin_alike_flax_draws_them_itself():
    with jax.threefry_partitionable(False):
        clear_all()
        want = leaves(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
        got = leaves(built("LSTMCell", 3, 4, 0))
        clear_all()
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_new_hidden_size_compiles_one_program():
    built("LSTMCell", 3, 6, 0)
    with count_compiles() as compiles:
        built("LSTMCell", 3, 23, 0)
        built("LSTMCell", 4, 23, 1)
        built("LSTMCell", 4, 23, 12_345)
    assert compiles.count == 1


def test_a_cell_is_the_callers_own():
    mine = built("SimpleCell", 2, 3, 0)
    mine.dense_i.kernel[...] = np.zeros((2, 3), np.float32)
    assert np.any(built("SimpleCell", 2, 3, 0).dense_i.kernel[...])


def test_small_seeds_are_kept_and_no_others():
    clear_all()
    small = parts_of_cell("SimpleCell", 2, 3, 0)
    assert parts_of_cell("SimpleCell", 2, 3, 0) is small
    large = LIMITS["kept_seed"].value
    mine = parts_of_cell("SimpleCell", 2, 3, large)
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(parts_of_cell, "SimpleCell", 2, 3, large).result() is not mine
    for seed in range(1, LIMITS["kept_cells"].value + 5):
        parts_of_cell("SimpleCell", 2, 3, seed)
    assert len(layers._kept._cells) == LIMITS["kept_cells"].value
    assert parts_of_cell("SimpleCell", 2, 3, 0) is not small
    clear_all()
    assert not layers._kept._cells


def test_a_thread_keeps_its_own_last_few():
    clear_all()
    seeds = [LIMITS["kept_seed"].value + i for i in range(layers.LAST_CELLS + 1)]
    first, *_, last = [parts_of_cell("SimpleCell", 2, 3, seed) for seed in seeds]
    assert parts_of_cell("SimpleCell", 2, 3, seeds[-1]) is last
    assert parts_of_cell("SimpleCell", 2, 3, seeds[0]) is not first
    assert len(layers._last.cells) == layers.LAST_CELLS


@given(st.sampled_from(tuple(KINDS)), st.integers(1, 5), st.integers(1, 5), st.integers(0, 2**31 - 1))
def test_what_was_learnt_of_one_seed_draws_any_other(kind, features, hidden, seed):
    want = leaves(KINDS[kind].cell(features, hidden, rngs=nnx.Rngs(seed)))
    assert recipe.learn(kind, features, hidden) is not None
    for got, other in zip(leaves(built(kind, features, hidden, seed)), want, strict=True):
        np.testing.assert_array_equal(got, other)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_by_gate_are_those_of_the_cell(kind):
    (weights,) = parameters(trial(kind, seed=3))
    want = gate_weights(KINDS[kind], KINDS[kind].cell(3, 4, rngs=nnx.Rngs(3)))
    assert list(weights) == list(want)
    for name, gate in want.items():
        np.testing.assert_array_equal(weights[name].kernel_x, gate.kernel_x)
        np.testing.assert_array_equal(weights[name].kernel_h, gate.kernel_h)
        np.testing.assert_array_equal(weights[name].bias, gate.bias)


def test_the_backward_cell_has_the_next_seed():
    forward, backward = parameters(trial("GRUCell", seed=3, bidirectional=True))
    np.testing.assert_array_equal(forward["r"].kernel_x, parameters(trial("GRUCell", seed=3))[0]["r"].kernel_x)
    np.testing.assert_array_equal(backward["r"].kernel_x, parameters(trial("GRUCell", seed=4))[0]["r"].kernel_x)


@pytest.mark.parametrize("kind", KINDS)
def test_changes_of_the_weights(kind):
    (plain,) = parameters(trial(kind))
    (changed,) = parameters(trial(kind, weights={"forget_bias": 1.5, "recurrent_scale": 0.25}))
    for name, gate in plain.items():
        np.testing.assert_array_equal(changed[name].kernel_x, gate.kernel_x)
        np.testing.assert_array_equal(changed[name].kernel_h, gate.kernel_h * np.float32(0.25))
        np.testing.assert_array_equal(changed[name].bias, gate.bias + np.float32(1.5 if name == "f" else 0))


def test_changes_leave_the_kept_cell_alone():
    before = weights_of(parts_of_cell("LSTMCell", 3, 4, 0))
    parameters(trial(weights={"forget_bias": 1.0, "recurrent_scale": 2.0}))
    after = weights_of(parts_of_cell("LSTMCell", 3, 4, 0))
    np.testing.assert_array_equal(before["f"].bias, after["f"].bias)
    np.testing.assert_array_equal(before["f"].kernel_h, after["f"].kernel_h)


def test_a_change_nobody_knows():
    with pytest.raises(KeyError):
        cells_of(trial(weights={"input_scale": 2.0}))


def test_a_kind_nobody_knows():
    with pytest.raises(KeyError):
        built("ConvLSTMCell", 3, 4, 0)


def test_the_layer_is_flaxs_own():
    one = layer_of(trial(reverse=True, keep_order=True, time_major=True, unroll=2, masking=Masking.NONE))
    assert isinstance(one, nnx.RNN)
    assert (one.reverse, one.keep_order, one.time_major, one.unroll, one.return_carry) == (True, True, True, 2, True)
    both = layer_of(trial(bidirectional=True, time_major=True, return_carry=False))
    assert isinstance(both, nnx.Bidirectional)
    assert (both.time_major, both.return_carry) == (True, False)
    assert both.forward_rnn.cell is not both.backward_rnn.cell
