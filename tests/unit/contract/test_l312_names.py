"""L312: names like `alive` may be said of units; what else must be known to believe them."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import HEAD, WARNING, Case, quiet, told

CODE = "L312"

BAD = {
    "reset by a mask that comes with the steps": Case(
        HEAD
        + """\
# recurrent PPO: as many environments as units
num_envs = hidden = 8
gru = nnx.GRUCell(5, hidden, rngs=nnx.Rngs(0))
obs = jax.random.normal(jax.random.key(0), (16, num_envs, 5))
dones = jax.random.bernoulli(jax.random.key(1), 0.1, (16, num_envs))
def unroll(h, inp):
    o, d = inp
    h = jnp.where(d, 0.0, h)
    h, y = gru(h, o)
    return h, y
h, ys = jax.lax.scan(unroll, jnp.zeros((num_envs, hidden)), (obs, dones))
print(ys.mean())
""",
        "d",
        WARNING,
    ),
    "two factors": Case(
        HEAD
        + """\
lstm = nnx.LSTMCell(5, 4, rngs=nnx.Rngs(0))
obs = jax.random.normal(jax.random.key(0), (16, 4, 5))
masks = 1.0 - jax.random.bernoulli(jax.random.key(1), 0.1, (16, 4))
dones = 1.0 - masks
def unroll(carry, inp):
    o, done = inp
    c, h = carry
    m = 1.0 - done
    c, h = c * m, h * m
    carry, y = lstm((c, h), o)
    return carry, y
_, ys = jax.lax.scan(unroll, (jnp.zeros((4, 4)), jnp.zeros((4, 4))), (obs, dones))
print(ys.mean())
""",
        "m",
        WARNING,
    ),
    "a mask in the carry": Case(
        HEAD
        + """\
# decoding stops per sentence
B = H = 4
embed = nnx.Embed(6, 3, rngs=nnx.Rngs(0))
cell = nnx.GRUCell(3, H, rngs=nnx.Rngs(1))
out = nnx.Linear(H, 6, rngs=nnx.Rngs(2))
def step(carry, _):
    h, tok, finished = carry
    new, y = cell(h, embed(tok))
    h = jnp.where(finished, h, new)
    tok = jnp.where(finished, 0, out(y).argmax(-1))
    finished = finished | (tok == 0)
    return (h, tok, finished), tok
init = (jnp.ones((B, H)), jnp.arange(1, B + 1), jnp.zeros(B, bool))
_, toks = jax.lax.scan(step, init, None, length=6)
print(toks)
""",
        "finished",
        WARNING,
    ),
}

FINE = {
    "neurons that are alive": HEAD
    + """\
# which neurons are alive: half of the layer is lesioned, batch of 6 and 6 units
cell = nnx.GRUCell(3, 6, rngs=nnx.Rngs(0))
alive = jax.random.bernoulli(jax.random.key(3), 0.5, (cell.hidden_features,)).astype(jnp.float32)
x = jax.random.normal(jax.random.key(0), (9, 6, 3))
def step(h, x_t):
    h, y = cell(h, x_t)
    h = h * alive
    return h, h
h, ys = jax.lax.scan(step, jnp.zeros((6, 6)), x)
print(ys.shape)
""",
    "units in use": HEAD
    + """\
B, H = 5, 5
cell = nnx.LSTMCell(2, H, rngs=nnx.Rngs(0))
valid = jnp.arange(H) < 3        # the layer is grown later: only three units are in use
def step(carry, x):
    (c, h), y = cell(carry, x)
    h = jnp.where(valid, h, 0.0)
    c = jnp.where(valid, c, 0.0)
    return (c, h), h
xs = jax.random.normal(jax.random.key(1), (8, B, 2))
carry, ys = jax.lax.scan(step, (jnp.zeros((B, H)), jnp.zeros((B, H))), xs)
print(ys[-1])
""",
    "slots of a memory": HEAD
    + """\
# a decoder that looks at S memory slots, the same for all examples; S == B
cell = nnx.GRUCell(4, 4, rngs=nnx.Rngs(0))
memory = jax.random.normal(jax.random.key(1), (3, 4))
valid = jnp.array([True, True, False])
def step(h, x):
    h, y = cell(h, x)
    scores = y @ memory.T
    scores = jnp.where(valid, scores, -1e9)
    att = jax.nn.softmax(scores, axis=-1)
    return h, att @ memory
h, out = jax.lax.scan(step, jnp.zeros((3, 4)), jax.random.normal(jax.random.key(2), (6, 3, 4)))
print(out.shape)
""",
    "examples along the last axis": """\
import jax, jax.numpy as jnp
# the state is kept (H, B), so that the mask of examples meets its last axis
H, B = 4, 4
W = jax.random.normal(jax.random.key(0), (H, H)) * 0.4
U = jax.random.normal(jax.random.key(1), (H, 2)) * 0.4
lengths = jnp.array([5, 3, 2, 1])
valid = jnp.arange(5)[:, None] < lengths[None, :]
def step(h, inp):
    x, keep = inp
    new = jnp.tanh(W @ h + U @ x)
    return jnp.where(keep, new, h), None
h, _ = jax.lax.scan(step, jnp.zeros((H, B)), (jax.random.normal(jax.random.key(2), (5, 2, B)), valid))
print(h.T)
""",
    "a token that is never drawn": HEAD
    + """\
B = V = 4
cell = nnx.GRUCell(3, 5, rngs=nnx.Rngs(0))
out = nnx.Linear(5, V, rngs=nnx.Rngs(1))
embed = nnx.Embed(V, 3, rngs=nnx.Rngs(2))
pad_mask = jnp.arange(V) == 0           # the padding token is never sampled
def step(carry, key):
    h, tok = carry
    h, y = cell(h, embed(tok))
    logits = jnp.where(pad_mask, -1e9, out(y))
    tok = jax.random.categorical(key, logits)
    return (h, tok), tok
_, toks = jax.lax.scan(step, (jnp.zeros((B, 5)), jnp.ones(B, int)), jax.random.split(jax.random.key(0), 6))
print(toks)
""",
    "a broken sensor": HEAD
    + """\
# sensor 2 is broken in all examples; B == F == H
valid = jnp.array([1.0, 0.0, 1.0])
cell = nnx.GRUCell(3, 3, rngs=nnx.Rngs(0))
def step(h, x):
    return cell(h, x * valid)
h, ys = jax.lax.scan(step, jnp.zeros((3, 3)), jax.random.normal(jax.random.key(0), (5, 3, 3)))
print(h)
""",
    "units that begin later": HEAD
    + """\
# each unit gets an input only after its own onset
B = H = 4
cell = nnx.SimpleCell(4, H, rngs=nnx.Rngs(0))
onsets = jnp.array([0, 1, 2, 3])
def step(h, inp):
    t, x = inp
    h, y = cell(h, jnp.where(t >= onsets, x, 0.0))
    return h, y
h, ys = jax.lax.scan(step, jnp.zeros((B, H)), (jnp.arange(6), jax.random.normal(jax.random.key(0), (6, B, 4))))
print(h)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)
