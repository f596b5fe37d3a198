"""L313: a cell is built inside the step."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, WARNING, Case, quiet, told

CODE = "L313"

BAD = {
    "scan": Case(
        HEAD
        + """
def step(carry, x):
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    return cell(carry, x)
print(jax.lax.scan(step, (jnp.zeros((2, 4)),) * 2, jnp.ones((5, 2, 3)))[0])
""",
        "nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))",
        WARNING,
    ),
    "lambda": Case(
        HEAD
        + """
print(jax.lax.scan(lambda h, x: nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))(h, x), jnp.zeros((2, 4)), jnp.ones((5, 2, 3)))[0])
""",
        "nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))",
        WARNING,
    ),
    "local rngs": Case(
        HEAD
        + """
H = 4
@jax.jit
def run(xs):
    def go(h, x):
        r = nnx.Rngs(0)
        cell = nnx.GRUCell(3, H, rngs=r)
        h, y = cell(h, x)
        return h, y
    return jax.lax.scan(go, jnp.zeros((2, H)), xs)
print(run(jnp.ones((5, 2, 3)))[0])
""",
        "nnx.GRUCell(3, H, rngs=r)",
        WARNING,
    ),
    "outer rngs": Case(
        HEAD
        + """
rngs = nnx.Rngs(0)
def step(carry, x):
    cell = nnx.LSTMCell(3, 4, rngs=rngs)
    carry, y = cell(carry, x)
    return carry, y
print(jax.lax.scan(step, (jnp.zeros((2, 4)),) * 2, jnp.ones((5, 2, 3)))[0])
""",
        "nnx.LSTMCell(3, 4, rngs=rngs)",
        ERROR,
    ),
    "module": Case(
        HEAD
        + """
class M(nnx.Module):
    def __call__(self, xs):
        def step(carry, x):
            cell = nnx.OptimizedLSTMCell(3, 4, rngs=nnx.Rngs(0))
            return cell(carry, x)
        return jax.lax.scan(step, (jnp.zeros((2, 4)),) * 2, xs)
print(M()(jnp.ones((5, 2, 3)))[0])
""",
        "nnx.OptimizedLSTMCell(3, 4, rngs=nnx.Rngs(0))",
        WARNING,
    ),
    "loop": Case(
        HEAD
        + """
h = jnp.zeros((2, 4))
for t in range(4):
    cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(t))
    h, y = cell(h, jnp.ones((2, 3)))
print(h)
""",
        "nnx.GRUCell(3, 4, rngs=nnx.Rngs(t))",
        WARNING,
        fixed=False,
    ),
    "loop rngs": Case(
        HEAD
        + """
rngs = nnx.Rngs(0)
def one(h, x):
    cell = nnx.GRUCell(3, 4, rngs=rngs)
    return cell(h, x)
h = jnp.zeros((2, 4))
for t in range(4):
    h, y = one(h, jnp.ones((2, 3)))
print(h)
""",
        "nnx.GRUCell(3, 4, rngs=rngs)",
        WARNING,
        fixed=False,
    ),
    "nnxscan": Case(
        HEAD
        + """
@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))
def run(h, x):
    cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
    return cell(h, x)
print(run(jnp.zeros((2, 4)), jnp.ones((5, 2, 3)))[0])
""",
        "nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))",
        WARNING,
    ),
    "own module": Case(
        HEAD
        + """
class Net(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.GRUCell(3, 4, rngs=rngs)
    def __call__(self, h, x):
        return self.cell(h, x)
def step(h, x):
    net = Net(nnx.Rngs(0))
    h, y = net(h, x)
    return h, y
print(jax.lax.scan(step, jnp.zeros((2, 4)), jnp.ones((5, 2, 3)))[0])
""",
        "Net(nnx.Rngs(0))",
        WARNING,
    ),
    "in the call of a cell": Case(
        HEAD
        + """\
class MyCell(nnx.Module):
    def __init__(self, d):
        self.d = d
        self.in_features, self.hidden_features, self.num_feature_axes = 3, 4, 1
    def initialize_carry(self, input_shape, rngs):
        return (jnp.zeros((input_shape[0], 4)), jnp.zeros((input_shape[0], 4)))
    def __call__(self, carry, x):
        cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
        return cell(carry, x)
    @property
    def num_feature_dims(self):
        return 1
rnn = nnx.RNN(MyCell(4))
print(rnn(jnp.ones((2, 5, 3))).shape)
""",
        "nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))",
        WARNING,
    ),
    "in the call of a cell, jitted": Case(
        HEAD
        + """\
class Wrapped(nnx.RNNCellBase):
    def __init__(self, f, h):
        self.f, self.h = f, h
        self.in_features, self.hidden_features = f, h
    def initialize_carry(self, input_shape, rngs=None, **kw):
        return jnp.zeros((*input_shape[:-1], self.h))
    @property
    def num_feature_axes(self):
        return 1
    def __call__(self, h, x):
        inner = nnx.GRUCell(self.f, self.h, rngs=nnx.Rngs(1))
        h, y = inner(h, x)
        return h, jax.nn.relu(y)
@nnx.jit
def run(rnn, x):
    return rnn(x)
rnn = nnx.RNN(Wrapped(3, 4))
print(run(rnn, jnp.ones((2, 5, 3))).shape)
""",
        "nnx.GRUCell(self.f, self.h, rngs=nnx.Rngs(1))",
        WARNING,
    ),
}

FINE = {
    "outside": HEAD
    + """
@nnx.jit
def make():
    return nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
cell = make()
print(jax.lax.scan(lambda h, x: cell(h, x), jnp.zeros((2, 4)), jnp.ones((5, 2, 3)))[0])
@nnx.jit
def fresh(x):
    cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
    return cell(jnp.zeros((2, 4)), x)[1]
print(fresh(jnp.ones((2, 3))))
""",
    "layers": HEAD
    + """
y = jnp.ones((2, 4))
for i in range(3):
    cell = nnx.GRUCell(4, 4, rngs=nnx.Rngs(i))
    h = cell.initialize_carry(y.shape, nnx.Rngs(9))
    h, y = cell(h, y)
print(y)
@nnx.scan(in_axes=(0,), out_axes=0)
def build(key):
    return nnx.GRUCell(3, 4, rngs=nnx.Rngs(key))
print(build(jax.random.split(jax.random.key(0), 3)).dense_h.kernel.shape)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_parameters_are_counted() -> None:
    """A GRU of 3 features and 4 units: kernels (3, 12) and (4, 12), a bias of 12."""
    proof = told(BAD["lambda"], CODE).proof
    assert (proof.before, proof.after, proof.expected) == (0, 96, 96)
