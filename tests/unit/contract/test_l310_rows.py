"""L310: rows that fill up a batch have length 0, and the script leaves them out itself."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import HEAD, WARNING, Case, quiet, told

CODE = "L310"

BAD = {
    "only printed": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(2, 4, rngs=nnx.Rngs(1)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (3, 6, 2))
lens = jnp.array([6, 0, 2])
empty = lens.astype(bool)
h, ys = rnn(x, seq_lengths=lens)
print("some are empty:", empty, h.sum())
""",
        "lens",
        WARNING,
    ),
    "lists of words": Case(
        """\
import numpy as np
import jax, jax.numpy as jnp
from flax import nnx
sents = [[4, 2, 7], [], [5, 1]]
lens = np.array([len(s) for s in sents])
ids = np.zeros((3, max(lens)), int)
for i, s in enumerate(sents):
    ids[i, :len(s)] = s
emb = nnx.Embed(9, 4, rngs=nnx.Rngs(0))
rnn = nnx.RNN(nnx.LSTMCell(4, 6, rngs=nnx.Rngs(1)), return_carry=True)
(c, h), _ = rnn(emb(ids), seq_lengths=lens)
print(h.mean(axis=1))
""",
        "lens",
        WARNING,
    ),
}

FINE = {
    "weights of the rows": """\
import jax, jax.numpy as jnp, optax
from flax import nnx
# the last batch of an epoch is filled up with empty rows, which have weight 0
class Tagger(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.LSTMCell(3, 6, rngs=rngs), return_carry=True)
        self.head = nnx.Linear(6, 2, rngs=rngs)
    def __call__(self, x, lengths):
        (c, h), _ = self.rnn(x, seq_lengths=lengths)
        return self.head(h)
model = Tagger(nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (4, 7, 3))
lengths = jnp.array([7, 4, 2, 0])
weight = jnp.array([1.0, 1.0, 1.0, 0.0])
y = jnp.array([0, 1, 1, 0])
@nnx.jit
def loss(model):
    ce = optax.softmax_cross_entropy_with_integer_labels(model(x, lengths), y)
    return (ce * weight).sum() / weight.sum()
print(loss(model))
""",
    "any step in the mask": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(2, 5, rngs=nnx.Rngs(1)), return_carry=True)
mask = jnp.array([[1, 1, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0]], bool)
x = jax.random.normal(jax.random.key(1), (3, 4, 2)) * mask[..., None]
h, ys = rnn(x, seq_lengths=mask.sum(axis=1))
real = mask.any(axis=1)
h = jnp.where(real[:, None], h, 0.0)
print(h.sum(0) / real.sum())
""",
    "a truth value of the length": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(2, 5, rngs=nnx.Rngs(1)), return_carry=True)
lens = jnp.array([3, 0, 5])
x = jax.random.normal(jax.random.key(1), (3, 5, 2))
h, _ = rnn(x, seq_lengths=lens)
h = h * lens.astype(bool)[:, None]
print(h)
""",
    "buckets of two lengths, jitted": """\
import numpy as np
import jax, jax.numpy as jnp
from flax import nnx
rnn = nnx.RNN(nnx.GRUCell(2, 4, rngs=nnx.Rngs(0)), return_carry=True)
@nnx.jit
def encode(rnn, x, lens):
    h, _ = rnn(x, seq_lengths=lens)
    return h
rng = np.random.default_rng(1)
for bucket in (4, 8):
    lens = rng.integers(1, bucket + 1, size=3)
    x = rng.normal(size=(3, bucket, 2)).astype(np.float32)
    print(encode(rnn, x, lens).mean())
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)
