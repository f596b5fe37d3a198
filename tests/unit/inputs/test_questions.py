"""The answers at the controls hold on the pinned versions: each is asked of JAX and Flax themselves."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from core.inputs.questions import QUESTIONS, question_at


def test_there_are_six_and_each_has_its_place():
    assert len({question.key for question in QUESTIONS}) == len(QUESTIONS) == 6
    assert question_at("scan_xs").question.endswith("?")
    with pytest.raises(KeyError):
        question_at("nowhere")


def test_scan_returns_the_final_carry_and_stacked_ys_without_the_initial_carry():
    final, ys = jax.lax.scan(lambda c, x: (c + x, c + x), 0.0, jnp.array([1.0, 2.0, 3.0]))
    assert final == 6.0
    assert ys.tolist() == [1.0, 3.0, 6.0]


def test_scan_walks_the_leading_axis_of_every_leaf():
    xs = {"a": jnp.arange(6.0).reshape(3, 2), "b": jnp.arange(3)}
    _, seen = jax.lax.scan(lambda c, x: (c, x), None, xs)
    assert seen["a"].tolist() == xs["a"].tolist()
    _, shapes = jax.lax.scan(lambda c, x: (c, x["a"].shape[0]), None, xs)
    assert shapes.tolist() == [2, 2, 2]


def test_a_scan_has_a_backward_mode_and_a_while_loop_has_none():
    scanned = jax.grad(lambda w: jax.lax.scan(lambda c, x: (c * w + x, None), 1.0, jnp.ones(3))[0])(2.0)
    assert jnp.isfinite(scanned)
    with pytest.raises(ValueError):
        jax.grad(lambda w: jax.lax.while_loop(lambda c: c < 100.0, lambda c: c * w, w))(2.0)


def test_carry_and_output_of_the_cells():
    lstm = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    c, h = lstm.initialize_carry((2, 3), rngs=nnx.Rngs(1))
    (new_c, new_h), output = lstm((c, h), jnp.ones((2, 3)))
    assert c.shape == h.shape == new_c.shape == output.shape == (2, 4)
    assert (new_h == output).all()
    gru = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
    assert gru.initialize_carry((2, 3), rngs=nnx.Rngs(1)).shape == (2, 4)
