"""S114 of `nnx.RNN`: outputs in the order of visits beside a sequence in order of time."""

from __future__ import annotations

import jax.numpy as jnp
import pytest

from core.base.violation import Severity
from core.doctor.instrument import Prepare
from tests.unit.contract.keys_support import LANGUAGES, NNX, code_at, fixed, found, only, ran, silent

BAD = {
    "concatenated": NNX
    + """\
fwd = nnx.RNN(nnx.LSTMCell(2, 4, rngs=nnx.Rngs(0)))
bwd = nnx.RNN(nnx.LSTMCell(2, 4, rngs=nnx.Rngs(1)), reverse=True)
x = jax.random.normal(jax.random.key(0), (3, 5, 2))
a = fwd(x)
b = bwd(x)
print(jnp.concatenate([a, b], axis=-1).shape)
""",
    "class": NNX
    + """\
class BiTagger(nnx.Module):
    def __init__(self, rngs):
        self.f = nnx.RNN(nnx.GRUCell(2, 4, rngs=rngs), return_carry=True)
        self.b = nnx.RNN(nnx.GRUCell(2, 4, rngs=rngs), return_carry=True, reverse=True)
        self.head = nnx.Linear(8, 1, rngs=rngs)
    def __call__(self, x):
        _, f = self.f(x)
        _, b = self.b(x)
        return self.head(jnp.concatenate((f, b), -1))
print(BiTagger(nnx.Rngs(0))(jnp.arange(20.).reshape(2, 5, 2)).shape)
print(nnx.jit(BiTagger(nnx.Rngs(0)))(jnp.ones((2, 5, 2))).shape) if False else None
""",
    "in_nnx_jit": NNX
    + """\
rnn = nnx.RNN(nnx.SimpleCell(1, 2, rngs=nnx.Rngs(0)), time_major=True)
@nnx.jit
def both(rnn, x):
    back = jnp.tanh(rnn(x, reverse=True))
    return jnp.stack([rnn(x), back])
print(both(rnn, jnp.arange(6.).reshape(6, 1, 1)))
""",
    "beside_its_input": NNX
    + """\
rnn = nnx.RNN(nnx.SimpleCell(2, 2, rngs=nnx.Rngs(0)), reverse=True)
x = jnp.arange(12.).reshape(2, 3, 2)
print(x + rnn(x))
""",
}

USED = {
    "concatenated": "bwd(x)",
    "class": "self.b(x)",
    "in_nnx_jit": "rnn(x, reverse=True)",
    "beside_its_input": "rnn(x)",
}
GOOD = {
    "keep_order": NNX
    + """\
rnn = nnx.RNN(nnx.SimpleCell(1, 2, rngs=nnx.Rngs(0)))
x = jnp.arange(3.).reshape(1, 3, 1)
print(rnn(x) + rnn(x, reverse=True, keep_order=True))
""",
    "turned_round_again": NNX
    + """\
rnn = nnx.RNN(nnx.SimpleCell(1, 2, rngs=nnx.Rngs(0)))
x = jnp.arange(3.).reshape(1, 3, 1)
print(rnn(x) + jnp.flip(rnn(x, reverse=True), 1))
b = rnn(x, reverse=True)[:, ::-1]
print(jnp.concatenate([rnn(x), b], -1))
""",
    "last_step_and_mean": NNX
    + """\
rnn = nnx.RNN(nnx.SimpleCell(1, 2, rngs=nnx.Rngs(0)))
x = jnp.arange(5.).reshape(1, 5, 1)
print(jnp.concatenate([rnn(x)[:, -1], rnn(x, reverse=True)[:, -1]], -1), rnn(x).mean(1) + rnn(x, reverse=True).mean(1))
""",
    "bidirectional": NNX
    + """\
bi = nnx.Bidirectional(nnx.RNN(nnx.SimpleCell(1, 2, rngs=nnx.Rngs(0))), nnx.RNN(nnx.SimpleCell(1, 2, rngs=nnx.Rngs(1))))
print(bi(jnp.arange(5.).reshape(1, 5, 1)))
""",
    "alone": NNX
    + """\
rnn = nnx.RNN(nnx.SimpleCell(1, 2, rngs=nnx.Rngs(0)), reverse=True)
x = jnp.arange(5.).reshape(1, 5, 1)
y = rnn(x)
print(y * 2.0, jnp.tanh(y))
""",
}

#: google/flax#2770.
REPORT = (
    NNX
    + """\
rnn = nnx.RNN(nnx.SimpleCell(1, 2, rngs=nnx.Rngs(0)))
x = jnp.array([[[1.0], [2.0], [3.0]]])
both = rnn(x) + rnn(x, reverse=True)
print(both)"""
)


@pytest.mark.parametrize("prepare", LANGUAGES, ids=["python", "sandbox"])
@pytest.mark.parametrize("name", BAD)
def test_s114_the_reversed_call_is_named(name: str, prepare: Prepare) -> None:
    violation, _ = only(BAD[name], "S114", prepare=prepare)
    assert code_at(BAD[name], violation) == USED[name]
    assert violation.severity is Severity.WARNING
    assert violation.because is not None
    assert violation.proof is not None
    assert violation.proof.before > 0


@pytest.mark.parametrize("name", GOOD)
def test_outputs_in_their_right_order_are_no_fault(name: str) -> None:
    silent(GOOD[name], "S114")


def test_alone_it_is_a_note() -> None:
    violation, _ = only(GOOD["alone"], "S114")
    assert violation.severity is Severity.NOTE
    assert not found(GOOD["turned_round_again"], "S114")[0]
    assert not found(GOOD["bidirectional"], "S114")[0]


def test_the_fixed_report_pairs_the_same_steps() -> None:
    names = ran(fixed(REPORT, "S114")[0])
    rnn, x, both = names["rnn"], names["x"], names["both"]
    assert bool(jnp.allclose(both, rnn(x) + jnp.flip(rnn(jnp.flip(x, 1)), 1), atol=1e-6))


@pytest.mark.parametrize("name", BAD)
def test_a_fix_keeps_the_order(name: str) -> None:
    text, _ = fixed(BAD[name], "S114")
    silent(text, "S114")


def test_a_second_reversed_network_turns_it_back() -> None:
    script = (
        NNX
        + """\
one = nnx.RNN(nnx.SimpleCell(2, 2, rngs=nnx.Rngs(0)), reverse=True)
two = nnx.RNN(nnx.SimpleCell(2, 2, rngs=nnx.Rngs(1)), reverse=True)
x = jnp.arange(12.0).reshape(2, 3, 2)
print(x + two(one(x)))
"""
    )
    silent(script, "S114")
