"""R402: a key is used twice, and uses of one key that are meant."""

from __future__ import annotations

import jax
import pytest

from core.base.violation import Severity
from core.doctor.check import check_script
from tests.unit.contract.keys_support import HEAD, NNX, code_at, fixed, found, only, ran, silent

BAD = {
    "used_then_split": HEAD
    + """\
key = jax.random.key(0)
x = jax.random.normal(key, (3,))
key, sub = jax.random.split(key)
y = jax.random.normal(sub, (3,))
print(x, y, jax.random.uniform(key))
""",
    "normal_and_uniform": HEAD
    + """\
key = jax.random.PRNGKey(0)
x = jax.random.normal(key, (8, 3))
w = jax.random.uniform(key, (3,))
print(x @ w)
""",
    "in_a_step": HEAD
    + """\
def step(carry, _):
    key, h = carry
    h = h + jax.random.normal(key)
    key, _ = jax.random.split(key)
    return (key, h), h
print(jax.lax.scan(step, (jax.random.PRNGKey(0), 0.0), length=5))
""",
    "in_jit": HEAD
    + """\
from jax import random
def noisy(rng, x):
    a = random.normal(rng, x.shape)
    b = random.bernoulli(rng, 0.5, x.shape)
    return x + a * b
print(jax.jit(noisy)(random.key(1), jnp.ones(4)))
""",
    "python_loop": HEAD
    + """\
key = jax.random.key(0)
x = 0.0
for t in range(4):
    x = x + jax.random.normal(key)
print(x)
""",
    "item_of_keys": HEAD
    + """\
keys = jax.random.split(jax.random.PRNGKey(0), 3)
a = jax.random.normal(keys[0], (2,))
b = jax.random.uniform(keys[0], (3,))
print(a, b)
""",
    "through_a_helper": HEAD
    + """\
def noise(k): return jax.random.normal(k)
def step(carry, _):
    key, h = carry
    h = h + noise(key)
    key, _ = jax.random.split(key)
    return (key, h), h
print(jax.lax.scan(step, (jax.random.key(0), 0.0), length=5))
""",
    "twice_in_one_expression": HEAD
    + """\
def step(c, key):
    return c + jax.random.normal(key) * jax.random.exponential(key), c
print(jax.lax.scan(step, 0.0, jax.random.split(jax.random.key(0), 4)))
""",
    "two_shapes": HEAD
    + """\
class Net:
    def __init__(self, key):
        self.w = jax.random.normal(key, (4, 4))
        self.b = jax.random.normal(key, (4,))
print(Net(jax.random.key(0)).w)
""",
    "fori_loop": HEAD
    + """\
def body(i, s):
    key, x = s
    x = x + jax.random.normal(key)
    key = jax.random.split(key)[0]
    return key, x
print(jax.lax.fori_loop(0, 3, body, (jax.random.key(0), 0.0)))
""",
}

