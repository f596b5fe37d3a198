"""L312: a mask of examples meets the carry along its units."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, WARNING, Case, quiet, told

CODE = "L312"

BAD = {
    "in xs": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
lengths = jnp.array([6, 3, 2, 5])
mask = jnp.arange(6)[:, None] < lengths
def step(h, inputs):
    x_t, keep = inputs
    new, y = cell(h, x_t)
    return jnp.where(keep, new, h), y
h, ys = jax.lax.scan(step, jnp.zeros((4, 4)), (x, mask))
print(h)
""",
        "keep",
        WARNING,
        check="assert jnp.allclose(h[1], nnx.RNN(cell, return_carry=True)(x[:3, 1:2].swapaxes(0, 1))[0][0], atol=1e-5)",
    ),
    "zeros and ones, as factors": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 3, rngs=nnx.Rngs(0))
v = jax.random.normal(jax.random.key(0), (4, 3, 3))
w = jnp.array([[1., 1., 1.], [1., 0., 1.], [1., 0., 1.], [0., 0., 1.]])
def f(s, i):
    a, q = i
    n, o = cell(s, a)
    s = q * n + (1 - q) * s
    return s, o
s, ys = jax.lax.scan(f, jnp.zeros((3, 3)), (v, w))
print(s)
""",
        "q",
        WARNING,
    ),
    "closed over, in a tree map": Case(
        HEAD
        + """\
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
n = jnp.array([6, 3, 2, 5])
def step(carry, inp):
    t, x_t = inp
    new, y = cell(carry, x_t)
    new = jax.tree.map(lambda a, b: jnp.where(t < n, a, b), new, carry)
    return new, y
carry, ys = jax.lax.scan(step, cell.initialize_carry((4, 3), nnx.Rngs(1)), (jnp.arange(6), x))
print(carry)
""",
        "t < n",
        WARNING,
    ),
    "jitted": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
@jax.jit
def run(x, lengths):
    def step(h, inp):
        t, x_t = inp
        new, y = cell(h, x_t)
        keep = t < lengths
        return jnp.where(keep, new, h), y
    return jax.lax.scan(step, jnp.zeros((4, 4)), (jnp.arange(x.shape[0]), x))
h, ys = run(jax.random.normal(jax.random.key(0), (6, 4, 3)), jnp.array([6, 3, 2, 5]))
print(h)
""",
        "keep",
        WARNING,
    ),
    "in a class": Case(
        HEAD
        + """\
class Enc(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.LSTMCell(2, 3, rngs=rngs)
    def __call__(self, x, lens):
        carry = self.cell.initialize_carry((x.shape[0], 2), nnx.Rngs(0))
        ts = jnp.arange(x.shape[1])
        def f(c, i):
            t, xt = i
            n, y = self.cell(c, xt)
            ok = (t < lens)
            return (jnp.where(ok, n[0], c[0]), jnp.where(ok, n[1], c[1])), y * ok
        return jax.lax.scan(f, carry, (ts, jnp.swapaxes(x, 0, 1)))
m = Enc(nnx.Rngs(0))
carry, ys = m(jax.random.normal(jax.random.key(0), (3, 5, 2)), jnp.array([5, 2, 3]))
print(carry)
""",
        "ok",
        WARNING,
    ),
    "after a layer": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (4, 5, 3))
lengths = jnp.array([5, 0, 2, 5])
h, ys = rnn(x, seq_lengths=lengths)
h = jnp.where(lengths > 0, h, 0.0)
print(h)
""",
        "lengths > 0",
        WARNING,
        check="assert not h[1].any() and h[0].all()",
    ),
    "in a loop": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (4, 6, 3))
mask = jnp.arange(6) < jnp.array([6, 3, 2, 5])[:, None]
h = jnp.zeros((4, 4))
for t in range(6):
    new, y = cell(h, x[:, t])
    h = jnp.where(mask[:, t], new, h)
print(h)
""",
        "mask[:, t]",
        WARNING,
    ),
    "episodes that end": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
dones = jnp.zeros((6, 4), bool).at[2, 1].set(True).at[4, 3].set(True)
def step(h, inputs):
    x_t, done = inputs
    h = jnp.where(done, jnp.zeros_like(h), h)
    h, y = cell(h, x_t)
    return h, y
h, ys = jax.lax.scan(step, jnp.zeros((4, 4)), (x, dones))
print(h)
""",
        "done",
        WARNING,
    ),
    "by name, closed over": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
alive = jnp.array([True, False, True, True])
def step(h, x):
    new, y = cell(h, x)
    return jnp.where(alive, new, h), y
print(jax.lax.scan(step, jnp.zeros((4, 4)), jnp.ones((5, 4, 3)))[0])
""",
        "alive",
        WARNING,
    ),
    "in a dict": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
mask = jnp.arange(6)[:, None] < jnp.array([6, 3, 2, 5])
def step(h, d):
    new, y = cell(h, d["x"])
    return jnp.where(d["m"], new, h), y
