"""N505: a value that is not finite is hidden; it says where it was born."""

from __future__ import annotations

import pytest

from core.base.places import Span
from core.base.violation import Severity
from core.doctor.instrument import Prepare
from tests.unit.contract.keys_support import HEAD, LANGUAGES, code_at, found, only

BAD = {
    "nan_to_num": HEAD
    + """\
def step(c, x):
    r = x / (x - 1.0)
    c = c + jnp.nan_to_num(r)
    return c, c
print(jax.lax.scan(step, 0.0, jnp.array([0.5, 1.0, 2.0]))[0])
""",
    "isfinite": HEAD
    + """\
def step(c, x):
    l = jnp.log(x)
    l = jnp.where(jnp.isfinite(l), l, 0.0)
    return c + l, l
print(jax.lax.scan(step, 0.0, jnp.array([0.5, 0.0, 2.0]))[0])
""",
    "outside": HEAD
    + """\
x = jnp.array([0.0, 1.0])
n = jnp.array([0.0, 2.0])
r = x / n
clean = jnp.nan_to_num(r)
print(jax.lax.scan(lambda c, v: (c + v, c), 0.0, clean)[0])
""",
    "in_a_helper": HEAD
    + """\
def normal(v):
    return v / jnp.linalg.norm(v)
def step(h, x):
    u = normal(x)
    u = jnp.where(jnp.isnan(u), jnp.zeros_like(u), u)
    return h + u, h
print(jax.lax.scan(step, jnp.zeros(2), jnp.array([[3., 4.], [0., 0.]]))[0])
""",
    "isnan_outside": HEAD
    + """\
x = jnp.array([-1.0, 4.0])
r = jnp.sqrt(x)
r = jnp.where(r != r, 0.0, r)
print(jnp.where(jnp.isnan(jnp.sqrt(x)), 0.0, jnp.sqrt(x)))
""",
}

#: What hides it, and where it is born.
USED = {
    "nan_to_num": ("jnp.nan_to_num(r)", "x / (x - 1.0)"),
    "isfinite": ("jnp.where(jnp.isfinite(l), l, 0.0)", "jnp.log(x)"),
    "outside": ("jnp.nan_to_num(r)", "x / n"),
    "in_a_helper": ("jnp.where(jnp.isnan(u), jnp.zeros_like(u), u)", "v / jnp.linalg.norm(v)"),
    "isnan_outside": ("jnp.where(jnp.isnan(jnp.sqrt(x)), 0.0, jnp.sqrt(x))", "jnp.sqrt(x)"),
}
GOOD = {
    "came_in": HEAD
    + """\
xs = jnp.array([1.0, jnp.nan, 2.0])
def step(c, x):
    return c + jnp.where(jnp.isnan(x), 0.0, x), c
print(jax.lax.scan(step, 0.0, xs)[0], jnp.nan_to_num(xs))
""",
    "guarded": HEAD
    + """\
def step(c, x):
    y = jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1.0)), 0.0)
    return c + y, y
print(jax.lax.scan(step, 0.0, jnp.array([1.0, 0.0]))[0])
""",
    "nothing_there": HEAD
    + """\
def step(c, x):
    return c + jnp.nan_to_num(jnp.log(x)), c
print(jax.lax.scan(step, 0.0, jnp.array([1.0, 2.0]))[0])
""",
    "where_of_the_operand": HEAD
    + """\
def step(c, x):
    return c + jnp.where(x > 0, jnp.log(x), 0.0), c
print(jax.lax.scan(step, 0.0, jnp.array([1.0, 0.0]))[0])
""",
}


@pytest.mark.parametrize("prepare", LANGUAGES, ids=["python", "sandbox"])
@pytest.mark.parametrize("name", BAD)
def test_n505_says_what_hides_it_and_where_it_was_born(name: str, prepare: Prepare) -> None:
    text = BAD[name]
    violation, _ = only(text, "N505", prepare=prepare)
    assert violation.severity is Severity.NOTE
    assert violation.because is not None
    born = violation.because.place
    assert isinstance(born, Span)
    assert code_at(text, violation) == USED[name][0]
    assert text.split("\n")[born.line - 1][born.col : born.end_col] == USED[name][1]
    assert violation.proof is not None
    assert violation.proof.before >= 1


@pytest.mark.parametrize("name", GOOD)
def test_holes_in_the_data_and_guards_are_not_mentioned(name: str) -> None:
    assert not found(GOOD[name], "N505")[0]


def test_it_says_at_which_step() -> None:
    violation, _ = only(BAD["nan_to_num"], "N505")
    assert "at t = 1" in violation.message
    reverse = BAD["nan_to_num"].replace("2.0]))", "2.0]), reverse=True)")
    assert "at t = 1" in only(reverse, "N505")[0].message
    assert HEAD in reverse
