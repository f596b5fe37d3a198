"""P201: Python asks a traced value for its truth."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.contract.p_support import BOTH, broken, check, mended, silent

SCAN = "final, ys = jax.lax.scan(step, 0.0, jnp.array([2.0, 2.0, 2.0]))"
WANTED = "assert ys.tolist() == [0.0, 2.0, 1.0] and float(final) == 3.0"

#: What Python asks, the smallest expression that it asks, and what a right fix gives (None: no fix is mechanical).
ASKS: dict[str, tuple[str, str, str | None]] = {
    "if": (f"def step(c, x):\n    if c > 3:\n        c = c - 3\n    return c + x, c\n{SCAN}", "c > 3", WANTED),
    "if on one line": (f"def step(c, x):\n    if c > 3: c = c - 3\n    return c + x, c\n{SCAN}", "c > 3", WANTED),
    "a name": (
        f"def step(c, x):\n    big = c > 3\n    if big:\n        c -= 3\n    return c + x, c\n{SCAN}",
        "big",
        WANTED,
    ),
    "else": (
        "def step(total, value):\n    if value > total:\n        out, n = value, 1\n    else:\n        out, n = total, 2\n"
        "    return out, n\nfinal, ys = jax.lax.scan(step, 1.0, jnp.array([0.0, 5.0, 3.0, 7.0]))",
        "value > total",
        "assert float(final) == 7.0 and ys.tolist() == [2, 1, 2, 1]",
    ),
    "elif": (
        "def step(c, x):\n    if x > 2:\n        c = c + x\n    elif x > 1:\n        c = c * 2\n    else:\n        c = c - 1\n"
        "    return c, c\nfinal, ys = jax.lax.scan(step, 1.0, jnp.array([3.0, 2.0, 0.0]))",
        "x > 2",
        "assert ys.tolist() == [4.0, 8.0, 7.0]",
    ),
    "two statements": (
        "def step(s, x):\n    a, b = s\n    if a > 1:\n        a = a * 2\n        b = b + a\n    return (a + x, b), b\n"
        "final, ys = jax.lax.scan(step, (0.0, 0.0), jnp.array([2.0, 1.0, 1.0]))",
        "a > 1",
        "assert ys.tolist() == [0.0, 4.0, 14.0]",
    ),
    "returns": (
        "def step(c, x):\n    if c > 3:\n        return c - 3 + x, c - 3\n    return c + x, c\n" + SCAN,
        "c > 3",
        WANTED,
    ),
    "returns with work": (
        "def step(c, x):\n    if c > 3:\n        d = c - 3\n        return d + x, d\n    else:\n        d = c + x\n"
        f"        return d, c\n{SCAN}",
        "c > 3",
        WANTED,
    ),
    "expression": (f"def step(c, x):\n    c = c - 3 if c > 3 else c\n    return c + x, c\n{SCAN}", "c > 3", WANTED),
    "lambda": (
        "final, ys = jax.lax.scan(lambda c, x: (x - c if c > x else c + x, c), 0.0, jnp.array([2.0, 1.0, 3.0]))",
        "c > x",
        "assert ys.tolist() == [0.0, 2.0, -1.0]",
    ),
    "not": (f"def step(c, x):\n    if not c <= 3:\n        c = c - 3\n    return c + x, c\n{SCAN}", "c <= 3", WANTED),
    "and": (
        f"def step(c, x):\n    if c > 3 and x > 1:\n        c = c - 3\n    return c + x, c\n{SCAN}",
        "c > 3",
        WANTED,
    ),
    "and as a value": (
        "def step(c, x):\n    return c + x, c > 1 and not x > 2\n"
        "final, ys = jax.lax.scan(step, 0.0, jnp.array([2.0, 1.0, 3.0]))",
        "c > 1",
        "assert ys.tolist() == [False, True, False]",
    ),
    "or of numbers": (
        "def step(c, x):\n    return c + x, c or x\nfinal, ys = jax.lax.scan(step, 0.0, jnp.array([2.0, 1.0]))",
        "c",
        "assert ys.tolist() == [2.0, 2.0]",
    ),
    "chain": (
        "def step(c, x):\n    return c + x, 0 < c < 3\nfinal, ys = jax.lax.scan(step, 0.0, jnp.array([2.0, 1.0, 3.0]))",
        "0 < c < 3",
        "assert ys.tolist() == [False, True, False]",
    ),
    "in": (
        "def step(c, x):\n    return c + x, x in [1.0, 3.0]\nfinal, ys = jax.lax.scan(step, 0.0, jnp.array([2.0, 1.0, 3.0]))",
        "x in [1.0, 3.0]",
        "assert ys.tolist() == [False, True, True]",
    ),
    "while": (
        "def step(c, x):\n    while c > 3:\n        c = c - 3\n    return c + x, c\n"
        "final, ys = jax.lax.scan(step, 10.0, jnp.array([7.0, 1.0]))",
        "c > 3",
        "assert ys.tolist() == [1.0, 2.0]",
    ),
    "while with two": (
        "def step(c, x):\n    n = 0\n    while c > 3:\n        c = c - 3\n        n += 1\n    return c + x, n\n"
        "final, ys = jax.lax.scan(step, 10.0, jnp.array([7.0, 1.0]))",
        "c > 3",
        "assert ys.tolist() == [3, 2]",
    ),
    "max": (
        "def step(best, x):\n    best = max(best, x, 1.5)\n    return best, best\n"
        "final, ys = jax.lax.scan(step, 0.0, jnp.array([1.0, 3.0, 2.0]))",
        "max(best, x, 1.5)",
        "assert ys.tolist() == [1.5, 3.0, 3.0]",
    ),
    "min of a list": (
        "def step(c, x):\n    return c + x, min([c, x])\nfinal, ys = jax.lax.scan(step, 1.0, jnp.array([3.0, 1.0]))",
        "min([c, x])",
        "assert ys.tolist() == [1.0, 1.0]",
    ),
    "sorted": (
        "def step(c, row):\n    a, b = sorted([row[0], row[1]])\n    return c + a, b\n"
        "final, ys = jax.lax.scan(step, 0.0, jnp.array([[3.0, 1.0], [1.0, 2.0]]))",
        "sorted([row[0], row[1]])",
        "assert float(final) == 2.0 and ys.tolist() == [3.0, 2.0]",
    ),
    "any": (
        "def step(c, row):\n    return c, any(v > 2 for v in row)\n"
        "final, ys = jax.lax.scan(step, 0.0, jnp.array([[3.0, 1.0], [1.0, 2.0]]))",
        "any(v > 2 for v in row)",
        "assert ys.tolist() == [True, False]",
    ),
    "bool": (
        "def step(c, x):\n    return c + x, bool(c > 1)\nfinal, ys = jax.lax.scan(step, 0.0, jnp.array([2.0, 1.0]))",
        "bool(c > 1)",
        "assert ys.tolist() == [False, True]",
    ),
    "assert": (
        "def step(c, x):\n    assert c >= 0, 'negative'\n    return c + x, c\n" + SCAN.replace("ys", "ys"),
        "c >= 0",
        "assert ys.tolist() == [0.0, 2.0, 4.0] and _out.count('c >= 0') == 3",
    ),
    "comprehension": (
        f"def step(c, x):\n    big = [v for v in (c, x) if v > 1]\n    return c + x, len(big)\n{SCAN}",
        "v > 1",
        None,
    ),
    "more than one": (
        "def step(c, x):\n    if x > 1:\n        c = c + 1\n    return c, c\nfinal, ys = jax.lax.scan(step, 0.0, jnp.ones((3, 2)))",
        "x > 1",
        None,
    ),
    "jit": (
        "@jax.jit\ndef f(x):\n    if x > 0:\n        return x\n    return -x\nout = [f(-2.0), f(3.0)]",
        "x > 0",
        "assert [float(v) for v in out] == [2.0, 3.0]",
    ),
    "jit of a flag": (
        "@jax.jit\ndef f(x, double):\n    if double:\n        x = 2 * x\n    return x\nout = [f(2.0, True), f(2.0, False)]",
        "double",
        "assert [float(v) for v in out] == [4.0, 2.0]",
    ),
    "a helper": (
        "def wrap(value, limit):\n    if value > limit:\n        return value - limit\n    return value\n"
        f"def step(c, x):\n    c = wrap(c, 3)\n    return c + x, c\n{SCAN}",
        "value > limit",
        WANTED,
    ),
    "a method": (
        "class Fold:\n    def __init__(self, limit):\n        self.limit = limit\n    def step(self, c, x):\n"
        "        if c > self.limit:\n            c = c - self.limit\n        return c + x, c\n"
        f"{SCAN.replace('step', 'Fold(3).step')}",
        "c > self.limit",
        WANTED,
    ),
    "a partial": (
        f"def step(limit, c, x):\n    if c > limit:\n        c = c - limit\n    return c + x, c\n{SCAN.replace('step,', 'partial(step, 3),')}",
        "c > limit",
        WANTED,
    ),
    "nested": (
        "def outer(c, row):\n    def inner(d, x):\n        if d > 3:\n            d = d - 3\n        return d + x, d\n"
        "    return jax.lax.scan(inner, c, row)\nfinal, ys = jax.lax.scan(outer, 0.0, 2 * jnp.ones((1, 3)))",
        "d > 3",
        "assert ys.tolist() == [[0.0, 2.0, 1.0]]",
    ),
    "vmap": (
        "def f(x):\n    if x > 0:\n        y = x\n    else:\n        y = 0 * x\n    return y\nout = jax.vmap(f)(jnp.array([-1.0, 2.0]))",
        "x > 0",
        "assert out.tolist() == [0.0, 2.0]",
    ),
    "fori_loop": (
        "def body(i, c):\n    if c > 3:\n        c = c - 3\n    return c + 2.0\nout = lax.fori_loop(0, 3, body, 0.0)",
        "c > 3",
        "assert float(out) == 3.0",
    ),
}
BY_NAME = pytest.mark.parametrize("name", ASKS)
FIXED = [name for name, (_, _, test) in ASKS.items() if test is not None]


@BOTH
@BY_NAME
def test_it_is_found_at_the_expression_that_was_asked(name: str, prepare: Any) -> None:
    body, place, _ = ASKS[name]
    checkup = check(body, prepare)
    assert broken(checkup) == [("P201", place)], checkup.report.error
    (violation,) = (v for v in checkup.report.violations if v.code == "P201")
    assert violation.jax_said
    assert not violation.silent


@pytest.mark.parametrize("name", FIXED)
def test_its_fixes_give_what_was_meant(name: str) -> None:
    body, _, test = ASKS[name]
    assert test is not None
    mended(body, "P201", test)


@pytest.mark.parametrize("name", ["if", "while", "max", "and as a value"])
def test_its_fixes_hold_in_the_sandbox(name: str) -> None:
    from core.doctor.sandboxed import sandboxed

    body, _, test = ASKS[name]
    assert test is not None
    mended(body, "P201", test, sandboxed)


def test_what_cannot_be_mended_gets_no_fix() -> None:
    for name, (body, _, test) in ASKS.items():
        if test is None:
            assert not any(check(body, fixes=True).sources), name


def test_where_comes_first_and_reads_as_one_would_write_it() -> None:
    first, *others = mended(ASKS["if"][0], "P201", WANTED)
    assert "    c = jnp.where(c > 3, c - 3, c)\n" in first
    assert len(others) == 1
    assert "lax.cond(" in others[0]


def test_the_scan_that_traces_it_is_the_second_place() -> None:
    (violation,) = check(ASKS["if"][0]).report.broken
    assert violation.because is not None
    assert violation.because.text == "lax.scan traces step here"


NEAR = {
    "bool": "debug = True\ndef step(c, x):\n    if debug:\n        c = c + 1\n    return c + x, c",
    "shape": "def step(c, x):\n    if x.ndim == 0 and c.shape == ():\n        c = c + 1\n    return c + x, c",
    "none": "def step(c, x, bias=None):\n    if bias is not None:\n        c = c + bias\n    return c + x, c",
    "len": "def step(c, x):\n    if len(jnp.stack([c, x])) > 1:\n        c = c + 1\n    return c + x, c",
    "dtype": "def step(c, x):\n    while x.dtype != jnp.float32:\n        x = x.astype(jnp.float32)\n    return c + x, c",
    "instance": "def step(c, x):\n    c = c if isinstance(x, jax.Array) else 0.0\n    return c + x, c",
    "max of sizes": "def step(c, x):\n    return c + max(x.ndim, 1) * x, c",
    "eager": "def clip(v):\n    if v > 1:\n        return 1.0\n    return v\nprint(clip(jnp.float32(3)))\n"
    "def step(c, x):\n    return c + x, c",
    "caught": "def step(c, x):\n    try:\n        c = c + 1 if c > 0 else c\n    except jax.errors.TracerBoolConversionError:\n"
    "        c = jnp.where(c > 0, c + 1, c)\n    return c + x, c",
}


@BOTH
@pytest.mark.parametrize("name", NEAR)
def test_what_is_known_while_tracing_may_be_asked(name: str, prepare: Any) -> None:
    silent(f"{NEAR[name]}\nfinal, ys = jax.lax.scan(step, 0.0, jnp.arange(3.0))", prepare)
