"""L317: a carry left over from another sequence."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import HEAD, NOTE, Case, quiet, told

CODE = "L317"

BAD = {
    "layer": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
a = jax.random.normal(jax.random.key(0), (2, 7, 3))
b = jax.random.normal(jax.random.key(1), (2, 6, 3))
carry, ys_a = rnn(a)
carry, ys_b = rnn(b, initial_carry=carry)
print(carry)
""",
        "carry",
        NOTE,
        check="assert jnp.allclose(carry[1], rnn(b)[0][1], atol=1e-6)",
    ),
    "scan": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 5, rngs=nnx.Rngs(0))
a = jax.random.normal(jax.random.key(0), (7, 2, 3))
b = jax.random.normal(jax.random.key(1), (6, 2, 3))
def step(h, x):
    h, y = cell(h, x)
    return h, y
h, ya = jax.lax.scan(step, jnp.zeros((2, 5)), a)
h2, yb = jax.lax.scan(step, h, b)
print(h2)
""",
        "h",
        NOTE,
    ),
    "scan over a pair": Case(
        HEAD
        + """\
cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
a, b = jnp.ones((7, 2, 3)), 2 * jnp.ones((6, 2, 3))
step = lambda c, x: cell(c, x)
s, ya = jax.lax.scan(step, cell.initialize_carry((2, 3), nnx.Rngs(0)), a)
s, yb = jax.lax.scan(step, s, b)
print(s)
""",
        "s",
        NOTE,
    ),
    "in a function": Case(
        HEAD
        + """\
def main():
    rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
    train = jax.random.normal(jax.random.key(0), (2, 7, 3))
    test = jax.random.normal(jax.random.key(1), (2, 6, 3))
    state, _ = rnn(train)
    _, out = rnn(test, initial_carry=state)
    return out
print(main())
""",
        "state",
        NOTE,
    ),
    "jitted": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
@nnx.jit
def both(rnn, one, two):
    state, p = rnn(one)
    _, q = rnn(two, initial_carry=state)
    return p, q
print(both(rnn, jnp.ones((2, 7, 3)), jnp.zeros((2, 5, 3))))
""",
        "state",
        NOTE,
    ),
}

FINE = {
    "slices": HEAD
    + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 12, 3))
carry = None
outs = []
for start in range(0, 12, 4):
    carry, ys = rnn(x[:, start:start + 4], initial_carry=carry)
    outs.append(ys)
print(jnp.concatenate(outs, 1).shape)
""",
    "items of a list": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
packets = [jax.random.normal(jax.random.key(i), (1, 5, 3)) for i in range(3)]
h = jnp.zeros((1, 4))
for p in packets:
    h, ys = rnn(p, initial_carry=h)
print(h)
""",
    "truncated gradients": """\
import jax, jax.numpy as jnp, optax
from flax import nnx
class M(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=rngs), return_carry=True)
        self.head = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, x, h):
        h, ys = self.rnn(x, initial_carry=h)
        return h, self.head(ys)
m = M(nnx.Rngs(0))
opt = nnx.Optimizer(m, optax.adam(1e-2), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (2, 20, 3))
y = x.sum(-1, keepdims=True)
@nnx.jit
def update(m, opt, x, y, h):
    def loss(m):
        h1, p = m(x, h)
        return jnp.mean((p - y) ** 2), h1
    (l, h1), g = nnx.value_and_grad(loss, has_aux=True)(m)
    opt.update(m, g)
    return l, jax.lax.stop_gradient(h1)
h = jnp.zeros((2, 4))
for i in range(4):
    l, h = update(m, opt, x[:, 5 * i:5 * i + 5], y[:, 5 * i:5 * i + 5], h)
print(l)
""",
    "warm-up": HEAD
    + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
warmup = jax.random.normal(jax.random.key(0), (10, 2, 3))
main = jax.random.normal(jax.random.key(1), (20, 2, 3))
def step(h, x):
    h, y = cell(h, x)
    return h, y
