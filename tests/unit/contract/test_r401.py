"""R401: one key at every step, and what is no such thing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from core.base.violation import Severity
from core.contract.keys import flow_of, same_rows
from core.contract.source import Source
from core.doctor.instrument import Prepare
from tests.unit.contract.keys_support import HEAD, LANGUAGES, NNX, code_at, fixed, found, only, ran, silent

BAD = {
    "beside_xs": HEAD
    + """\
key = jax.random.PRNGKey(3)
def step(h, x):
    h = 0.9 * h + x + jax.random.normal(key, h.shape)
    return h, h
h, hs = jax.lax.scan(step, jnp.zeros(2), jnp.ones((5, 2)))
""",
    "carried": HEAD
    + """\
def step(carry, x):
    key, h = carry
    h = h + jax.random.uniform(key, (3,))
    return (key, h), h
(k, h), hs = jax.lax.scan(step, (jax.random.key(1), jnp.zeros(3)), jnp.arange(6.0))
""",
    "in_a_dict": HEAD
    + """\
def step(s, _):
    eps = jax.random.normal(s["rng"])
    return {"rng": s["rng"], "h": s["h"] + eps}, eps
out = jax.lax.scan(step, {"rng": jax.random.PRNGKey(1), "h": 0.0}, length=6)
""",
    "rows_of_one_key": HEAD
    + """\
key = jax.random.PRNGKey(1)
def step(h, k):
    e = jax.random.normal(k)
    return h + e, e
keys = jnp.stack([key] * 4)
out = jax.lax.scan(step, 0.0, keys)
""",
    "fori_loop": HEAD
    + """\
def walk(key, n):
    def body(i, p):
        return p + jax.random.normal(key)
    return jax.lax.fori_loop(0, n, body, 0.0)
print(walk(jax.random.key(0), 5))
""",
    "fori_loop_in_jit": HEAD
    + """\
from functools import partial
@partial(jax.jit, static_argnums=1)
def walk(key, n):
    return jax.lax.fori_loop(0, n, lambda i, p: p + jax.random.normal(key), 0.0)
print(walk(jax.random.key(0), 5))
""",
    "in_jit": HEAD
    + """\
@jax.jit
def simulate(rng, x0):
    def step(x, t):
        x = x + jax.random.normal(rng)
        return x, x
    return jax.lax.scan(step, x0, jnp.arange(10))
print(simulate(jax.random.key(0), 0.0))
""",
    "method_and_helper": HEAD
    + """\
@jax.jit
def noise(k, like):
    return jax.random.normal(k, like.shape)
class Sim:
    def __init__(self, seed):
        self.key = jax.random.key(seed)
    def step(self, x, u):
        x = x + u + noise(self.key, x)
        return x, x
    def run(self, us):
        return jax.lax.scan(self.step, jnp.zeros(3), us)
print(Sim(0).run(jnp.ones((4, 3))))
""",
    "made_in_the_step": HEAD
    + """\
print(jax.lax.scan(lambda c, _: (c + jax.random.normal(jax.random.key(0)), c), 0.0, None, length=5))
""",
    "partial_and_vmap": HEAD
    + """\
from functools import partial
def step(scale, key, c, x):
    n = scale * jax.random.normal(key)
    return c + n, n
run = lambda key: jax.lax.scan(partial(step, 0.5, key), 0.0, jnp.arange(4.0))[1]
print(jax.vmap(run)(jax.random.split(jax.random.key(0), 3)))
""",
    "nested": HEAD
    + """\
key = jax.random.key(0)
def outer(c, row):
    def inner(d, x):
        return d + x * jax.random.normal(key), d
    d, _ = jax.lax.scan(inner, c, row)
    return d, d
print(jax.lax.scan(outer, 0.0, jnp.ones((3, 4))))
""",
    "while_loop": HEAD
    + """\
def body(s):
    key, t, x = s
    return key, t + 1, x + jax.random.normal(key)
print(jax.lax.while_loop(lambda s: s[1] < 5, body, (jax.random.key(0), 0, 0.0)))
""",
    "folded_with_a_constant": HEAD
    + """\
key = jax.random.key(0)
def step(c, x):
    k = jax.random.fold_in(key, 7)
    return c + jax.random.normal(k), x
print(jax.lax.scan(step, 0.0, jnp.ones(5)))
""",
    "lambda_and_raw_key": HEAD
    + """\
from jax import random, lax
k0 = random.PRNGKey(0)
print(lax.scan(lambda c, x: (c + x * random.bernoulli(k0), c), 0.0, jnp.ones(6)))
""",
    "split_but_not_handed_on": HEAD
    + """\
def step(carry, x):
    key, h = carry
    k1, k2 = jax.random.split(key)
    h = h + jax.random.normal(k1) * jax.random.uniform(k2)
    return (key, h), h
