"""P203: a traced value leaves the step and is used when its trace is over."""

from __future__ import annotations

from typing import Any

import pytest

from core.base.places import Span
from core.base.violation import Severity
from tests.unit.contract.p_support import BOTH, broken, check, code_at, mended, silent

RUN = "carry, ys = lax.scan(step, 0.0, jnp.arange(4.0))"

#: The script, the code that leaks, the code that uses it, whether JAX raises, and what a right fix gives.
LEAKS: dict[str, tuple[str, str, str, bool, str | None]] = {
    "list": (
        f"log = []\ndef step(c, x):\n    log.append(c)\n    return c + x, None\n{RUN}\nout = jnp.stack(log)",
        "log.append(c)",
        "jnp.stack(log)",
        True,
        "assert out.tolist() == [0.0, 0.0, 1.0, 3.0]",
    ),
    "list, item": (
        f"log = []\ndef step(c, x):\n    log.append(c + x)\n    return c + x, c\n{RUN}\nout = float(log[-1])",
        "log.append(c + x)",
        "float(log[-1])",
        True,
        "assert out == 6.0",
    ),
    "list, shown": (
        f"log = []\ndef step(c, x):\n    log.append(c + x)\n    return c + x, c\n{RUN}\nprint(log[0])",
        "log.append(c + x)",
        "log[0]",
        False,
        "assert _out.strip() == '0.0'",
    ),
    "global": (
        f"last = None\ndef step(c, x):\n    global last\n    last = c + x\n    return c + x, None\n{RUN}\nout = last * 2",
        "last",
        "last * 2",
        True,
        "assert float(out) == 12.0",
    ),
    "global that is read": (
        f"total = 0.0\ndef step(c, x):\n    global total\n    total = total + x\n    return c * x, c\n{RUN}\nout = total + 1",
        "total",
        "total + 1",
        True,
        "assert float(out) == 7.0",
    ),
    "global, aug": (
        f"total = 0.0\ndef step(c, x):\n    global total\n    total += x\n    return c * x, c\n{RUN}\nout = float(total)",
        "total",
        "float(total)",
        True,
        "assert out == 6.0",
    ),
    "nonlocal": (
        "def main():\n    best = -1.0\n    def step(c, x):\n        nonlocal best\n        best = jnp.maximum(best, x)\n        return c + x, None\n"
        "    carry, _ = lax.scan(step, 0.0, jnp.array([1.0, 5.0, 2.0]))\n    return best + 0.5\nout = main()",
        "best",
        "best + 0.5",
        True,
        "assert float(out) == 5.5",
    ),
    "dict": (
        f"cache = {{}}\ndef step(c, x):\n    cache['h'] = c + x\n    return c + x, c\n{RUN}\nout = jnp.sin(cache['h'])",
        "cache['h']",
        "jnp.sin(cache['h'])",
        True,
        "assert abs(float(out) + 0.2794155) < 1e-6",
    ),
    "attribute": (
        "class Cell:\n    def __init__(self):\n        self.h = jnp.zeros(2)\n    def step(self, c, x):\n        self.h = 0.5 * self.h + x\n"
        "        return c + x, self.h.sum()\n    def run(self, xs):\n        c, ys = lax.scan(self.step, 0.0, xs)\n        return c, ys, self.h * 2\n"
        "out = Cell().run(jnp.ones(3))",
        "self.h",
        "self.h * 2",
        True,
        "assert out[2].tolist() == [3.5, 3.5]",
    ),
    "class attribute": (
        f"class Store:\n    value = 0.0\ndef step(c, x):\n    Store.value = c\n    return c + x, c\n{RUN}\nif Store.value > 1:\n    print('large')",
        "Store.value",
        "Store.value > 1",
        True,
        "assert _out.strip() == 'large'",
    ),
    "the next scan": (
        f"shift = jnp.float32(0)\ndef step(c, x):\n    global shift\n    shift = c\n    return c + x, None\n{RUN}\n"
        "def other(c, x):\n    return c + shift, None\nagain, _ = lax.scan(other, 0.0, jnp.arange(2.0))",
        "shift",
        "shift",
        True,
        "assert float(again) == 6.0",
    ),
    "jit": (
        "keep = {}\n@jax.jit\ndef f(x):\n    keep['x'] = x * 2\n    return x\ny = f(1.0)\nout = y + keep['x']",
        "keep['x']",
        "y + keep['x']",
        True,
        None,
    ),
    "lru_cache": (
        f"from functools import lru_cache\n@lru_cache\ndef table(n):\n    return jnp.arange(n)\ndef step(c, x):\n    return c + x + table(3).sum(), c\n{RUN}\nout = table(3) + 1",
        "table(3)",
        "table(3) + 1",
        True,
        "assert out.tolist() == [1, 2, 3]",
    ),
}


@BOTH
@pytest.mark.parametrize("name", LEAKS)
def test_it_is_found_where_it_leaks_and_where_it_is_used(name: str, prepare: Any) -> None:
    body, place, use, raises, _ = LEAKS[name]
    checkup = check(body, prepare)
    assert broken(checkup) == [("P203", place)], (checkup.report.error, checkup.report.broken)
    (violation,) = (v for v in checkup.report.violations if v.code == "P203")
    assert violation.because is not None
    assert isinstance(violation.because.place, Span)
    lines = checkup.given.script.split("\n")
    span = violation.because.place
    assert lines[span.line - 1][span.col : span.end_col] == use
    assert violation.silent is not raises
    assert violation.severity is (Severity.ERROR if raises else Severity.WARNING)
    assert bool(violation.jax_said) is raises


