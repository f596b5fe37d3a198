"""L310: lengths that are no lengths."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, NOTE, WARNING, Case, quiet, told

CODE = "L310"

BAD = {
    "zero": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
lengths = jnp.array([0, 4])
carry, ys = rnn(x, seq_lengths=lengths)
print(carry)
""",
        "lengths",
        WARNING,
        check="assert not carry[0][0].any() and not carry[1][0].any() and jnp.allclose(carry[1][1], rnn(x[1:, :4])[0][1][0], atol=1e-6)",
    ),
    "zero, written in the call": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (3, 5, 3))
h, ys = rnn(x, seq_lengths=jnp.array([2, 0, 4]))
print(h)
""",
        "jnp.array([2, 0, 4])",
        WARNING,
        check="assert not h[1].any() and h[0].any()",
    ),
    "zero, pair unpacked": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (3, 5, 3))
n = jnp.array([2, 0, 4])
(c, h), ys = rnn(x, seq_lengths=n, return_carry=True)
print(h)
""",
        "n",
        WARNING,
        check="assert not h[1].any() and not c[1].any()",
    ),
    "zero, in a class": Case(
        HEAD
        + """\
class E(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=rngs), return_carry=True)
        self.out = nnx.Linear(4, 2, rngs=rngs)
    def __call__(self, x, lens):
        state, _ = self.rnn(x, seq_lengths=lens)
        return self.out(state[1])
m = E(nnx.Rngs(0))
print(m(jax.random.normal(jax.random.key(0), (3, 5, 3)), jnp.array([5, 0, 1])))
""",
        "lens",
        WARNING,
    ),
    "zero, jitted": Case(
        HEAD
        + """\
class E(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=rngs), return_carry=True)
        self.out = nnx.Linear(4, 2, rngs=rngs)
    def __call__(self, x, lens):
        state, _ = self.rnn(x, seq_lengths=lens)
        return self.out(state[1])
m = E(nnx.Rngs(0))
@nnx.jit
def go(m, x, l):
    return m(x, l)
print(go(m, jax.random.normal(jax.random.key(0), (3, 5, 3)), jnp.array([5, 0, 1])))
""",
        "lens",
        WARNING,
    ),
    "zero, from a mask": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 4, 3))
mask = jnp.array([[1, 1, 0, 0], [0, 0, 0, 0]])
h, ys = rnn(x, seq_lengths=mask.sum(1))
print(h)
""",
        "mask.sum(1)",
        WARNING,
        check="assert not h[1].any()",
    ),
    "zero, initial carry given": Case(
        HEAD
        + """\
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
rnn = nnx.RNN(cell, return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
init = (jnp.ones((2, 4)), jnp.ones((2, 4)))
lengths = jnp.array([0, 4])
carry, ys = rnn(x, initial_carry=init, seq_lengths=lengths)
print(carry)
""",
        "lengths",
        WARNING,
        check="assert (carry[0][0] == 1).all()",
    ),
    "zero, bidirectional": Case(
        HEAD
        + """\
r = nnx.Rngs(0)
rnn = nnx.Bidirectional(nnx.RNN(nnx.LSTMCell(3, 4, rngs=r)), nnx.RNN(nnx.LSTMCell(3, 4, rngs=r)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 6, 3))
carry, ys = rnn(x, seq_lengths=jnp.array([0, 3]))
print(carry)
""",
        "jnp.array([0, 3])",
        WARNING,
        fixed=False,
    ),
    "an index for a length": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
lengths = jnp.array([1, 5])
h, ys = rnn(x, seq_lengths=lengths - 1)
print(h)
""",
        "lengths - 1",
        WARNING,
        check="assert jnp.allclose(h[0], rnn(x[:1, :1])[0][0], atol=1e-6)",
    ),
    "above T": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
lengths = jnp.array([7, 4])
h, ys = rnn(x, seq_lengths=lengths)
print(h)
""",
        "lengths",
        WARNING,
    ),
    "above T, of an input cut to T": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 9, 3))
lengths = jnp.array([9, 4])
x = x[:, :5]
h, ys = rnn(x, seq_lengths=lengths)
print(h)
""",
        "lengths",
        NOTE,
    ),
    "above T, reversed": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
