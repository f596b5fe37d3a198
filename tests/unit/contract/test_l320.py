"""L320: a tuple is the carry of a cell that carries one array."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, WARNING, Case, quiet, told

CODE = "L320"

BAD = {
    "gru": Case(
        HEAD
        + """
g = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
h, y = g((jnp.zeros((2, 4)), jnp.zeros((2, 4))), jnp.ones((2, 3)))
print(y)
""",
        "(jnp.zeros((2, 4)), jnp.zeros((2, 4)))",
        ERROR,
    ),
    "simple": Case(
        HEAD
        + """
g = nnx.SimpleCell(3, 4, rngs=nnx.Rngs(0))
state = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))
h, y = g(state, jnp.ones((2, 3)))
print(y)
""",
        "state",
        WARNING,
    ),
    "scan GRUCell": Case(
        HEAD
        + """
g = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
init = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))
h, y = jax.lax.scan(lambda s, x: g(s, x), init, jnp.ones((5, 2, 3)))
print(y)
""",
        "s",
        ERROR,
    ),
    "scan direct GRUCell": Case(
        HEAD
        + """
g = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
init = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)).initialize_carry((2, 3), nnx.Rngs(1))
h, y = jax.lax.scan(g, init, jnp.ones((5, 2, 3)))
print(y)
""",
        "init",
        ERROR,
    ),
    "rnn GRUCell": Case(
        HEAD
        + """
class M(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=rngs))
    def __call__(self, x):
        return self.rnn(x, initial_carry=(jnp.zeros((2, 4)), jnp.zeros((2, 4))))
print(M(nnx.Rngs(0))(jnp.ones((2, 5, 3))))
""",
        "(jnp.zeros((2, 4)), jnp.zeros((2, 4)))",
        ERROR,
    ),
    "scan SimpleCell": Case(
        HEAD
        + """
g = nnx.SimpleCell(3, 4, rngs=nnx.Rngs(0))
init = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))
h, y = jax.lax.scan(lambda s, x: g(s, x), init, jnp.ones((5, 2, 3)))
print(y)
""",
        "s",
        ERROR,
    ),
    "scan direct SimpleCell": Case(
        HEAD
        + """
g = nnx.SimpleCell(3, 4, rngs=nnx.Rngs(0))
init = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)).initialize_carry((2, 3), nnx.Rngs(1))
h, y = jax.lax.scan(g, init, jnp.ones((5, 2, 3)))
print(y)
""",
        "init",
        ERROR,
    ),
    "rnn SimpleCell": Case(
        HEAD
        + """
class M(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.SimpleCell(3, 4, rngs=rngs))
    def __call__(self, x):
        return self.rnn(x, initial_carry=(jnp.zeros((2, 4)), jnp.zeros((2, 4))))
print(M(nnx.Rngs(0))(jnp.ones((2, 5, 3))))
""",
        "(jnp.zeros((2, 4)), jnp.zeros((2, 4)))",
        ERROR,
    ),
    "module": Case(
        HEAD
        + """
class M(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.GRUCell(3, 4, rngs=rngs)
    def __call__(self, x):
        c = jnp.zeros((x.shape[1], 4)); h = jnp.zeros((x.shape[1], 4))
        def step(carry, t):
            c, h = carry
            (c, h), y = self.cell((c, h), t)
            return (c, h), y
        return jax.lax.scan(step, (c, h), x)
print(M(nnx.Rngs(0))(jnp.ones((5, 2, 3))))
""",
        "(c, h)",
        ERROR,
        fixed=False,
    ),
}

FINE = {
    "one state": HEAD
    + """
cell = nnx.SimpleCell(3, 4, rngs=nnx.Rngs(0))
h, y = cell(jnp.zeros((2, 4)), jnp.ones((2, 3)))
h, y = cell([[0.0] * 4] * 2, jnp.ones((2, 3)))
lstm = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
carry, y = lstm((jnp.zeros((2, 4)), jnp.zeros((2, 4))), jnp.ones((2, 3)))
""",
    "a tuple of layers": HEAD
    + """
a = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)); b = nnx.GRUCell(4, 4, rngs=nnx.Rngs(1))
def step(carry, x):
    one, two = carry
    one, y = a(one, x)
    two, y = b(two, y)
    return (one, two), y
print(lax.scan(step, (jnp.zeros((2, 4)), jnp.zeros((2, 4))), jnp.ones((5, 2, 3)))[0])
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_what_is_wanted_is_said() -> None:
    violation = told(BAD["gru"], CODE)
    assert [str(leaf) for leaf in violation.expected] == ["float32[2,4]"]
    assert violation.jax_said is not None