USED = {
    "used_then_split": "jax.random.split(key)",
    "normal_and_uniform": "jax.random.uniform(key, (3,))",
    "in_a_step": "jax.random.split(key)",
    "in_jit": "random.bernoulli(rng, 0.5, x.shape)",
    "python_loop": "jax.random.normal(key)",
    "item_of_keys": "jax.random.uniform(keys[0], (3,))",
    "through_a_helper": "jax.random.split(key)",
    "twice_in_one_expression": "jax.random.exponential(key)",
    "two_shapes": "jax.random.normal(key, (4,))",
    "fori_loop": "jax.random.split(key)",
}
GOOD = {
    "two_identical_models": HEAD
    + """\
def init(key):
    k1, k2 = jax.random.split(key)
    return jax.random.normal(k1, (3, 3)), jax.random.normal(k2, (3,))
key = jax.random.key(0)
a, b = init(key), init(key)
print(a[0] - b[0])
""",
    "compared": HEAD
    + """\
key = jax.random.key(0)
a = jax.random.normal(key, (3,))
b = jax.random.normal(key, (3,))
assert (a == b).all()
print(jnp.allclose(a, b))
""",
    "in_unison": HEAD
    + """\
key = jax.random.key(0)
x, y = jnp.arange(12.0).reshape(6, 2), jnp.arange(6)
x, y = jax.random.permutation(key, x), jax.random.permutation(key, y)
print(x, y)
""",
    "folded": HEAD
    + """\
key = jax.random.key(0)
a = jax.random.normal(jax.random.fold_in(key, 0))
b = jax.random.normal(jax.random.fold_in(key, 1))
xs = jax.random.split(key, 3)
print(a, b, xs)
""",
    "loop_beside_scan": HEAD
    + """\
def run_scan(key):
    def step(c, k):
        return c + jax.random.normal(k), c
    return jax.lax.scan(step, 0.0, jax.random.split(key, 4))[0]
def run_loop(key):
    c = 0.0
    for k in jax.random.split(key, 4):
        c = c + jax.random.normal(k)
    return c
key = jax.random.key(3)
print(run_scan(key), run_loop(key), jax.jit(run_scan)(key))
""",
    "branches": HEAD
    + """\
def step(key, x):
    key, sub = jax.random.split(key)
    y = jax.lax.cond(x > 1, lambda: jax.random.normal(sub), lambda: jax.random.uniform(sub))
    return key, y
print(jax.lax.scan(step, jax.random.key(0), jnp.arange(4.0)))
""",
    "a_chain_of_keys": HEAD
    + """\
key = jax.random.key(0)
for t in range(3):
    key, sub = jax.random.split(key)
    x = jax.random.normal(sub)
x0 = jax.random.normal(jax.random.key(0), (2,))
w0 = jax.random.uniform(jax.random.key(0), (3,))
print(x, x0, w0)
""",
    "run_twice": HEAD
    + """\
def run(key):
    out = []
    for i in range(2):
        key, sub = jax.random.split(key)
        out.append(jax.random.normal(sub))
    return out
key = jax.random.key(0)
print(run(key), run(key))
""",
    "one_start_for_two_rates": HEAD
    + """\
key = jax.random.key(0)
for rate in (0.1, 0.01):
    w = jax.random.normal(key, (3,))
    for _ in range(3):
        w = w - rate * w
    print(w)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_r402_the_second_use_is_named(name: str) -> None:
    violation, _ = only(BAD[name], "R402")
    assert code_at(BAD[name], violation) == USED[name]
    assert violation.severity is Severity.WARNING
    assert violation.proof is not None
    assert violation.proof.before >= 1.0


@pytest.mark.parametrize("name", GOOD)
def test_reuse_that_may_be_meant_is_no_fault(name: str) -> None:
    silent(GOOD[name], "R402")


@pytest.mark.parametrize("name", ["used_then_split", "in_a_step", "python_loop", "item_of_keys", "two_shapes"])
def test_a_fix_gives_each_use_its_own_key(name: str) -> None:
    text, _ = fixed(BAD[name], "R402")
    assert not found(text, "R402")[0]
    ran(text)


@pytest.mark.parametrize(
    "draws",
    [
        "a = jax.random.normal(key, (3,))\nb = jax.random.normal(key, (3,))",
        "a = jax.random.split(key)\nb = jax.random.split(key, 5)",
    ],
)
def test_what_may_be_meant_is_a_note(draws: str) -> None:
    violation, _ = only(f"{HEAD}key = jax.random.key(0)\n{draws}\nprint(a, b)", "R402")
    assert violation.severity is Severity.NOTE


def test_cells_of_one_seed_are_no_use_of_a_key() -> None:
    script = NNX + "one, two = (nnx.LSTMCell(2, 3, rngs=nnx.Rngs(0)) for _ in range(2))\nprint(one.ii, two.ii)"
    assert not found(script, "R402")[0]


def test_jaxs_own_checker_agrees() -> None:
    def twice(key: jax.Array) -> jax.Array:
        jax.random.normal(key)
        return jax.random.split(key)

    with pytest.raises(jax.errors.KeyReuseError), jax.debug_key_reuse(True):  # type: ignore[attr-defined]
        jax.jit(twice)(jax.random.key(0))


def test_a_key_that_a_step_uses_too_is_said_for_itself() -> None:
    """Two draws before a scan whose step draws from the same key again: two faults, each with its own place."""
    text = """\
import jax, jax.numpy as jnp
key = jax.random.key(0)
w = jax.random.normal(key, (3, 4))
b = jax.random.normal(key, (4,))
def step(h, x):
    h = jnp.tanh(x @ w + b + h) + 0.1 * jax.random.normal(key, h.shape)
    return h, h
h, ys = jax.lax.scan(step, jnp.zeros((2, 4)), jnp.ones((6, 2, 3)))
print(ys.std(0))
"""
    broken = check_script(text).report.broken
    assert [(v.code, getattr(v.place, "line", None)) for v in broken] == [("R402", 4), ("R401", 6)]
