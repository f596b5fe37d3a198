"""Gradients through time over shapes that Hypothesis makes: every map against `jax.jacrev` of a plain scan, and its last row
against differences of the NumPy formulas."""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from core.contract.subject import SequenceTrial
from core.runners.gradients import check_memory, memory_map

KINDS = ("LSTMCell", "OptimizedLSTMCell", "GRUCell", "SimpleCell")
#: Few sizes, many numbers: each size compiles.
SIZES = st.sampled_from([(1, 1, 1), (2, 3, 1), (5, 1, 4), (8, 4, 3), (13, 2, 2)])


@st.composite
def trials(draw, weighted=False):
    length, features, hidden = draw(SIZES)
    seed = draw(st.integers(0, 5))
    size = draw(st.sampled_from([0.0, 1e-3, 1.0, 5.0]))
    data = size * np.random.default_rng(draw(st.integers(0, 10_000))).normal(size=(2, length, features))
    weights = {}
    if weighted:
        weights = {"forget_bias": draw(st.floats(-4, 6)), "recurrent_scale": draw(st.floats(0, 4))}
    return SequenceTrial(draw(st.sampled_from(KINDS)), data.astype(np.float32), "BTF", hidden, seed, weights=weights)


@cache
def jacobian(kind: str, features: int, hidden: int):
    """``jacobian(state, xs)``: ∂(each part after every step)/∂xs, by reverse mode over a scan of the cell as Flax builds it."""
    graph, _ = nnx.split(getattr(nnx, kind)(features, hidden, rngs=nnx.Rngs(0)))
    pair, zero = "LSTM" in kind, jnp.zeros(hidden)

    def of(state, xs):
        cell = nnx.merge(graph, state)

        def states(xs):
            def step(carry, x):
                new, _ = cell(carry, x)
                return new, new if pair else (new,)

            return lax.scan(step, (zero, zero) if pair else zero, xs)[1]

        return jax.jacrev(states)(xs)

    return jax.jit(of)


def plain(trial: SequenceTrial, example: int):
    """Norms of ∂(each part after step s)/∂x_t of that scan."""
    xs = jnp.asarray(trial.inputs[example])
    features, hidden = xs.shape[1], trial.hidden_features
    state = nnx.split(getattr(nnx, trial.kind)(features, hidden, rngs=nnx.Rngs(trial.seed)))[1]
    return [
        np.linalg.norm(np.asarray(j, np.float64), axis=(1, 3))
        for j in jacobian(trial.kind, features, hidden)(state, xs)
    ]


@given(trials(), st.integers(0, 1))
def test_the_map_is_the_jacobian(trial, example):
    got = memory_map(trial, example)
    want = plain(trial, example)
    np.testing.assert_allclose(got.h, want[-1], rtol=2e-5, atol=1e-6)
    if got.c is not None:
        np.testing.assert_allclose(got.c, want[0], rtol=2e-5, atol=1e-6)
    assert (got.h[np.triu_indices(trial.length, 1)] == 0).all()


@given(trials(weighted=True))
def test_the_last_row_is_that_of_differences_and_of_reverse_mode(trial):
    checked = check_memory(trial, 0, memory_map(trial, 0))
    assert checked.trajectory.within
    assert checked.finite.within
    assert checked.grad.within