print(jax.lax.scan(step, jnp.zeros((4, 4)), {"x": jnp.ones((6, 4, 3)), "m": mask})[0])
""",
        'd["m"]',
        WARNING,
    ),
    "a cell by hand": Case(
        HEAD
        + """\
w = jax.random.normal(jax.random.key(0), (3, 4))
u = jnp.eye(4)
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
mask = jnp.arange(6)[:, None] < jnp.array([6, 3, 2, 5])
def step(h, i):
    v, m = i
    new = jnp.tanh(v @ w + h @ u)
    h = m * new + (1 - m) * h
    return h, h
print(jax.lax.scan(step, jnp.zeros((4, 4)), (x, mask))[0])
""",
        "m",
        WARNING,
    ),
    "other sizes": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 5, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
lengths = jnp.array([6, 3, 2, 5])
mask = jnp.arange(6)[:, None] < lengths
def step(h, inputs):
    x_t, keep = inputs
    new, y = cell(h, x_t)
    return jnp.where(keep, new, h), y
h, ys = jax.lax.scan(step, jnp.zeros((4, 5)), (x, mask))
print(h)
""",
        "keep",
        ERROR,
    ),
    "other sizes, by hand": Case(
        HEAD
        + """\
w = jax.random.normal(jax.random.key(0), (3, 5))
u = jnp.eye(5)
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
mask = jnp.arange(6)[:, None] < jnp.array([6, 3, 2, 5])
def step(h, i):
    v, m = i
    new = jnp.tanh(v @ w + h @ u)
    h = m * new + (1 - m) * h
    return h, h
print(jax.lax.scan(step, jnp.zeros((4, 5)), (x, mask))[0])
""",
        "m",
        ERROR,
    ),
    "other sizes, in a loop": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 5, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (4, 6, 3))
mask = jnp.arange(6) < jnp.array([6, 3, 2, 5])[:, None]
h = jnp.zeros((4, 5))
for t in range(6):
    new, y = cell(h, x[:, t])
    h = jnp.where(mask[:, t], new, h)
print(h)
""",
        "mask[:, t]",
        ERROR,
    ),
}

FINE = {
    "units cut out": HEAD
    + """\
B = H = 4
cell = nnx.GRUCell(3, H, rngs=nnx.Rngs(0))
lesion = jnp.array([1.0, 0.0, 1.0, 1.0])
def step(h, x):
    h, y = cell(h * lesion, x)
    return h, y
h, ys = jax.lax.scan(step, jnp.zeros((B, H)), jax.random.normal(jax.random.key(0), (5, B, 3)))
print(h.shape)
""",
    "zoneout": HEAD
    + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
keep = jax.random.bernoulli(jax.random.key(1), 0.9, (6, 4))
def step(h, inp):
    x_t, k = inp
    new, y = cell(h, x_t)
    return jnp.where(k, h, new), y
print(jax.lax.scan(step, jnp.zeros((4, 4)), (x, keep))[0])
""",
    "clockwork": HEAD
    + """\
cell = nnx.SimpleCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (8, 4, 3))
periods = jnp.array([1, 2, 4, 8])
def step(h, inp):
    t, x_t = inp
    new, y = cell(h, x_t)
    return jnp.where(t % periods == 0, new, h), y
print(jax.lax.scan(step, jnp.zeros((4, 4)), (jnp.arange(8), x))[0])
""",
    "a column": HEAD
    + """\
cell = nnx.GRUCell(4, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (4, 4, 4))
lengths = jnp.array([4, 3, 2, 1])
mask = jnp.arange(4)[:, None] < lengths
def step(h, inp):
    x_t, m = inp
    new, y = cell(h, x_t)
    return jnp.where(m[:, None], new, h), y * m[:, None]
print(jax.lax.scan(step, jnp.zeros((4, 4)), (x, mask))[0])
""",
    "a column as factor": HEAD
    + """\
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (5, 4, 3))
mask = (jnp.arange(5)[:, None] < jnp.array([5, 3, 1, 2])).astype(jnp.float32)
def step(carry, inp):
    x_t, m = inp
    new, y = cell(carry, x_t)
    m = m[:, None]
    carry = jax.tree.map(lambda n, o: m * n + (1 - m) * o, new, carry)
    return carry, y
print(jax.lax.scan(step, cell.initialize_carry((4, 3), nnx.Rngs(0)), (x, mask))[0])
""",
    "a column in xs": HEAD
    + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (5, 4, 3))
mask = jnp.arange(5)[:, None, None] < jnp.array([5, 3, 1, 2])[None, :, None]
def step(h, inp):
    x_t, m = inp
    new, y = cell(h, x_t)
    return jnp.where(m, new, h), y
