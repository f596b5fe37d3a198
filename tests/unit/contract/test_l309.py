"""L309: time-major data for a batch-major layer, or the reverse."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, NOTE, WARNING, Case, quiet, told

CODE = "L309"

BAD = {
    "names": Case(
        HEAD
        + """\
T, B, F = 7, 4, 3
x = jax.random.normal(jax.random.key(0), (T, B, F))
rnn = nnx.RNN(nnx.GRUCell(F, 5, rngs=nnx.Rngs(0)))
ys = rnn(x)
print(ys[-1])
""",
        "x",
        WARNING,
        check="assert jnp.allclose(ys, rnn(jnp.swapaxes(x, 0, 1)).swapaxes(0, 1), atol=1e-6)",
    ),
    "equal sizes, names": Case(
        HEAD
        + """\
seq_len, batch_size = 4, 4
x = jax.random.normal(jax.random.key(0), (seq_len, batch_size, 3))
rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
carry, ys = rnn(x)
print(ys[:, -1])
""",
        "x",
        WARNING,
        check="assert ys.shape == (4, 4, 5)",
    ),
    "batch first, layer told time": Case(
        HEAD
        + """\
B, T, F = 2, 6, 3
x = jnp.ones((B, T, F))
rnn = nnx.RNN(nnx.GRUCell(F, 5, rngs=nnx.Rngs(0)), time_major=True)
print(rnn(x)[:, -1])
""",
        "x",
        WARNING,
    ),
    "outputs of a scan": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 5, rngs=nnx.Rngs(0))
rnn = nnx.RNN(nnx.GRUCell(5, 6, rngs=nnx.Rngs(1)))
xs = jax.random.normal(jax.random.key(0), (7, 2, 3))
def step(h, x):
    h, y = cell(h, x)
    return h, y
h, ys = jax.lax.scan(step, jnp.zeros((2, 5)), xs)
print(rnn(ys))
""",
        "ys",
        WARNING,
    ),
    "in a class, behind a layer": Case(
        HEAD
        + """\
class M(nnx.Module):
    def __init__(self, rngs):
        self.emb = nnx.Linear(3, 8, rngs=rngs)
        self.rnn = nnx.RNN(nnx.GRUCell(8, 5, rngs=rngs))
        self.head = nnx.Linear(5, 2, rngs=rngs)
    def __call__(self, v):
        T, B, _ = v.shape
        v = self.emb(v)
        out = self.rnn(v)
        return self.head(out[-1])
m = M(nnx.Rngs(0))
print(m(jax.random.normal(jax.random.key(0), (7, 4, 3))))
""",
        "v",
        WARNING,
    ),
    "jitted, equal sizes": Case(
        HEAD
        + """\
class M(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(3, 5, rngs=rngs))
    def __call__(self, v):
        return self.rnn(v)
m = M(nnx.Rngs(0))
@nnx.jit
def go(m, data):
    return m(data)
T, B = 5, 5
print(go(m, jax.random.normal(jax.random.key(0), (T, B, 3))))
""",
        "v",
        WARNING,
    ),
    "axes exchanged": Case(
        HEAD
        + """\
B, T, F = 3, 6, 2
x = jax.random.normal(jax.random.key(0), (B, T, F))
rnn = nnx.RNN(nnx.GRUCell(F, 5, rngs=nnx.Rngs(0)))
xs = jnp.swapaxes(x, 0, 1)
print(rnn(xs))
""",
        "xs",
        WARNING,
    ),
    "lengths of the other axis": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (7, 4, 3))
n = jnp.array([7, 3, 2, 5])
carry, ys = rnn(x, seq_lengths=n)
print(carry)
""",
        "x",
        ERROR,
        check="assert carry.shape == (4, 5)",
    ),
    "lengths that nobody looks at": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 5, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (7, 4, 3))
n = jnp.array([7, 3, 2, 5])
ys = rnn(x, seq_lengths=n)
print(ys)
""",
        "x",
        WARNING,
    ),
    "initial carry of the other axis": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (7, 4, 3))
init = (jnp.zeros((4, 5)), jnp.zeros((4, 5)))
carry, ys = rnn(x, initial_carry=init)
print(ys)
""",
        "x",
        ERROR,
    ),
    "name": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
x_tbf = jax.random.normal(jax.random.key(0), (7, 4, 3))
carry, ys = rnn(x_tbf)
print(ys)
""",
        "x_tbf",
        WARNING,
    ),
    "comment": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (7, 4, 3))  # (T, B, F)