lengths = jnp.array([7, 4])
ys = rnn(x, seq_lengths=lengths, reverse=True, keep_order=True)
print(ys)
""",
        "lengths",
        WARNING,
        check="assert jnp.allclose(ys[0], rnn(x[:1], reverse=True, keep_order=True)[0], atol=1e-6)",
    ),
    "negative": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
h, ys = rnn(x, seq_lengths=jnp.array([-1, 4]))
print(h)
""",
        "jnp.array([-1, 4])",
        WARNING,
        fixed=False,
    ),
    "the longest for all": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
lengths = jnp.array([3, 4])
h, ys = rnn(x, seq_lengths=lengths.max())
print(h)
""",
        "lengths.max()",
        WARNING,
        check="assert jnp.allclose(h[0], rnn(x[:1, :3])[0][0], atol=1e-6)",
    ),
    "the first for all": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
lengths = jnp.array([3, 4])
h, ys = rnn(x, seq_lengths=lengths[0])
print(h)
""",
        "lengths[0]",
        WARNING,
    ),
    "one for all": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
h, ys = rnn(x, seq_lengths=3)
print(h)
""",
        "3",
        NOTE,
        fixed=False,
    ),
    "a column": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
h, ys = rnn(x, seq_lengths=jnp.array([[3], [4]]))
print(h)
""",
        "jnp.array([[3], [4]])",
        WARNING,
        check="assert h.shape == (2, 4)",
    ),
    "a square mask": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (4, 4, 3))
mask = jnp.arange(4) < jnp.array([1, 2, 3, 4])[:, None]
h, ys = rnn(x, seq_lengths=mask)
print(h)
""",
        "mask",
        WARNING,
        check="assert h.shape == (4, 4)",
    ),
    "a mask": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 4, 3))
mask = jnp.arange(4) < jnp.array([1, 2])[:, None]
h, ys = rnn(x, seq_lengths=mask)
print(h)
""",
        "mask",
        ERROR,
        check="assert h.shape == (2, 4)",
    ),
    "fractions": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 4, 3))
h, ys = rnn(x, seq_lengths=jnp.array([2.0, 4.0]))
print(h)
""",
        "jnp.array([2.0, 4.0])",
        ERROR,
    ),
    "fractions, jitted": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 4, 3))
mask = jnp.array([[1., 1., 0., 0.], [1., 0., 0., 0.]])
@nnx.jit
def f(r, x, mask):
    h, ys = r(x, seq_lengths=mask.sum(1))
    return h
print(f(rnn, x, mask))
""",
        "mask.sum(1)",
        ERROR,
    ),
    "a list": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 4, 3))
h, ys = rnn(x, seq_lengths=[2, 4])
print(h)
""",
        "[2, 4]",
        ERROR,
    ),
    "another count": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 4, 3))
h, ys = rnn(x, seq_lengths=jnp.array([2, 4, 1]))
print(h)
""",
        "jnp.array([2, 4, 1])",
        ERROR,
        fixed=False,
    ),
    "truth values": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 4, 3))
h, ys = rnn(x, seq_lengths=jnp.array([True, True]))
print(h)
""",
        "jnp.array([True, True])",
        WARNING,
        fixed=False,
    ),
}

FINE = {
    "told apart": HEAD
    + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (3, 5, 3))
lengths = jnp.array([5, 0, 2])
carry, ys = rnn(x, seq_lengths=lengths)
carry = jax.tree.map(lambda c: jnp.where((lengths == 0)[:, None], 0.0, c), carry)
print(carry[1])
""",
    "weighted": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