h, _ = jax.lax.scan(step, jnp.zeros((2, 4)), warmup)
h, ys = jax.lax.scan(step, h, main)
print(ys.shape)
""",
    "prompt": HEAD
    + """\
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
out = nnx.Linear(4, 3, rngs=nnx.Rngs(1))
prompt = jax.random.normal(jax.random.key(0), (6, 1, 3))
carry = cell.initialize_carry((1, 3), nnx.Rngs(2))
carry, ys = jax.lax.scan(lambda c, x: cell(c, x), carry, prompt)
def gen(state, _):
    c, x = state
    c, h = cell(c, x)
    x = out(h)
    return (c, x), x
(_, _), ys = jax.lax.scan(gen, (carry, out(ys[-1])), None, length=5)
print(ys.shape)
""",
    "encoder and decoder": HEAD
    + """\
enc = nnx.RNN(nnx.GRUCell(3, 6, rngs=nnx.Rngs(0)), return_carry=True)
dec = nnx.RNN(nnx.GRUCell(2, 6, rngs=nnx.Rngs(1)))
src = jax.random.normal(jax.random.key(0), (4, 9, 3))
tgt = jax.random.normal(jax.random.key(1), (4, 5, 2))
h, _ = enc(src, seq_lengths=jnp.array([9, 4, 7, 1]))
print(dec(tgt, initial_carry=h).shape)
""",
    "fresh": HEAD
    + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
a = jax.random.normal(jax.random.key(0), (2, 5, 3))
b = jax.random.normal(jax.random.key(1), (2, 7, 3))
carry_a, ya = rnn(a)
carry_b, yb = rnn(b)
print(carry_a[1] - carry_b[1])
""",
    "halves": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 10, 3))
first, second = jnp.split(x, 2, axis=1)
h, y1 = rnn(first)
h, y2 = rnn(second, initial_carry=h)
whole, _ = rnn(x)
assert jnp.allclose(h, whole, atol=1e-5)
""",
    "rounds of a loop": HEAD
    + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
def rollout(key):
    return jax.random.normal(key, (6, 2, 3))
def step(h, o):
    h, y = cell(h, o)
    return h, y
h = jnp.zeros((2, 4))
for i in range(3):
    obs = rollout(jax.random.key(i))
    h, ys = jax.lax.scan(step, h, obs)
print(h)
""",
    "parameters": HEAD
    + """\
xa = jax.random.normal(jax.random.key(0), (20, 3))
xb = jax.random.normal(jax.random.key(1), (20, 3))
def step(w, x):
    g = jax.grad(lambda w: jnp.sum((x @ w - 1) ** 2))(w)
    return w - 0.01 * g, None
w, _ = jax.lax.scan(step, jnp.zeros(3), xa)
w, _ = jax.lax.scan(step, w, xb)
print(w)
""",
    "sums": HEAD
    + """\
def add(c, x):
    n, s = c
    return (n + 1, s + x), None
a, b = jnp.ones((5, 3)), jnp.zeros((7, 3))
c, _ = jax.lax.scan(add, (0, jnp.zeros(3)), a)
c, _ = jax.lax.scan(add, c, b)
print(c)
""",
    "made from the outputs": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(4, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 7, 4))
h, ys = rnn(x)
y = ys[:, -1:]
z = jnp.tanh(y)
h, out = rnn(z, initial_carry=h)
print(out.shape)
""",
    "fresh each epoch": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(4, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 8, 4))
for epoch in range(2):
    h = jnp.zeros((2, 4))
    for i in range(2):
        h, ys = rnn(x[:, 4 * i:4 * i + 4], initial_carry=h)
print(h)
""",
    "it runs on by itself": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 6, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (4, 5, 3))
code, _ = rnn(x)
nothing = jnp.zeros((4, 10, 3))
_, free = rnn(nothing, initial_carry=code)
print(free.shape)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_the_proof_changes_the_first_sequence() -> None:
    violation = told(BAD["layer"], CODE)
    assert violation.proof is not None
    assert violation.proof.before > 0
    assert violation.proof.after == 0