carry, ys = rnn(x)
print(ys)
""",
        "x",
        WARNING,
    ),
    "stacked steps": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 5, rngs=nnx.Rngs(0))
rnn = nnx.RNN(nnx.GRUCell(5, 6, rngs=nnx.Rngs(1)))
x = jax.random.normal(jax.random.key(0), (2, 7, 3))
h = jnp.zeros((2, 5))
outs = []
for t in range(7):
    h, y = cell(h, x[:, t])
    outs.append(y)
print(rnn(jnp.stack(outs)))
""",
        "jnp.stack(outs)",
        WARNING,
    ),
    "two layers, said once": Case(
        HEAD
        + """\
T, B, F = 7, 4, 3
x = jax.random.normal(jax.random.key(0), (T, B, F))
one = nnx.RNN(nnx.GRUCell(F, 5, rngs=nnx.Rngs(0)))
two = nnx.RNN(nnx.GRUCell(5, 5, rngs=nnx.Rngs(0)))
ys = two(one(x))
print(ys)
""",
        "x",
        WARNING,
    ),
    "a layer told otherwise": Case(
        HEAD
        + """\
x = jax.random.normal(jax.random.key(0), (7, 4, 3))
one = nnx.RNN(nnx.GRUCell(3, 5, rngs=nnx.Rngs(0)), time_major=True)
two = nnx.RNN(nnx.GRUCell(5, 5, rngs=nnx.Rngs(0)))
ys = two(one(x))
print(ys)
""",
        "one(x)",
        WARNING,
    ),
    "bidirectional": Case(
        HEAD
        + """\
T, B, F = 7, 4, 3
x = jax.random.normal(jax.random.key(0), (T, B, F))
r = nnx.Rngs(0)
bi = nnx.Bidirectional(nnx.RNN(nnx.GRUCell(F, 5, rngs=r)), nnx.RNN(nnx.GRUCell(F, 5, rngs=r)))
ys = bi(x)
print(ys)
""",
        "x",
        WARNING,
    ),
    "the same data scanned": Case(
        HEAD
        + """\
cell = nnx.GRUCell(3, 5, rngs=nnx.Rngs(0))
xs = jax.random.normal(jax.random.key(0), (7, 2, 3))
h, ys = jax.lax.scan(lambda h, x: cell(h, x), jnp.zeros((2, 5)), xs)
ref = nnx.RNN(cell)(xs)
print(jnp.abs(ys - ref).max())
""",
        "xs",
        WARNING,
        check="assert jnp.allclose(ys, ref, atol=1e-6)",
    ),
    "last of the batch into a layer": Case(
        HEAD
        + """\
x = jax.random.normal(jax.random.key(0), (7, 4, 3))
one = nnx.RNN(nnx.GRUCell(3, 5, rngs=nnx.Rngs(0)))
head = nnx.Linear(5, 1, rngs=nnx.Rngs(0))
ys = one(x)
print(head(ys[-1]))
""",
        "x",
        NOTE,
        fixed=False,
    ),
}

