"""L322: an initializer factory is passed uncalled."""

from __future__ import annotations

import pytest

from core.base.outcome import Outcome
from core.doctor.check import check_script
from tests.unit.contract.cell_scripts import ERROR, HEAD, WARNING, Case, quiet, told

CODE = "L322"

BAD = {
    "carry-init-is-a-factory": Case(
        """\
import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
def step(h, x):
    return cell(h, x)
init = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.normal)
xs = jnp.ones((5, 2, 3))
carry, ys = jax.lax.scan(step, init, xs)
print("carry", carry)
print("ys", ys)""",
        "cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.normal)",
        ERROR,
        check="assert ys.shape==(5,2,4) and float(jnp.abs(init).max())>0",
    ),
    "carry normal": Case(
        HEAD
        + """
def go():
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    init = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.normal)
    return jax.lax.scan(cell, init, jnp.ones((5, 2, 3)))
print(go()[0])
""",
        "cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.normal)",
        ERROR,
    ),
    "kernel normal": Case(
        HEAD
        + """
class M(nnx.Module):
    def __init__(self, init, rngs):
        self.cell = nnx.GRUCell(3, 4, recurrent_kernel_init=init, rngs=rngs)
    def __call__(self, x):
        return nnx.RNN(self.cell)(x)
m = M(nnx.initializers.normal, nnx.Rngs(0))
print(m(jnp.ones((2, 5, 3))))
""",
        "nnx.GRUCell(3, 4, recurrent_kernel_init=init, rngs=rngs)",
        ERROR,
    ),
    "carry zeros_init": Case(
        HEAD
        + """
def go():
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    init = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.zeros_init)
    return jax.lax.scan(cell, init, jnp.ones((5, 2, 3)))
print(go()[0])
""",
        "cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.zeros_init)",
        ERROR,
    ),
    "carry constant": Case(
        HEAD
        + """
def go():
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    init = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.constant)
    return jax.lax.scan(cell, init, jnp.ones((5, 2, 3)))
print(go()[0])
""",
        "cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.constant)",
        ERROR,
    ),
    "carry lecun_normal": Case(
        HEAD
        + """
def go():
    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    init = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.lecun_normal)
    return jax.lax.scan(cell, init, jnp.ones((5, 2, 3)))
print(go()[0])
""",
        "cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.lecun_normal)",
        ERROR,
    ),
    "kernel lecun_normal": Case(
        HEAD
        + """
class M(nnx.Module):
    def __init__(self, init, rngs):
        self.cell = nnx.GRUCell(3, 4, recurrent_kernel_init=init, rngs=rngs)
    def __call__(self, x):
        return nnx.RNN(self.cell)(x)
m = M(nnx.initializers.lecun_normal, nnx.Rngs(0))
print(m(jnp.ones((2, 5, 3))))
""",
        "nnx.GRUCell(3, 4, recurrent_kernel_init=init, rngs=rngs)",
        ERROR,
    ),
    "partial": Case(
        HEAD
        + """
cell = nnx.LSTMCell(3, 4, kernel_init=partial(nnx.initializers.normal, 0.1), rngs=nnx.Rngs(0))
""",
        "nnx.LSTMCell(3, 4, kernel_init=partial(nnx.initializers.normal, 0.1), rngs=nnx.Rngs(0))",
        ERROR,
    ),
    "own": Case(
        HEAD
        + """
def tiny(scale=0.1):
    def init(key, shape, dtype):
        return scale * jax.random.normal(key, shape, dtype)
    return init
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
c = cell.initialize_carry((2, 3), nnx.Rngs(0), tiny)
""",
        "cell.initialize_carry((2, 3), nnx.Rngs(0), tiny)",
        ERROR,
    ),
    "own kw": Case(
        HEAD
        + """
def tiny(scale=0.1):
    def init(key, shape, dtype):
        return scale * jax.random.normal(key, shape, dtype)
    return init
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
c = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=tiny)
""",
        "cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=tiny)",
        ERROR,
    ),
    "silent": Case(
        HEAD
        + """
lin = nnx.Linear(3, 4, kernel_init=jax.nn.initializers.he_normal, rngs=nnx.Rngs(0))
print(type(lin))
""",
        "nnx.Linear(3, 4, kernel_init=jax.nn.initializers.he_normal, rngs=nnx.Rngs(0))",
        WARNING,
    ),
}

FINE = {
    "ok": HEAD
    + """
def mine(key, shape, dtype=jnp.float32): return jnp.ones(shape, dtype)
cell = nnx.LSTMCell(3, 4, kernel_init=nnx.initializers.lecun_normal(), bias_init=nnx.initializers.zeros, recurrent_kernel_init=lambda k, s, d: jnp.zeros(s, d), rngs=nnx.Rngs(0))
c = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=mine)
c = cell.initialize_carry((2, 3), nnx.Rngs(0), carry_init=nnx.initializers.ones)
class L(nnx.Module):
    def __init__(self, kernel_init, rngs):
        self.l = nnx.Linear(3, 4, kernel_init=kernel_init(0.1), rngs=rngs)
L(kernel_init=nnx.initializers.normal, rngs=nnx.Rngs(0))
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_the_message_names_the_argument() -> None:
    violation = told(BAD["own"], CODE)
    assert violation.message.startswith("carry_init is tiny, which returns an initializer")


@pytest.mark.parametrize(
    "factory", ["nnx.initializers.zeros_init", "nnx.initializers.lecun_normal", "jax.nn.initializers.orthogonal"]
)
@pytest.mark.parametrize("key", ["jax.random.key(0)", "jax.random.PRNGKey(0)"])
def test_l322_a_factory_that_is_given_what_its_initializer_takes(factory, key):
    text = (
        "import jax, jax.numpy as jnp\nfrom flax import nnx\n"
        f"cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))\nmake = {factory}\n"
        f"h, y = cell(make({key}, (2, 4), jnp.float32), jnp.ones((2, 3)))\n"
    )
    checkup = check_script(text)
    assert "L322" in checkup.report.codes
    violation = next(v for v in checkup.report.violations if v.code == "L322")
    assert violation.place.line == 5
    source = checkup.sources[checkup.report.violations.index(violation)][0]
    assert f"make()({key}" in source
    assert check_script(source, fixes=False).report.outcome is Outcome.OK


def test_l322_an_initializer_called_as_it_wants_is_none():
    text = (
        "import jax, jax.numpy as jnp\nfrom flax import nnx\n"
        "a = nnx.initializers.zeros(jax.random.key(0), (2, 4))\nb = nnx.initializers.lecun_normal()(jax.random.key(0), (2, 4))\n"
        "def own(key, shape):\n    return jax.random.normal(key, shape)\nc = own(jax.random.key(1), (2, 4))\n"
    )
    assert check_script(text).report.codes == ()
