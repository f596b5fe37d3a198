"""L321: a mask with holes is summed into seq_lengths."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import HEAD, WARNING, Case, quiet, told

CODE = "L321"

BAD = {
    "mask-with-holes-as-length": Case(
        """\
import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.GRUCell(1, 3, rngs=nnx.Rngs(0))
x = jnp.array([[[1.0], [99.0], [3.0], [4.0]]])
mask = jnp.array([[True, False, True, True]])
rnn = nnx.RNN(cell, return_carry=True)
carry, ys = rnn(x, seq_lengths=mask.sum(1))
print(carry)""",
        "mask.sum(1)",
        WARNING,
        check="ref=nnx.RNN(cell,return_carry=True)(x[:,jnp.array([0,2,3])])[0]; assert bool(jnp.allclose(carry,ref,atol=1e-6))",
    ),
    "renamed lstm": Case(
        HEAD
        + """
u = nnx.OptimizedLSTMCell(2, 5, rngs=nnx.Rngs(0))
v = jnp.arange(24.0).reshape(3, 4, 2) / 10
on = jnp.array([[1, 1, 1, 1], [0, 1, 1, 0], [1, 0, 1, 0]])
runner = nnx.RNN(u, return_carry=True)
n = jnp.sum(on, axis=-1)
(c, h), out = runner(v, seq_lengths=n)
print(h)
""",
        "n",
        WARNING,
    ),
    "module jit": Case(
        HEAD
        + """
class Enc(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=rngs))
    def __call__(self, x, mask):
        h, _ = self.rnn(x, seq_lengths=mask.sum(axis=1), return_carry=True)
        return h
m = Enc(nnx.Rngs(0))
print(nnx.jit(lambda m, x, k: m(x, k))(m, jnp.ones((2, 4, 1)), jnp.array([[True, False, True, True], [True, True, True, False]])))
""",
        "mask.sum(axis=1)",
        WARNING,
    ),
    "module": Case(
        HEAD
        + """
class Enc(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=rngs))
    def __call__(self, x, mask):
        h, _ = self.rnn(x, seq_lengths=mask.sum(axis=1), return_carry=True)
        return h
m = Enc(nnx.Rngs(0))
print(m(jnp.ones((2, 4, 1)), jnp.array([[True, False, True, True], [True, True, True, False]])))
""",
        "mask.sum(axis=1)",
        WARNING,
    ),
    "time major": Case(
        HEAD
        + """
rnn = nnx.RNN(nnx.SimpleCell(1, 3, rngs=nnx.Rngs(0)), time_major=True, return_carry=True)
x = jnp.arange(12.0).reshape(4, 3, 1)
mask = jnp.array([[True, False, True, True], [True, True, True, False], [False, True, True, False]])
lens = mask.astype(jnp.int32).sum(1)
print(rnn(x, seq_lengths=lens)[0])
""",
        "lens",
        WARNING,
    ),
    "left padded func": Case(
        HEAD
        + """
def encode(rnn, tokens):
    mask = tokens != 0
    x = jax.nn.one_hot(tokens, 5)
    lengths = jnp.count_nonzero(mask, axis=1)
    return rnn(x, seq_lengths=lengths, return_carry=True)
rnn = nnx.RNN(nnx.GRUCell(5, 3, rngs=nnx.Rngs(0)))
print(encode(rnn, jnp.array([[0, 0, 3, 4], [1, 2, 3, 4]]))[0])
""",
        "lengths",
        WARNING,
    ),
    "bidi": Case(
        HEAD
        + """
bi = nnx.Bidirectional(nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0))), nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(1))))
x = jnp.arange(8.0).reshape(2, 4, 1)
mask = jnp.array([[True, False, True, True], [True, True, True, False]])
print(bi(x, seq_lengths=mask.sum(1)))
""",
        "mask.sum(1)",
        WARNING,
    ),
    "float partial": Case(
        HEAD
        + """
rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)), return_carry=True)
mask = jnp.array([[1., 0., 1., 1.], [1., 1., 1., 0.]])
go = partial(rnn, jnp.arange(8.0).reshape(2, 4, 1))
print(rnn(jnp.arange(8.0).reshape(2, 4, 1), seq_lengths=mask.sum(1).astype(int))[0])
""",
        "mask.sum(1).astype(int)",
        WARNING,
    ),
}

FINE = {
    "ok": HEAD
    + """
rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)), return_carry=True)
x = jnp.arange(8.0).reshape(2, 4, 1)
mask = jnp.array([[True, True, False, False], [True, True, True, False]])
print(rnn(x, seq_lengths=mask.sum(1))[0])
gaps = jnp.array([[True, False, True, False], [True, True, True, False]])
ys = rnn(x, seq_lengths=jnp.array([2, 3]))[1]
print((ys * gaps[..., None]).sum())
last = jnp.where(gaps, jnp.arange(1, 5), 0).max(1)
print(rnn(x, seq_lengths=last)[0])
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_the_proof_is_the_carry_of_a_cell_that_skips() -> None:
    """By hand: the report's own numbers, the cell stepped over the steps that are on."""
    violation = told(BAD["mask-with-holes-as-length"], CODE)
    names: dict[str, object] = {}
    exec(BAD["mask-with-holes-as-length"].text, names)
    exec("h = cell.initialize_carry((1, 1), nnx.Rngs(0))\nfor t in (0, 2, 3):\n    h, _ = cell(h, x[:, t])", names)
    exec("far = float(abs(carry - h).max())", names)
    assert violation.proof.before == pytest.approx(names["far"], rel=1e-5)
