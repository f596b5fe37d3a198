"""P205: an array is assigned to in place, or the array that an update gives is thrown away."""

from __future__ import annotations

from typing import Any

import pytest

from core.base.violation import Severity
from tests.unit.contract.p_support import BOTH, broken, check, mended, silent

IN_PLACE: dict[str, tuple[str, str, str]] = {
    "set": (
        "def step(buf, x):\n    buf[0] = x\n    return buf, buf.sum()\nfinal, ys = lax.scan(step, jnp.zeros(2), jnp.arange(3.0))",
        "buf[0]",
        "assert final.tolist() == [2.0, 0.0] and ys.tolist() == [0.0, 1.0, 2.0]",
    ),
    "add": (
        "def step(counts, i):\n    counts[i] += 1\n    return counts, None\nfinal, _ = lax.scan(step, jnp.zeros(3), jnp.array([1, 1, 2]))",
        "counts[i]",
        "assert final.tolist() == [0.0, 2.0, 1.0]",
    ),
    "divide by": (
        "x = jnp.array([4, 9])\nx[1] //= 2",
        "x[1]",
        "assert x.tolist() == [4, 4]",
    ),
    "a row": (
        "x = jnp.zeros((2, 3))\nx[1, 1:] = jnp.array([5.0, 6.0])",
        "x[1, 1:]",
        "assert x.tolist() == [[0.0] * 3, [0.0, 5.0, 6.0]]",
    ),
    "two indices": ("x = jnp.zeros((2, 2))\nx[0][1] = 5", "x[0][1]", "assert x.tolist() == [[0.0, 5.0], [0.0, 0.0]]"),
    "a mask": ("x = jnp.array([-1.0, 2.0])\nx[x < 0] = 0", "x[x < 0]", "assert x.tolist() == [0.0, 2.0]"),
    "swap": (
        "x = jnp.arange(3.0)\nx[0], x[2] = x[2], x[0]",
        "x[0]",
        "assert x.tolist() == [2.0, 1.0, 0.0]",
    ),
    "delete": ("x = jnp.arange(3.0)\ndel x[1]", "x[1]", "assert x.tolist() == [0.0, 2.0]"),
    "attribute": (
        "class Net:\n    def __init__(self):\n        self.w = jnp.zeros(3)\n    def poke(self, i):\n        self.w[i] = 1.0\nnet = Net()\nnet.poke(2)",
        "self.w[i]",
        "assert net.w.tolist() == [0.0, 0.0, 1.0]",
    ),
    "in a dict": (
        "def step(c, x):\n    c['a'][0] = x\n    return c, x\nfinal, _ = lax.scan(step, {'a': jnp.zeros(2)}, jnp.arange(3.0))",
        "c['a'][0]",
        "assert final['a'].tolist() == [2.0, 0.0]",
    ),
    "around the scan": (
        "out = jnp.zeros(4)\ndef step(c, i):\n    out[i] = c\n    return c + 1.0, None\nc, _ = lax.scan(step, 0.0, jnp.arange(4))",
        "out[i]",
        "assert out.tolist() == [0.0, 1.0, 2.0, 3.0]",
    ),
    "jit": (
        "@jax.jit\ndef f(x):\n    x[0] = 1.0\n    return x\nout = f(jnp.zeros(2))",
        "x[0]",
        "assert out.tolist() == [1.0, 0.0]",
    ),
    "fori_loop": (
        "def body(i, c):\n    c[i] = i\n    return c\nout = lax.fori_loop(0, 3, body, jnp.zeros(3))",
        "c[i]",
        "assert out.tolist() == [0.0, 1.0, 2.0]",
    ),
    "vmap": (
        "def f(row):\n    row[0] = 9.0\n    return row\nout = jax.vmap(f)(jnp.zeros((2, 2)))",
        "row[0]",
        "assert out.tolist() == [[9.0, 0.0], [9.0, 0.0]]",
    ),
}
THROWN: dict[str, tuple[str, str, str]] = {
    "set": (
        "def step(buf, x):\n    buf.at[0].set(x)\n    return buf, buf.sum()\nfinal, ys = lax.scan(step, jnp.zeros(2), jnp.arange(3.0))",
        "buf.at[0].set(x)",
        "assert final.tolist() == [2.0, 0.0]",
    ),
    "add": ("x = jnp.zeros(3)\nx.at[1].add(4)\nprint(x)", "x.at[1].add(4)", "assert x.tolist() == [0.0, 4.0, 0.0]"),
    "jit": (
        "@jax.jit\ndef f(v, i):\n    v.at[i].multiply(2)\n    return v\nout = f(jnp.ones(2), 0)",
        "v.at[i].multiply(2)",
        "assert out.tolist() == [2.0, 1.0]",
    ),
    "around the scan": (
        "out = jnp.zeros(3)\ndef step(c, i):\n    out.at[i].set(c)\n    return c + 1.0, None\nc, _ = lax.scan(step, 1.0, jnp.arange(3))",
        "out.at[i].set(c)",
        "assert out.tolist() == [1.0, 2.0, 3.0]",
    ),
    "attribute": (
        "class Grid:\n    def __init__(self):\n        self.cells = jnp.zeros(2)\n    def mark(self, i):\n        self.cells.at[i].set(1.0)\ng = Grid()\ng.mark(1)",
        "self.cells.at[i].set(1.0)",
        "assert g.cells.tolist() == [0.0, 1.0]",
    ),
    "sort": ("x = jnp.array([3.0, 1.0])\nx.sort()\nprint(x)", "x.sort()", "assert x.tolist() == [1.0, 3.0]"),
    "nested": (
        "def outer(c, row):\n    def inner(d, x):\n        d.at[0].add(x)\n        return d, None\n    return lax.scan(inner, c, row)\n"
        "final, _ = lax.scan(outer, jnp.zeros(2), jnp.ones((2, 3)))",
        "d.at[0].add(x)",
        "assert final.tolist() == [6.0, 0.0]",
    ),
}


