"""R405: NumPy's and Python's numbers, or the clock, in a traced function."""

from __future__ import annotations

import numpy as np
import pytest

from core.base.violation import Severity
from core.doctor.instrument import Prepare
from tests.unit.contract.keys_support import HEAD, LANGUAGES, code_at, fixed, found, ran, silent

NUMPY = HEAD + "import numpy as np\n"
BAD = {
    "numpy": NUMPY
    + """\
def step(p, _):
    p = p + np.random.normal()
    return p, p
print(jax.lax.scan(step, 0.0, None, length=4))
""",
    "two_draws": NUMPY
    + """\
def step(p, x):
    p = p + x + np.random.normal(0.0, 0.1, size=(3,)) + np.random.rand(3)
    return p, p
print(jax.lax.scan(step, jnp.zeros(3), jnp.ones((5, 3))))
""",
    "generator": NUMPY
    + """\
rng = np.random.default_rng(0)
class W:
    def step(self, p, x):
        return p + rng.standard_normal(size=2).astype(np.float32), x
    def run(self): return jax.lax.scan(self.step, jnp.zeros(2), jnp.arange(4))
print(W().run())
""",
    "python_random": NUMPY
    + """\
import random
from random import gauss
print(jax.lax.scan(lambda c, x: (c + random.random() + gauss(0, 2), c), 0.0, jnp.ones(3)))
""",
    "clock": NUMPY
    + """\
import time
def step(c, x):
    t = time.time()
    return c + x, t
print(jax.lax.scan(step, 0.0, jnp.ones(3))[0])
""",
    "in_jit": NUMPY
    + """\
@jax.jit
def noisy(x):
    return x + np.random.randn(3)
print(noisy(jnp.ones(3)) - noisy(jnp.ones(3)))
""",
    "fori_loop": NUMPY
    + """\
print(jax.lax.fori_loop(0, 5, lambda i, c: c + np.random.uniform(), 0.0))
""",
    "in_vmap": NUMPY
    + """\
def run(x0):
    def step(c, x):
        return c * np.random.uniform(0.5, 1.5) + x, c
    return jax.lax.scan(step, x0, jnp.arange(4.0))
print(jax.vmap(run)(jnp.arange(3.0)))
""",
}

USED = {
    "numpy": ["np.random.normal()"],
    "two_draws": ["np.random.normal(0.0, 0.1, size=(3,))", "np.random.rand(3)"],
    "generator": ["rng.standard_normal(size=2)"],
    "python_random": ["random.random()", "gauss(0, 2)"],
    "clock": ["time.time()"],
    "in_jit": ["np.random.randn(3)"],
    "fori_loop": ["np.random.uniform()"],
    "in_vmap": ["np.random.uniform(0.5, 1.5)"],
}
GOOD = {
    "drawn_outside": NUMPY
    + """\
xs = np.random.normal(size=(4, 3)).astype(np.float32)
w = np.random.default_rng(0).normal(size=3).astype(np.float32)
print(jax.lax.scan(lambda c, x: (c + w * x, c), jnp.zeros(3), xs))
""",
    "under_grad_alone": NUMPY
    + """\
def loss(w):
    return jnp.sum((w - np.random.normal()) ** 2)
for _ in range(3):
    print(jax.grad(loss)(jnp.ones(2)).shape)
""",
    "python_loop": NUMPY
    + """\
import time
t0 = time.perf_counter()
step = jax.jit(lambda c, x: c + x)
c = 0.0
for t in range(3):
    c = step(c, np.random.normal())
print(time.perf_counter() - t0 > 0)
""",
    "jax_random": NUMPY
    + """\
from jax import random
def step(c, k):
    return c + random.normal(k), c
print(jax.lax.scan(step, 0.0, random.split(random.key(0), 3)))
""",
}


@pytest.mark.parametrize("name", BAD)
def test_r405_each_frozen_call_is_named(name: str) -> None:
    violations, _ = found(BAD[name], "R405")
    assert [code_at(BAD[name], v) for v in violations] == USED[name]
    assert all(v.severity is Severity.WARNING and v.silent for v in violations)
    assert all(v.proof is not None and v.proof.before >= 1 for v in violations)


@pytest.mark.parametrize("name", GOOD)
def test_numbers_that_are_not_frozen_are_no_fault(name: str) -> None:
    assert not found(GOOD[name], "R405")[0]
    silent(GOOD[name], "R405")


@pytest.mark.parametrize("name", ["numpy", "generator", "in_vmap"])
def test_a_fix_draws_at_every_step(name: str) -> None:
    text, _ = fixed(BAD[name], "R405")
    ran(text)


def test_the_fixed_draws_have_the_shape_and_the_spread_that_were_asked_for() -> None:
    script = (
        NUMPY
        + """\
def step(c, x):
    e = np.random.normal(10.0, 0.1, size=(3,))
    return c + x, e
c, es = jax.lax.scan(step, 0.0, jnp.ones(50))
"""
    )
    assert len(np.unique(np.asarray(ran(script)["es"]))) == 3
    es = np.asarray(ran(fixed(script, "R405")[0])["es"])
    assert es.shape == (50, 3)
    assert len(np.unique(es)) > 140
    assert abs(es.mean() - 10.0) < 0.1
    assert es.std() < 0.2


def test_one_step_freezes_nothing() -> None:
    assert not found(
        NUMPY + "print(jax.lax.scan(lambda c, x: (c + np.random.normal(), x), 0.0, jnp.ones(1))[0])", "R405"
    )[0]


@pytest.mark.parametrize("prepare", LANGUAGES, ids=["python", "sandbox"])
def test_both_languages_say_the_same(prepare: Prepare) -> None:
    assert len(found(BAD["python_random"], "R405", prepare=prepare)[0]) == 2
    assert len(found(BAD["generator"], "R405", prepare=prepare)[0]) == 1


def test_a_generator_of_python_is_one_too_and_a_class_of_that_name_is_none() -> None:
    scan = "print(jax.lax.scan(lambda c, x: (c + dice.random(), x), 0.0, jnp.ones(3))[0])"
    assert len(found(f"{HEAD}import random\ndice = random.Random(0)\n{scan}", "R405")[0]) == 1
    own = "class Random:\n    def random(self):\n        return 4.0\ndice = Random()\n"
    assert not found(HEAD + own + scan, "R405")[0]
