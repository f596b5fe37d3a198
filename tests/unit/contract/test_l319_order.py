"""L319: the pair (carry, outputs) taken apart the wrong way round, and rows that are meant."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, WARNING, Case, quiet, told

CODE = "L319"

BAD = {
    "as in PyTorch": Case(
        HEAD
        + """\
lstm = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jnp.ones((5, 6, 3))
output, (hn, cn) = lstm(x)
print(hn.shape)
""",
        "lstm(x)",
        ERROR,
        check="assert hn.shape == (5, 4)",
    ),
    "as in PyTorch, two examples": Case(
        HEAD
        + """\
lstm = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jnp.ones((2, 6, 3))
output, (hn, cn) = lstm(x)
print(hn.shape)
""",
        "lstm(x)",
        WARNING,
        check="assert hn.shape == (2, 4)",
    ),
    "names alone": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
out, state = rnn(jnp.ones((8, 6, 3)))
print(out.shape, state.shape)
""",
        "rnn(jnp.ones((8, 6, 3)))",
        WARNING,
        check="assert out.shape == (8, 6, 4)",
    ),
    "it raises later": Case(
        HEAD
        + """\
class M(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=rngs), return_carry=True)
        self.fc = nnx.Linear(4, 2, rngs=rngs)
    def __call__(self, x):
        seq, last_h = self.rnn(x)
        return self.fc(seq[:, -1])
print(M(nnx.Rngs(0))(jnp.ones((8, 6, 3))))
""",
        "self.rnn(x)",
        ERROR,
    ),
}

FINE = {
    "the carry first": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(2, 4, rngs=nnx.Rngs(0)), return_carry=True)
last, outs = rnn(jnp.ones((3, 6, 2)))
state, (first, *rest) = rnn(jnp.ones((3, 6, 2)))
print(last.shape, outs.shape, state.shape, first.shape)
""",
    "two of a kind": HEAD
    + """\
rnn = nnx.RNN(nnx.LSTMCell(2, 4, rngs=nnx.Rngs(0)))
clean = jax.random.normal(jax.random.key(0), (5, 2))
noisy = clean + 0.1 * jax.random.normal(jax.random.key(1), (5, 2))
y_clean, y_noisy = rnn(jnp.stack([clean, noisy]))
print(jnp.abs(y_clean - y_noisy).max())
""",
    "two hidden sequences": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(2, 4, rngs=nnx.Rngs(0)))
h_left, h_right = rnn(jax.random.normal(jax.random.key(0), (2, 6, 2)))
print(jnp.abs(h_left - h_right).sum())
""",
    "question and answer": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(2, 4, rngs=nnx.Rngs(0)))
question, answer = rnn(jax.random.normal(jax.random.key(0), (2, 6, 2)))
print(jnp.abs(question - answer).sum())
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)