@BOTH
@pytest.mark.parametrize("name", IN_PLACE)
def test_an_assignment_is_found_at_its_target(name: str, prepare: Any) -> None:
    body, place, _ = IN_PLACE[name]
    checkup = check(body, prepare)
    assert broken(checkup) == [("P205", place)], checkup.report.error
    (violation,) = checkup.report.broken
    assert violation.severity is Severity.ERROR
    assert violation.jax_said


@BOTH
@pytest.mark.parametrize("name", THROWN)
def test_an_update_that_nothing_keeps_is_found(name: str, prepare: Any) -> None:
    body, place, _ = THROWN[name]
    checkup = check(body, prepare)
    assert broken(checkup) == [("P205", place)]
    (violation,) = checkup.report.broken
    assert violation.severity is Severity.WARNING
    assert violation.silent


@pytest.mark.parametrize("name", IN_PLACE)
def test_fixes_of_an_assignment_give_what_was_meant(name: str) -> None:
    mended(IN_PLACE[name][0], "P205", IN_PLACE[name][2])


@pytest.mark.parametrize("name", THROWN)
def test_fixes_of_an_update_give_what_was_meant(name: str) -> None:
    mended(THROWN[name][0], "P205", THROWN[name][2])


@pytest.mark.parametrize("name", ["set", "add", "around the scan"])
def test_its_fixes_hold_in_the_sandbox(name: str) -> None:
    from core.doctor.sandboxed import sandboxed

    for cases in (IN_PLACE, THROWN):
        body, _, test = cases[name]
        mended(body, "P205", test, sandboxed)


def test_the_proof_is_what_is_thrown_away() -> None:
    (violation,) = check(THROWN["add"][0], fixes=True).report.broken
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (4.0, 0.0)


def test_alone_at_the_end_an_update_is_shown() -> None:
    checkup = check("x = jnp.zeros(3)\nx.at[1].set(4)")
    assert not broken(checkup)
    assert [v.severity for v in checkup.report.violations] == [Severity.NOTE]


NEAR = {
    "kept": "x = jnp.zeros(3)\nx = x.at[1].set(4)\nprint(x)",
    "returned": "def step(c, i):\n    return c.at[i].set(1.0), None\nfinal, _ = lax.scan(step, jnp.zeros(3), jnp.arange(3))",
    "used": "x = jnp.zeros(3)\nprint(x.at[1].set(4).sum(), x)",
    "read": "x = jnp.zeros(3)\nx.at[1].get()\nprint(x)",
    "a Python list": "x = [0.0, 1.0]\nx[0] = 2.0\nx[1] += 1\nx.sort()\ndel x[0]\nprint(x)",
    "a NumPy array": "x = np.zeros(3)\nx[1] = 2\nx.sort()\nprint(x)",
    "a name": "x = jnp.zeros(3)\nx += 1\nprint(x)",
    "a dict of arrays": "d = {'a': jnp.zeros(3)}\nd['a'] = d['a'] + 1\nd['b'] = jnp.ones(2)\nprint(d)",
    "a NumPy buffer outside": "out = np.zeros(3)\nfor i in range(3):\n    out[i] = jnp.float32(i)\nprint(out)",
    "a dict in the step": "def step(c, x):\n    c = dict(c)\n    c['n'] = c['n'] + 1\n    return c, x\nfinal, _ = lax.scan(step, {'n': 0.0}, jnp.arange(3.0))",
}


@BOTH
@pytest.mark.parametrize("name", NEAR)
def test_what_keeps_the_new_array_is_fine(name: str, prepare: Any) -> None:
    silent(NEAR[name], prepare)