print(jax.lax.scan(step, (jax.random.key(1), 0.0), jnp.arange(6.0)))
""",
}

USED = {
    "beside_xs": "jax.random.normal(key, h.shape)",
    "carried": "jax.random.uniform(key, (3,))",
    "in_a_dict": 'jax.random.normal(s["rng"])',
    "rows_of_one_key": "jax.random.normal(k)",
    "fori_loop": "jax.random.normal(key)",
    "fori_loop_in_jit": "jax.random.normal(key)",
    "in_jit": "jax.random.normal(rng)",
    "method_and_helper": "jax.random.normal(k, like.shape)",
    "made_in_the_step": "jax.random.normal(jax.random.key(0))",
    "partial_and_vmap": "jax.random.normal(key)",
    "nested": "jax.random.normal(key)",
    "while_loop": "jax.random.normal(key)",
    "folded_with_a_constant": "jax.random.fold_in(key, 7)",
    "lambda_and_raw_key": "random.bernoulli(k0)",
    "split_but_not_handed_on": "jax.random.split(key)",
}
GOOD = {
    "fold_in_t": HEAD
    + """\
key = jax.random.key(0)
def step(c, t):
    return c + jax.random.normal(jax.random.fold_in(key, t)), t
print(jax.lax.scan(step, 0.0, jnp.arange(5)))
print(jax.lax.fori_loop(0, 5, lambda i, c: c + jax.random.normal(jax.random.fold_in(key, i)), 0.0))
""",
    "fold_in_a_counter": HEAD
    + """\
key = jax.random.key(0)
def step(c, _):
    t, x = c
    return (t + 1, x + jax.random.normal(jax.random.fold_in(key, t))), x
print(jax.lax.scan(step, (0, 0.0), None, length=4))
""",
    "mask_drawn_outside": HEAD
    + """\
key = jax.random.key(0)
mask = jax.random.bernoulli(key, 0.5, (3,))
def step(c, x):
    return c * mask + x, c
print(jax.lax.scan(step, jnp.zeros(3), jnp.ones((4, 3))))
""",
    "one_step": HEAD
    + """\
key = jax.random.key(0)
print(jax.lax.scan(lambda c, x: (c + jax.random.normal(key), x), 0.0, jnp.ones(1)))
""",
    "split_in_loops": HEAD
    + """\
def run(key):
    def body(i, s):
        key, x = s
        key, sub = jax.random.split(key)
        return key, x + jax.random.normal(sub)
    return jax.lax.fori_loop(0, 4, body, (key, 0.0))
print(run(jax.random.key(0)), jax.jit(run)(jax.random.PRNGKey(1)))
""",
    "inner_scan": HEAD
    + """\
def outer(key, row):
    key, sub = jax.random.split(key)
    def inner(c, k):
        return c + jax.random.normal(k), c
    c, _ = jax.lax.scan(inner, row, jax.random.split(sub, 3))
    return key, c
print(jax.lax.scan(outer, jax.random.key(0), jnp.arange(4.0)))
""",
    "weights": NNX
    + """\
def step(c, x):
    w = nnx.initializers.normal(0.1)(jax.random.key(0), (3, 3))
    return jnp.tanh(w @ c + x), c
print(jax.lax.scan(step, jnp.zeros(3), jnp.ones((4, 3))))
""",
    "handed_on_folded": HEAD
    + """\
def step(key, x):
    new = jax.random.fold_in(key, 1)
    return new, jax.random.normal(key)
print(jax.lax.scan(step, jax.random.key(0), jnp.ones(4)))
""",
}

#: QuantEcon/lecture-jax#17 and jax-ml/jax#4312.
REPORT = (
    HEAD
    + """\
key = jax.random.key(0)
def step(pos, _):
    shock = jax.random.normal(key)
    return pos + shock, shock
init = 0.0
xs = None
carry, ys = jax.lax.scan(step, init, xs, length=4)
print("carry", carry)
print("ys", ys)"""
)
LEAK = (
    HEAD
    + """\
key = jax.random.key(0)
def step(carry, _):
    global key
    key, sub = jax.random.split(key)
    noise = jax.random.normal(sub)
    return carry + noise, noise