head = nnx.Linear(4, 1, rngs=nnx.Rngs(1))
x = jax.random.normal(jax.random.key(0), (3, 5, 3))
lengths = jnp.array([5, 0, 2])
real = lengths > 0
h, _ = rnn(x, seq_lengths=lengths)
loss = jnp.sum(head(h)[:, 0] ** 2 * real) / real.sum()
print(loss)
""",
    "outputs only": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (3, 5, 3))
lengths = jnp.array([5, 0, 2])
mask = jnp.arange(5) < lengths[:, None]
_, ys = rnn(x, seq_lengths=lengths)
print((ys * mask[..., None]).sum())
""",
    "clipped": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (3, 5, 3))
raw = jnp.array([9, 0, 2])
lengths = jnp.clip(raw, 1, x.shape[1])
h, _ = rnn(x, seq_lengths=lengths)
print(h)
""",
    "all full": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (3, 5, 3))
h, ys = rnn(x, seq_lengths=jnp.full(3, 5))
k, _ = rnn(x, seq_lengths=jnp.full((3,), x.shape[1]))
print(jnp.abs(h - k).max(), jnp.abs(h - ys[:, -1]).max())
""",
    "one example": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (1, 5, 3))
h, ys = rnn(x, seq_lengths=jnp.array([3]))
print(h)
""",
    "reversed": HEAD
    + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), reverse=True, keep_order=True, return_carry=True)
x = jax.random.normal(jax.random.key(0), (4, 4, 3))
carry, ys = rnn(x, seq_lengths=jnp.array([4, 1, 3, 2]))
print(carry[1].shape, ys.shape)
""",
    "sum of a mask": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (4, 4, 3))
mask = jnp.arange(4) < jnp.array([4, 2, 3, 1])[:, None]
h, ys = rnn(x, seq_lengths=mask.sum(-1))
pooled = (ys * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
print(h.shape, pooled.shape)
""",
    "sorted": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (4, 6, 3))
lengths = jnp.array([2, 6, 4, 1])
order = jnp.argsort(-lengths)
h, ys = rnn(x[order], seq_lengths=lengths[order])
print(h[jnp.argsort(order)])
""",
    "jitted": HEAD
    + """\
class Enc(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=rngs), return_carry=True)
    def __call__(self, x, lengths):
        (c, h), ys = self.rnn(x, seq_lengths=lengths)
        return h
m = Enc(nnx.Rngs(0))
@nnx.jit
def f(m, x, n):
    return m(x, n)
print(f(m, jnp.ones((3, 3, 3)), jnp.array([1, 2, 3])))
""",
    "padded by hand": """\
import numpy as np, jax, jax.numpy as jnp
from flax import nnx
rng = np.random.default_rng(0)
data = [rng.normal(size=(n, 3)).astype(np.float32) for n in (5, 2, 4)]
max_len = max(len(d) for d in data)
batch = np.zeros((len(data), max_len, 3), np.float32)
for i, d in enumerate(data):
    batch[i, :len(d)] = d
lengths = jnp.array([len(d) for d in data])
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
(c, h), ys = rnn(jnp.asarray(batch), seq_lengths=lengths)
print(h.shape)
""",
    "bidirectional": HEAD
    + """\
r = nnx.Rngs(0)
bi = nnx.Bidirectional(nnx.RNN(nnx.LSTMCell(3, 4, rngs=r)), nnx.RNN(nnx.LSTMCell(3, 4, rngs=r)), return_carry=True)
x = jax.random.normal(r.params(), (3, 6, 3))
(fwd, bwd), ys = bi(x, seq_lengths=jnp.array([6, 2, 4]))
print(fwd[1].shape, bwd[1].shape, ys.shape)
""",
    "never looked at": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
print(rnn(jnp.ones((2, 5, 3)), seq_lengths=jnp.array([0, 9])))
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_the_proof_is_the_carry_of_the_padding() -> None:
    """By hand: the carry after all steps of example 0, which began with zeros."""
    violation = told(BAD["zero"], CODE)
    names: dict[str, object] = {}
    exec(BAD["zero"].text, names)
    exec("full = rnn(x)[0]\nfar = max(float(abs(part[0]).max()) for part in full)", names)
    assert violation.proof is not None
    assert violation.proof.before == pytest.approx(names["far"], rel=1e-5)
