"""L315: Linen where NNX is meant, or the two mixed."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, NOTE, WARNING, Case, look, quiet, told

CODE = "L315"

BAD = {
    "old": Case(
        """\
from flax.experimental import nnx
import jax.numpy as jnp
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
print(cell(jnp.zeros((2,4)), jnp.ones((2,3)))[1])
""",
        "from flax.experimental import nnx",
        NOTE,
    ),
    "old2": Case(
        """\
import flax.experimental.nnx as nnx
import jax.numpy as jnp
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
print(cell(jnp.zeros((2,4)), jnp.ones((2,3)))[1])
""",
        "import flax.experimental.nnx as nnx",
        NOTE,
    ),
    "rngs": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

cell = nn.LSTMCell(3, 4, rngs=nnx.Rngs(0))
carry = cell.initialize_carry((2, 3), nnx.Rngs(1))
print(cell(carry, jnp.ones((2, 3)))[1])
""",
        "nn.LSTMCell(3, 4, rngs=nnx.Rngs(0))",
        ERROR,
    ),
    "unbound": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

cell = nn.GRUCell(features=4)
h, y = cell(jnp.zeros((2, 4)), jnp.ones((2, 3)))
print(y)
""",
        "cell(jnp.zeros((2, 4)), jnp.ones((2, 3)))",
        ERROR,
    ),
    "dense": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

class M(nnx.Module):
    def __init__(self):
        self.d = nn.Dense(4)
    def __call__(self, x):
        return self.d(x)
print(M()(jnp.ones((2, 3))))
""",
        "self.d(x)",
        ERROR,
    ),
    "scan": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

cell = nn.GRUCell(features=4)
print(jax.lax.scan(lambda h, x: cell(h, x), jnp.zeros((2, 4)), jnp.ones((5, 2, 3)))[0])
""",
        "cell(h, x)",
        ERROR,
    ),
    "apply": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

m = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
print(m.apply({}, jnp.ones((2, 3))))
""",
        "m.apply",
        ERROR,
    ),
    "init": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

m = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
v = m.init(jax.random.key(0), jnp.ones((2, 3)))
""",
        "m.init",
        ERROR,
        fixed=False,
    ),
    "features": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

m = nnx.LSTMCell(features=4, rngs=nnx.Rngs(0))
""",
        "nnx.LSTMCell(features=4, rngs=nnx.Rngs(0))",
        ERROR,
        fixed=False,
    ),
    "Dense": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

m = nnx.Dense(4, rngs=nnx.Rngs(0))
""",
        "nnx.Dense",
        ERROR,
        fixed=False,
    ),
    "rnn": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

m = nnx.RNN(nn.LSTMCell(4))
print(m(jnp.ones((2, 5, 3))))
""",
        "m(jnp.ones((2, 5, 3)))",
        ERROR,
    ),
    "inside": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

class M(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Dense(3)(x)
        return nnx.Linear(3, 4, rngs=nnx.Rngs(0))(x)
v = M().init(jax.random.key(0), jnp.ones((2, 3)))
print(M().apply(v, jnp.ones((2, 3))))
""",
        "nnx.Linear(3, 4, rngs=nnx.Rngs(0))",
        WARNING,
    ),
}

FINE = {
    "linen": HEAD
    + """\
import optax
from flax import linen as nn

cell = nn.LSTMCell(features=5)
carry = cell.initialize_carry(jax.random.key(0), (2, 3))
v = cell.init(jax.random.key(1), carry, jnp.ones((2, 3)))
carry, out = jax.lax.scan(lambda c, x: cell.apply(v, c, x), carry, jnp.ones((6, 2, 3)))
lin = nnx.Linear(3, 4, rngs=nnx.Rngs(0))
print(lin(jnp.ones((2, 3))).shape)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_a_bridge_is_no_mistake() -> None:
    text = BAD["inside"].text.replace("nnx.Linear(3, 4, rngs=nnx.Rngs(0))", "nnx.bridge.to_linen(nnx.Linear, 3, 4)")
    report = look(text, fixes=False).report
    assert CODE not in report.codes
    assert report.error is None