@pytest.mark.parametrize("name", [name for name, leak in LEAKS.items() if leak[-1] is not None])
def test_its_fixes_give_what_was_meant(name: str) -> None:
    body, _, _, _, test = LEAKS[name]
    assert test is not None
    mended(body, "P203", test)


@pytest.mark.parametrize("name", ["list", "global that is read", "attribute"])
def test_its_fixes_hold_in_the_sandbox(name: str) -> None:
    from core.doctor.sandboxed import sandboxed

    body, _, _, _, test = LEAKS[name]
    assert test is not None
    mended(body, "P203", test, sandboxed)


KEY = (
    "key = jax.random.key(0)\ndef step(carry, _):\n    global key\n    key, sub = jax.random.split(key)\n"
    "    noise = jax.random.normal(sub)\n    return carry + noise, noise\n"
    "carry, ys = lax.scan(step, 0.0, None, length=3)\nagain = jax.random.normal(key)"
)


@pytest.mark.parametrize("where", ["module", "function"])
def test_of_keys_the_rules_of_keys_say_it(where: str) -> None:
    inside = "def main():\n    " + KEY.replace("global", "nonlocal").replace("\n", "\n    ") + "\nmain()"
    checkup = check(KEY if where == "module" else inside)
    assert [code for code, _ in broken(checkup)] == ["R401"]
    assert len({code_at(checkup, v) for v in checkup.report.broken}) == 1


def test_a_leak_that_nothing_uses_is_a_side_effect() -> None:
    body = f"last = None\ndef step(c, x):\n    global last\n    last = c\n    return c + x, None\n{RUN}\nprint(len([last]) if False else carry)"
    assert [code for code, _ in broken(check(body))] == ["P204"]


def test_a_leak_by_a_way_we_do_not_follow_is_found_where_it_is_used() -> None:
    body = f"import heapq\nheap = []\ndef step(c, x):\n    setattr(step, 'last', c)\n    return c + x, None\n{RUN}\nout = step.last + 1"
    assert [code for code, _ in broken(check(body))] == ["P203"]


NEAR = {
    "ys used": "def step(c, x):\n    return c + x, c * 2\nfinal, ys = lax.scan(step, 0.0, jnp.arange(3.0))\nprint(ys.sum(), float(final))",
    "a closed-over array": "w = jnp.ones(2)\ndef step(c, x):\n    return c + (w * x).sum(), c\nfinal, ys = lax.scan(step, 0.0, jnp.arange(3.0))\nprint(w + 1)",
    "a global rebound outside": "w = jnp.ones(2)\nfor k in range(2):\n    w = w * 2\n    final, ys = lax.scan(lambda c, x: (c + w.sum() * x, c), 0.0, jnp.arange(3.0))\nprint(w)",
    "an inner scan in the same trace": "def outer(c, row):\n    seen = []\n    total, _ = lax.scan(lambda d, x: (d + x, None), c, row)\n    seen.append(total)\n"
    "    return seen[0] + 1, seen[0]\nfinal, ys = lax.scan(outer, 0.0, jnp.ones((2, 3)))",
    "lru_cache in one trace": "from functools import lru_cache\n@lru_cache\ndef table(n):\n    return jnp.arange(n)\n"
    "def step(c, x):\n    return c + x + table(3).sum() + table(3)[0], c\nfinal, ys = lax.scan(step, 0.0, jnp.arange(3.0))",
    "lru_cache, warm": "from functools import lru_cache\n@lru_cache\ndef table(n):\n    return jnp.arange(n)\ntable(3)\n"
    "def step(c, x):\n    return c + x + table(3).sum(), c\nfinal, ys = lax.scan(step, 0.0, jnp.arange(3.0))\nprint(table(3) + 1)",
    "nonlocal in one trace": "@jax.jit\ndef f(x):\n    total = 0.0\n    def add(v):\n        nonlocal total\n        total = total + v\n    for k in range(3):\n        add(x * k)\n"
    "    return total\nprint(f(2.0))",
    "an object in one trace": "class Acc:\n    def __init__(self):\n        self.v = 0.0\n    def add(self, x):\n        self.v = self.v + x\n"
    "@jax.jit\ndef f(x):\n    acc = Acc()\n    acc.add(x)\n    acc.add(x)\n    return acc.v\nprint(f(2.0))",
    "eager": "log = []\ndef note(v):\n    log.append(v)\n    return v\nfor k in range(3):\n    note(jnp.float32(k))\nprint(jnp.stack(log))",
    "grad": "def loss(w):\n    parts = []\n    for k in range(3):\n        parts.append(w * k)\n    return sum(parts)\nprint(jax.grad(loss)(2.0))",
}


@BOTH
@pytest.mark.parametrize("name", NEAR)
def test_what_does_not_leave_its_trace_is_fine(name: str, prepare: Any) -> None:
    silent(NEAR[name], prepare)