init = 0.0
xs = None
carry, ys = jax.lax.scan(step, init, xs, length=3)
again = jax.random.normal(key)
print(ys, again)"""
)


@pytest.mark.parametrize("name", BAD)
def test_r401_the_use_of_the_key_is_named(name: str) -> None:
    violation, _ = only(BAD[name], "R401")
    assert code_at(BAD[name], violation) == USED[name]
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert violation.proof is not None
    assert violation.proof.before == 1.0


@pytest.mark.parametrize("name", GOOD)
def test_a_key_that_changes_is_no_fault(name: str) -> None:
    silent(GOOD[name], "R401")


@pytest.mark.parametrize("name", [n for n in BAD if n != "nested"])
def test_a_fix_gives_each_step_other_numbers(name: str) -> None:
    text, _ = fixed(BAD[name], "R401")
    silent(text, "R401")


def test_the_fixed_report_draws_different_numbers() -> None:
    text, _ = fixed(REPORT, "R401")
    assert len(set(ran(REPORT)["ys"].tolist())) == 1
    assert len(set(ran(text)["ys"].tolist())) == 4


@pytest.mark.parametrize("prepare", LANGUAGES, ids=["python", "sandbox"])
def test_a_leaked_key_is_one_error_where_it_is_split(prepare: Prepare) -> None:
    violation, _ = only(LEAK, "R401", prepare=prepare)
    assert code_at(LEAK, violation) == "jax.random.split(key)"
    assert violation.severity is Severity.ERROR
    assert violation.jax_said is not None
    assert violation.jax_said.startswith("UnexpectedTracerError")


def test_the_fixed_leak_runs_and_draws_different_numbers() -> None:
    text, _ = fixed(LEAK, "R401")
    names = ran(text)
    assert len(set(names["ys"].tolist())) == 3
    assert names["again"] not in names["ys"]


def test_two_draws_of_one_such_key_are_one_fault_and_get_a_key_each() -> None:
    script = (
        HEAD
        + """\
key = jax.random.key(0)
def step(c, x):
    a, b = jax.random.normal(key), jax.random.exponential(key)
    return c + a * b, (a, b)
out, (a, b) = jax.lax.scan(step, 0.0, jnp.ones(4))
"""
    )
    text, _ = fixed(script, "R401")
    names = ran(text)
    assert len(set(names["a"].tolist())) == len(set(names["b"].tolist())) == 4
    found(text, "R402")


def test_jaxs_own_checker_agrees_where_it_looks() -> None:
    """It knows typed keys that a step closes over; raw ones, and rows of xs, it does not."""
    key = jax.random.key(0)
    with pytest.raises(jax.errors.KeyReuseError), jax.debug_key_reuse(True):  # type: ignore[attr-defined]
        jax.lax.scan(lambda c, _: (c + jax.random.normal(key), c), 0.0, None, length=3)
    only(
        HEAD
        + "key = jax.random.key(0)\nprint(jax.lax.scan(lambda c, _: (c + jax.random.normal(key), c), 0.0, None, length=3)[0])",
        "R401",
    )


def test_draws_are_followed_through_loops_and_branches() -> None:
    def step(key: jax.Array, t: jax.Array) -> tuple[jax.Array, jax.Array]:
        inner = jax.lax.fori_loop(0, 3, lambda i, k: jax.random.fold_in(k, i), key)
        y = jax.lax.cond(t > 1, jax.random.normal, jax.random.uniform, inner)
        return key, y

    source = Source("")
    flow = flow_of(jax.make_jaxpr(step)(jax.random.key(0), 1), source)
    assert flow.still(1) == {0}
    assert flow.outputs[1].deps == {0, 1}


def test_rows_are_compared_by_their_numbers() -> None:
    key = jax.random.PRNGKey(1)
    assert same_rows(jnp.stack([key] * 3))
    assert not same_rows(jax.random.split(key, 3))
    assert not same_rows(jax.random.split(jax.random.key(0), 3))
    assert not same_rows(jnp.float32(1.0))


NONLOCAL = (
    HEAD
    + """\
def main():
    rng = jax.random.PRNGKey(2)
    def step(h, x):
        nonlocal rng
        rng, sub = jax.random.split(rng)
        return h + x * jax.random.normal(sub), h
    h, hs = jax.lax.scan(step, 0.0, jnp.ones(5))
    return hs, jax.random.uniform(rng)
main()
"""
)
ATTRIBUTE = (
    HEAD
    + """\
class Walk:
    def __init__(self):
        self.key = jax.random.key(0)
    def step(self, x, _):
        self.key, sub = jax.random.split(self.key)
        return x + jax.random.normal(sub), x
    def run(self):
        return jax.lax.scan(self.step, 0.0, None, length=4)
walk = Walk()
first, second = walk.run(), walk.run()
"""
)


@pytest.mark.parametrize(("script", "use"), [(NONLOCAL, "split(rng)"), (ATTRIBUTE, "split(self.key)")])
def test_a_key_leaks_by_other_ways_too(script: str, use: str) -> None:
    text, violation = fixed(script, "R401")
    assert violation.severity is Severity.ERROR
    assert code_at(script, violation) == f"jax.random.{use}"
    ran(text)