FINE = {
    "time-major, told": HEAD
    + """\
T, B, F = 7, 4, 3
xs = jax.random.normal(jax.random.key(0), (T, B, F))
rnn = nnx.RNN(nnx.GRUCell(F, 5, rngs=nnx.Rngs(0)), time_major=True)
ys = rnn(xs)
print(ys[-1].shape)
""",
    "batch-major, equal sizes": HEAD
    + """\
batch, seq_len, dim = 4, 4, 4
x = jax.random.normal(jax.random.key(0), (batch, seq_len, dim))
rnn = nnx.RNN(nnx.GRUCell(dim, 4, rngs=nnx.Rngs(0)))
print(rnn(x)[:, -1].shape)
""",
    "exchanged to batch-major": HEAD
    + """\
T, B, F = 7, 4, 3
xs = jax.random.normal(jax.random.key(0), (T, B, F))
rnn = nnx.RNN(nnx.GRUCell(F, 5, rngs=nnx.Rngs(0)))
ys = rnn(jnp.swapaxes(xs, 0, 1))
zs = rnn(xs.transpose(1, 0, 2))
ws = rnn(jnp.moveaxis(xs, 0, 1))
us = rnn(jnp.transpose(xs, (1, 0, 2)))
print(jnp.abs(ys - zs).max(), ws.shape, us.shape)
""",
    "exchanged for a scan": HEAD
    + """\
B, T, F = 4, 4, 3
x = jax.random.normal(jax.random.key(0), (B, T, F))
cell = nnx.GRUCell(F, 5, rngs=nnx.Rngs(0))
h, ys = jax.lax.scan(lambda h, x_t: cell(h, x_t), jnp.zeros((B, 5)), jnp.swapaxes(x, 0, 1))
ref = nnx.RNN(cell)(x)
print(jnp.abs(jnp.swapaxes(ys, 0, 1) - ref).max())
""",
    "ys exchanged back": HEAD
    + """\
cell = nnx.GRUCell(3, 5, rngs=nnx.Rngs(0))
top = nnx.RNN(nnx.GRUCell(5, 6, rngs=nnx.Rngs(1)))
h, ys = jax.lax.scan(lambda h, x: cell(h, x), jnp.zeros((4, 5)), jax.random.normal(jax.random.key(0), (7, 4, 3)))
print(top(ys.swapaxes(0, 1)).shape, top(ys, time_major=True).shape)
""",
    "a scan over examples": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 5, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
_, z = jax.lax.scan(lambda c, seq: (c + 1, seq * c), 1.0, x)
print(rnn(z).shape, rnn(jax.lax.map(lambda s: s - s.mean(0), x)).shape)
""",
    "layers in time": HEAD
    + """\
T, B = 6, 3
x = jnp.ones((T, B, 2))
one = nnx.RNN(nnx.GRUCell(2, 4, rngs=nnx.Rngs(0)), time_major=True)
two = nnx.RNN(nnx.GRUCell(4, 4, rngs=nnx.Rngs(1)), time_major=True, return_carry=True)
h, ys = two(one(x))
print(ys[-1].shape, h.shape)
""",
    "N, T, D": HEAD
    + """\
N, T, D = 4, 6, 3
x = jnp.ones((N, T, D))
assert x.shape == (N, T, D)
print(nnx.RNN(nnx.GRUCell(D, 5, rngs=nnx.Rngs(0)))(x).shape)
""",
    "generated by a scan": HEAD
    + """\
B, T, F = 4, 10, 3
keys = jax.random.split(jax.random.key(0), T)
def ar(s, k):
    s = 0.9 * s + jax.random.normal(k, s.shape)
    return s, s
_, xs = jax.lax.scan(ar, jnp.zeros((B, F)), keys)
rnn = nnx.RNN(nnx.GRUCell(F, 5, rngs=nnx.Rngs(0)))
print(rnn(xs.swapaxes(0, 1)).shape)
""",
    "mask from lengths": HEAD
    + """\
class Tagger(nnx.Module):
    def __init__(self, rngs):
        self.emb = nnx.Embed(11, 6, rngs=rngs)
        self.rnn = nnx.RNN(nnx.LSTMCell(6, 5, rngs=rngs))
        self.out = nnx.Linear(5, 3, rngs=rngs)
    def __call__(self, ids, lengths):
        batch, steps = ids.shape
        x = self.emb(ids)
        mask = jnp.arange(steps) < lengths[:, None]
        ys = self.rnn(x * mask[..., None], seq_lengths=lengths)
        logits = self.out(ys.reshape(batch * steps, -1)).reshape(batch, steps, 3)
        return jnp.where(mask[..., None], logits, 0.0)
m = Tagger(nnx.Rngs(0))
ids = jax.random.randint(jax.random.key(0), (4, 4), 0, 11)
print(m(ids, jnp.array([4, 2, 3, 1])).shape)
""",
    "shown examples": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
def f(x):
    ys = rnn(x)
    return ys.mean(), ys
loss, ys = f(x)
print(loss, ys[0].shape, ys[-1].shape)
""",
    "stacked groups": HEAD
    + """\
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
rnn = nnx.RNN(nnx.GRUCell(4, 4, rngs=nnx.Rngs(1)))
x = jax.random.normal(jax.random.key(0), (2, 7, 3))
outs = []
for g in range(2):
    h, y = cell(jnp.zeros((7, 4)), x[g])
    outs.append(y)
print(rnn(jnp.stack(outs)).shape)
""",
    "a decoder scanned": HEAD
    + """\
class S(nnx.Module):
    def __init__(self, rngs):
        self.enc = nnx.RNN(nnx.LSTMCell(3, 4, rngs=rngs), return_carry=True)
        self.dec = nnx.LSTMCell(2, 4, rngs=rngs)
        self.out = nnx.Linear(4, 2, rngs=rngs)
    def __call__(self, src, lengths, tgt):
        carry, _ = self.enc(src, seq_lengths=lengths)
        def step(carry, y):
            carry, h = self.dec(carry, y)
            return carry, self.out(h)
        _, logits = nnx.scan(step, in_axes=(nnx.Carry, 1), out_axes=(nnx.Carry, 1))(carry, tgt)
        return logits
m = S(nnx.Rngs(0))
print(m(jnp.ones((3, 6, 3)), jnp.array([6, 2, 3]), jnp.ones((3, 3, 2))).shape)
""",
    "equal sizes, no names": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (4, 4, 3))
print(rnn(x)[:, -1])
""",
    "names that contradict each other": HEAD
    + """\
T, B = 5, 4
x = jnp.ones((T, B, 3))
batch, steps, _ = x.shape
print(nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))(x))
""",
    "along the rows, then along the columns": HEAD
    + """\
# ReNet: one layer along the rows, one along the columns of a picture
h, w = 6, 6
image = jax.random.normal(jax.random.key(0), (h, w, 3))
rows = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
cols = nnx.RNN(nnx.GRUCell(4, 4, rngs=nnx.Rngs(1)))
y = rows(image)
y = cols(jnp.swapaxes(y, 0, 1))
print(jnp.swapaxes(y, 0, 1).shape)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_the_second_place_is_where_the_axes_are_named() -> None:
    violation = told(BAD["axes exchanged"], CODE)
    assert violation.because is not None
    assert violation.because.text == "its shape is written as (B, T, F) here, and its axes are exchanged later"


def test_the_proof_is_the_output_of_the_other_examples() -> None:
    """By hand: example 0 of (T, B, F) is changed, and the others are watched."""
    violation = told(BAD["names"], CODE)
    names: dict[str, object] = {}
    exec(BAD["names"].text, names)
    exec("far = float(abs(rnn(x.at[:, 0].add(0.1)) - ys)[:, 1:].max())", names)
    assert violation.proof is not None
    assert violation.proof.before >= names["far"] > 0
