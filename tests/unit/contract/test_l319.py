"""L319: what a layer returns is taken apart as a carry and outputs."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, NOTE, WARNING, Case, quiet, told

CODE = "L319"

BAD = {
    "two examples": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
carry, ys = rnn(x)
print(ys.shape)
""",
        "rnn(x)",
        WARNING,
        check="assert carry[0].shape == (2, 4) and ys.shape == (2, 5, 4)",
    ),
    "three examples": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (3, 5, 3))
carry, ys = rnn(x)
print(ys.shape)
""",
        "rnn(x)",
        ERROR,
    ),
    "one example": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (1, 5, 3))
h, out = rnn(x)
print(out.shape)
""",
        "rnn(x)",
        ERROR,
    ),
    "in a class": Case(
        HEAD
        + """\
class M(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=rngs))
        self.head = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, v):
        _, out = self.rnn(v)
        return self.head(out[-1])
m = M(nnx.Rngs(0))
print(m(jax.random.normal(jax.random.key(0), (2, 5, 3))).shape)
""",
        "self.rnn(v)",
        WARNING,
    ),
    "jitted": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
@nnx.jit
def f(r, v):
    state, out = r(v)
    return out.sum()
print(f(rnn, jax.random.normal(jax.random.key(0), (2, 5, 3))))
""",
        "r(v)",
        WARNING,
    ),
    "jitted, four examples": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
@nnx.jit
def f(r, v):
    state, out = r(v)
    return out.sum()
print(f(rnn, jax.random.normal(jax.random.key(0), (4, 5, 3))))
""",
        "r(v)",
        ERROR,
    ),
    "the pair taken apart too": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
(c, h), ys = rnn(x)
print(ys.shape)
""",
        "rnn(x)",
        ERROR,
        check="assert c.shape == h.shape == (2, 4)",
    ),
    "the pair, two steps": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 2, 3))
(c, h), ys = rnn(x)
print(ys.shape)
""",
        "rnn(x)",
        WARNING,
    ),
    "bidirectional": Case(
        HEAD
        + """\
r = nnx.Rngs(0)
rnn = nnx.Bidirectional(nnx.RNN(nnx.LSTMCell(3, 4, rngs=r)), nnx.RNN(nnx.LSTMCell(3, 4, rngs=r)))
x = jax.random.normal(jax.random.key(0), (2, 6, 3))
carry, ys = rnn(x)
print(ys.shape)
""",
        "rnn(x)",
        WARNING,
    ),
    "later, and handed on": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
res = rnn(x)
a, b = res
carry2, _ = rnn(x, initial_carry=a, return_carry=True)
""",
        "rnn(x)",
        ERROR,
    ),
    "pair for outputs: attribute": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
ys = rnn(x)
print(ys.shape)
""",
        "ys.shape",
        ERROR,
    ),
    "pair for outputs: item": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
ys = rnn(x, return_carry=True)
last = ys[:, -1]
print(last.shape)
""",
        "ys[:, -1]",
        ERROR,
        check="assert last.shape == (2, 4)",
    ),
    "pair for outputs: layer": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
head = nnx.Linear(4, 1, rngs=nnx.Rngs(1))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
print(head(rnn(x)).shape)
""",
        "head(rnn(x))",
        ERROR,
    ),
    "pair for outputs: gradient": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
def loss(r, v):
    o = r(v)
    return jnp.mean(o ** 2)
print(nnx.grad(loss)(rnn, x))
""",
        "o ** 2",
        ERROR,
    ),
    "no names": Case(
        HEAD
        + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
p, q = rnn(jnp.ones((2, 5, 3)))
print(p.shape)
""",
        "rnn(jnp.ones((2, 5, 3)))",
        NOTE,
    ),
}

FINE = {
    "rows by name": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
left, right = rnn(jax.random.normal(jax.random.key(0), (2, 5, 3)))
y1, y2 = rnn(jnp.ones((2, 5, 3)))
print(jnp.abs(left - right).max(), jnp.abs(y1 - y2).max())
""",
    "two twins": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
anchor, positive = rnn(jnp.stack([jnp.ones((5, 3)), jnp.zeros((5, 3))]))
print(jnp.sum((anchor[-1] - positive[-1]) ** 2))
""",
    "told at the call": HEAD
    + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
ys = rnn(jnp.ones((2, 5, 3)), return_carry=False)
(c, h), zs = rnn(jnp.ones((2, 5, 3)))
print(ys.shape, zs.shape, h.shape)
""",
    "the pair kept": HEAD
    + """\
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
result = rnn(jnp.ones((3, 5, 3)))
print(result[1][:, -1].shape, jax.tree.map(jnp.shape, result))
""",
    "halves of the features": HEAD
    + """\
r = nnx.Rngs(0)
bi = nnx.Bidirectional(nnx.RNN(nnx.GRUCell(3, 4, rngs=r)), nnx.RNN(nnx.GRUCell(3, 4, rngs=r)))
ys = bi(jnp.ones((2, 5, 3)))
forward, backward = jnp.split(ys, 2, axis=-1)
print(forward.shape, backward.shape)
""",
    "loss and outputs": HEAD
    + """\
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
def f(x):
    ys = rnn(x)
    return ys.mean(), ys
loss, ys = f(x)
print(loss, ys[0].shape, ys[-1].shape)
""",
    "layers in a loop": HEAD
    + """\
cells = [nnx.GRUCell(3 if i == 0 else 4, 4, rngs=nnx.Rngs(i)) for i in range(2)]
y = jax.random.normal(jax.random.key(0), (4, 4, 3))
for cell in cells:
    y = nnx.RNN(cell)(y)
print(y.shape)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_one_message_where_the_rows_are_taken_for_a_carry_later() -> None:
    """A cell that gets them raises, and says why: the cause is said, not that."""
    violation = told(BAD["later, and handed on"], CODE)
    assert violation.path == "carry"
