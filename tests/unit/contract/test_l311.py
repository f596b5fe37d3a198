"""L311: padding steps move the carry."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import HEAD, NOTE, WARNING, Case, quiet, told

CODE = "L311"

BAD = {
    "padding-steps-move-the-carry": Case(
        """\
import jax, jax.numpy as jnp
from flax import nnx
rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)), return_carry=True)
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])
lengths = jnp.array([2, 4])
carry, ys = rnn(x)
print(carry)""",
        "rnn(x)",
        WARNING,
        check="assert bool(jnp.allclose(carry[0], rnn(x[:1,:2])[0][0], atol=1e-6)) and bool(jnp.allclose(carry[1], rnn(x[1:])[0][0], atol=1e-6))",
    ),
    "renamed": Case(
        HEAD
        + """
r = nnx.RNN(nnx.OptimizedLSTMCell(2, 3, rngs=nnx.Rngs(0)), return_carry=True)
v = jnp.concatenate([jnp.ones((3, 2, 2)), jnp.zeros((3, 3, 2))], 1).at[0, 2:].set(5.0)
n = jnp.array([5, 2, 2])
print(n)
s, o = r(v)
print(s)
""",
        "r(v)",
        WARNING,
        check="assert jnp.allclose(s[1][1], r(v[1:2, :2])[0][1][0], atol=1e-6)",
    ),
    "no filler name": Case(
        HEAD
        + """
rnn = nnx.RNN(nnx.GRUCell(2, 3, rngs=nnx.Rngs(0)), return_carry=True)
lens = [3, 5]
h, ys = rnn(jnp.ones((2, 5, 2)))
print(h)
""",
        "rnn(jnp.ones((2, 5, 2)))",
        WARNING,
    ),
    "note": Case(
        HEAD
        + """
rnn = nnx.RNN(nnx.GRUCell(2, 3, rngs=nnx.Rngs(0)), return_carry=True)
q = [3, 5]
h, ys = rnn(jnp.ones((2, 5, 2)))
print(h)
""",
        "rnn(jnp.ones((2, 5, 2)))",
        NOTE,
    ),
    "class": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

class Enc(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=rngs), return_carry=True)
    def __call__(self, x, lengths):
        carry, ys = self.rnn(x)
        return carry
m = Enc(nnx.Rngs(0))
lengths = jnp.array([2, 4])
print(m(x, lengths))
""",
        "self.rnn(x)",
        WARNING,
        check="assert jnp.allclose(m(x, lengths)[0], m.rnn(x[:1, :2])[0][0], atol=1e-6)",
    ),
    "class jit": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

class Enc(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=rngs), return_carry=True)
    def __call__(self, x, lengths):
        carry, ys = self.rnn(x)
        return carry
m = Enc(nnx.Rngs(0))
@nnx.jit
def go(m, x, lengths):
    return m(x, lengths)
print(go(m, x, jnp.array([2, 4])))
""",
        "self.rnn(x)",
        WARNING,
    ),
    "mask": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)))
mask = jnp.arange(4) < jnp.array([2, 4])[:, None]
carry, ys = rnn(x, return_carry=True)
print(carry, mask.shape)
""",
        "rnn(x, return_carry=True)",
        WARNING,
    ),
    "lengths->mask": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)))
lengths = jnp.array([2, 4])
mask = jnp.arange(4)[None] < lengths[:, None]
last = rnn(x)[:, -1]
print(last)
""",
        "rnn(x)",
        WARNING,
    ),
    "last": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

rnn = nnx.RNN(nnx.LSTMCell(1, 3, rngs=nnx.Rngs(0)))
lengths = jnp.array([2, 4])
ys = rnn(x)
print(ys[:, -1])
""",
        "rnn(x)",
        WARNING,
    ),
    "scan": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

cell = nnx.LSTMCell(1, 3, rngs=nnx.Rngs(0))
lengths = jnp.array([2, 4])
def step(carry, t):
    return cell(carry, t)
carry, ys = jax.lax.scan(step, cell.initialize_carry((2, 1), nnx.Rngs(0)), jnp.swapaxes(x, 0, 1))
print(carry)
""",
        "jax.lax.scan(step, cell.initialize_carry((2, 1), nnx.Rngs(0)), jnp.swapaxes(x, 0, 1))",
        WARNING,
        check="assert jnp.allclose(carry[1][0], lax.scan(step, cell.initialize_carry((1, 1), nnx.Rngs(0)), jnp.swapaxes(x[:1, :2], 0, 1))[0][1][0], atol=1e-6)",
    ),
    "scan mask unread": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

cell = nnx.GRUCell(1, 3, rngs=nnx.Rngs(0))
mask = jnp.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)
def step(carry, inp):
    t, m = inp
    carry, y = cell(carry, t)
    return carry, y
carry, ys = jax.lax.scan(step, jnp.zeros((2, 3)), (jnp.swapaxes(x, 0, 1), mask.T))
mt = mask.T
carry, ys = jax.lax.scan(step, jnp.zeros((2, 3)), (jnp.swapaxes(x, 0, 1), mt))
print(carry)
""",
        "jax.lax.scan(step, jnp.zeros((2, 3)), (jnp.swapaxes(x, 0, 1), mask.T))",
        WARNING,
        fixed=False,
    ),
    "scan func": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

def encode(cell, xs, mask):
    h = jnp.zeros((2, 3))
    h, ys = jax.lax.scan(lambda h, t: cell(h, t), h, xs)
    return h
cell = nnx.GRUCell(1, 3, rngs=nnx.Rngs(0))
mask = jnp.array([[1., 1, 0, 0], [1, 1, 1, 1]])
print(encode(cell, jnp.swapaxes(x, 0, 1), mask))
""",
        "jax.lax.scan(lambda h, t: cell(h, t), h, xs)",
        WARNING,
    ),
    "bidi": Case(
        HEAD
        + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

bi = nnx.Bidirectional(nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0))), nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(1))))
lengths = jnp.array([2, 4])
print(bi(x))
""",
        "bi(x)",
        WARNING,
    ),
}

FINE = {
    "used": HEAD
    + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)))
lengths = jnp.array([2, 4])
ys = rnn(x)
print(ys[jnp.arange(2), lengths - 1])
mask = jnp.arange(4) < lengths[:, None]
print((ys * mask[..., None]).sum())
print(jnp.where(mask[..., None], ys, 0).mean())
""",
    "labels": HEAD
    + """
rnn = nnx.RNN(nnx.GRUCell(2, 3, rngs=nnx.Rngs(0)), return_carry=True)
labels = jnp.array([1, 2])
dims = [2, 3]
B, T = 2, 5
h, ys = rnn(jnp.ones((2, 5, 2)))
targets = jnp.array([[0, 1, 0, 1, 1], [1, 0, 0, 0, 1]])
print(h)
""",
    "zeros": HEAD
    + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)), return_carry=True)
print(rnn(x)[0])
""",
    "masked": HEAD
    + """\
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])

cell = nnx.GRUCell(1, 3, rngs=nnx.Rngs(0))
mask = jnp.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)
def step(h, inp):
    t, m = inp
    new, y = cell(h, t)
    return jnp.where(m[:, None], new, h), y
print(jax.lax.scan(step, jnp.zeros((2, 3)), (jnp.swapaxes(x, 0, 1), mask.T))[0])
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_the_array_that_is_not_used_is_the_second_place() -> None:
    violation = told(BAD["class"], CODE)
    assert violation.because is not None
    assert violation.because.text == "lengths says which steps are padding"