print(jax.lax.scan(step, jnp.zeros((4, 4)), (x, mask))[0])
""",
    "one example at a time": HEAD
    + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (4, 5, 3))
lengths = jnp.array([5, 3, 1, 2])
def one(xs, n):
    def step(h, inp):
        t, x_t = inp
        new, y = cell(h, x_t)
        return jnp.where(t < n, new, h), y
    return jax.lax.scan(step, jnp.zeros(4), (jnp.arange(5), xs))
h, ys = jax.vmap(one)(x, lengths)
print(h.shape)
""",
    "keys of attention": HEAD
    + """\
T = 6
scores = jax.random.normal(jax.random.key(0), (T, T))
valid = jnp.arange(T) < 4
weights = jax.nn.softmax(jnp.where(valid, scores, -1e9), axis=-1)
print(jax.lax.scan(lambda c, w: (c + w.sum(), None), 0.0, weights)[0])
""",
    "keys of attention, in a batch": HEAD
    + """\
q = jax.random.normal(jax.random.key(0), (3, 4, 4))
mask = jnp.arange(4) < jnp.array([4, 2, 3])[:, None]
def one(s, m):
    return jax.nn.softmax(jnp.where(m, s, -1e9), -1)
w = jax.vmap(one)(q, mask)
for b in range(3):
    s = jnp.where(mask[b], q[b], -1e9)
print(w.shape, s.shape)
""",
    "gain and bias": HEAD
    + """\
cell = nnx.SimpleCell(4, 4, rngs=nnx.Rngs(0))
gain, bias = jnp.ones(4), jnp.zeros(4)
def step(h, x):
    h, y = cell(h, x)
    h = (h - h.mean(-1, keepdims=True)) / (h.std(-1, keepdims=True) + 1e-5) * gain + bias
    return h, y
print(jax.lax.scan(step, jnp.zeros((4, 4)), jnp.ones((5, 4, 4)))[0])
""",
    "decay": HEAD
    + """\
tau = jnp.array([1.0, 2.0, 4.0])
def step(h, x):
    h = h * jnp.exp(-1 / tau) + x
    return h, h
print(jax.lax.scan(step, jnp.zeros((3, 3)), jax.random.normal(jax.random.key(0), (5, 3, 3)))[0])
""",
    "episodes, a column": HEAD
    + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
obs = jax.random.normal(jax.random.key(0), (6, 4, 3))
done = jnp.zeros((6, 4), bool).at[2, 1].set(True)
def step(h, inp):
    o, d = inp
    h = jnp.where(d[:, None], 0.0, h)
    h, y = cell(h, o)
    return h, y
print(jax.lax.scan(step, jnp.zeros((4, 4)), (obs, done))[0])
""",
    "weights of examples": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (4, 5, 3))
h, ys = rnn(x)
scale = jnp.array([0.1, 1.0, 2.0, 1.0])
valid = jnp.array([True, True, False, True])
per_example = (h * scale).sum(-1)
print((per_example * valid).sum() / valid.sum(), jnp.where(valid[:, None], h, 0.0).sum())
""",
    "delays of units": HEAD
    + """\
delay = jnp.array([1, 3, 2])
def step(h, t):
    h = jnp.where(t < delay, h, h + 1.0)
    return h, h
print(jax.lax.scan(step, jnp.zeros((3, 3)), jnp.arange(5))[0])
""",
    "examples against examples": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (4, 5, 3))
lengths = jnp.array([5, 4, 2, 1])
h, ys = rnn(x, seq_lengths=lengths)
sim = h @ h.T
print((sim * (lengths > 1)).sum(), jnp.where(jnp.arange(4) < 2, sim, 0.0))
""",
    "a column by expand_dims": HEAD
    + """\
cell = nnx.LSTMCell(3, 3, rngs=nnx.Rngs(0))
mask = jnp.array([[1, 1, 1], [1, 1, 0], [1, 0, 0]])
x = jax.random.normal(jax.random.key(0), (3, 3, 3))
def step(carry, inp):
    x_t, m_t = inp
    (c, h), y = cell(carry, x_t)
    keep = jnp.expand_dims(m_t, -1)
    c = keep * c + (1 - keep) * carry[0]
    h = keep * h + (1 - keep) * carry[1]
    return (c, h), y
print(jax.lax.scan(step, cell.initialize_carry((3, 3), nnx.Rngs(0)), (x, mask))[0][1])
""",
    "last valid output": HEAD
    + """\
B = T = H = 4
rnn = nnx.RNN(nnx.GRUCell(3, H, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (B, T, 3))
lengths = jnp.array([4, 3, 2, 1])
ys = rnn(x)
last = ys[jnp.arange(B), lengths - 1]
pos = jnp.arange(T)
w = (pos < lengths[:, None]).astype(float)
print(last.shape, jnp.einsum("bth,bt->bh", ys, w).shape, (w / lengths[:, None]).sum())
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_the_proof_changes_the_mask_of_one_example() -> None:
    violation = told(BAD["in xs"], CODE)
    assert violation.proof is not None
    assert violation.proof.claim == "The mask of one example was changed; this is how far the others move."
    counted = told(BAD["jitted"], CODE)
    assert counted.proof is not None
    assert (counted.proof.before, counted.proof.after) == (12.0, 0.0)
