"""P202: something of Python or NumPy needs the value of what is traced."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.contract.p_support import BOTH, broken, check, mended, silent

#: The script, the expression that needs a value, and what a right fix gives (None: no fix is mechanical).
NEEDS: dict[str, tuple[str, str, str | None]] = {
    "np": (
        "def step(v, x):\n    v = np.stack([v[1], v[0] + x])\n    return v, v\ncarry, ys = lax.scan(step, jnp.zeros(2), jnp.ones(3))",
        "np.stack([v[1], v[0] + x])",
        "assert carry.tolist() == [1.0, 2.0]",
    ),
    "numpy twice": (
        "import numpy\ndef step(v, x):\n    v = numpy.where(v > 1, 0.0, v)\n    return v + x, numpy.square(v)\n"
        "carry, ys = lax.scan(step, 1.0, jnp.ones(3))",
        "numpy.where(v > 1, 0.0, v)",
        "assert carry.tolist() == 2.0 and ys.tolist() == [1.0, 0.0, 1.0]",
    ),
    "np dtype": (
        "def step(c, x):\n    return c + np.float32(x), c\ncarry, ys = lax.scan(step, jnp.float32(0), jnp.arange(3))",
        "np.float32(x)",
        "assert float(carry) == 3.0",
    ),
    "math": (
        "import math\ndef step(c, x):\n    return math.sqrt(c * c + x), c\ncarry, ys = lax.scan(step, 0.0, jnp.ones(4))",
        "math.sqrt(c * c + x)",
        "assert float(carry) == 2.0",
    ),
    "math by name": (
        "from math import floor\ndef step(c, x):\n    return c + x, floor(x)\ncarry, ys = lax.scan(step, 0.0, jnp.array([1.5, -1.5]))",
        "floor(x)",
        "assert ys.tolist() == [1, -2]",
    ),
    "int": (
        "def step(c, x):\n    return c + x, int(x)\ncarry, ys = lax.scan(step, 0.0, jnp.array([1.5, 2.5]))",
        "int(x)",
        "assert ys.tolist() == [1, 2] and ys.dtype == jnp.int32",
    ),
    "float": (
        "def step(c, i):\n    return c + float(i), c\ncarry, ys = lax.scan(step, 0.5, jnp.arange(3))",
        "float(i)",
        "assert float(carry) == 3.5",
    ),
    "item": (
        "def step(c, x):\n    return c + x.sum().item(), c\ncarry, ys = lax.scan(step, 0.0, jnp.ones((3, 2)))",
        "x.sum().item()",
        "assert float(carry) == 6.0",
    ),
    "tolist": (
        "def step(c, x):\n    return c + sum(x.tolist()), c\ncarry, ys = lax.scan(step, 0.0, jnp.ones((3, 2)))",
        "x.tolist()",
        "assert float(carry) == 6.0",
    ),
    "range": (
        "def step(c, n):\n    for k in range(n):\n        c = c + k\n    return c, c\ncarry, ys = lax.scan(step, 0, jnp.arange(4))",
        "range(n)",
        "assert ys.tolist() == [0, 0, 1, 4]",
    ),
    "range of int": (
        "def step(c, n):\n    for k in range(1, int(n)):\n        c = c + 2.0 * k\n    return c, c\n"
        "carry, ys = lax.scan(step, 0.0, jnp.arange(4.0))",
        "int(n)",
        "assert ys.tolist() == [0.0, 0.0, 2.0, 8.0]",
    ),
    "list": (
        "prices = [1.0, 2.0, 4.0]\ndef step(total, i):\n    total = total + prices[i]\n    return total, total\n"
        "carry, ys = lax.scan(step, 0.0, jnp.arange(3))",
        "prices[i]",
        "assert ys.tolist() == [1.0, 3.0, 7.0]",
    ),
    "list of rows": (
        "rows = [[1.0, 2.0], [3.0, 4.0]]\ndef step(total, i):\n    return total + jnp.sum(jnp.array(rows[i])), i\n"
        "carry, ys = lax.scan(step, 0.0, jnp.arange(2))",
        "rows[i]",
        "assert float(carry) == 10.0",
    ),
    "tuple of arrays": (
        "tables = (jnp.zeros(2), jnp.ones(2))\ndef step(total, i):\n    return total + tables[i], i\n"
        "carry, ys = lax.scan(step, jnp.zeros(2), jnp.array([1, 0, 1]))",
        "tables[i]",
        "assert carry.tolist() == [2.0, 2.0]",
    ),
    "list by truth": (
        "def step(c, x):\n    return c + [1.0, 10.0][x > 1], c\ncarry, ys = lax.scan(step, 0.0, jnp.array([0.0, 2.0]))",
        "[1.0, 10.0][x > 1]",
        "assert float(carry) == 11.0",
    ),
    "list of functions": (
        "moves = [lambda v: v + 1, lambda v: v * 10]\ndef step(c, i):\n    return moves[i](c), c\n"
        "carry, ys = lax.scan(step, 1.0, jnp.array([0, 1]))",
        "moves[i]",
        "assert float(carry) == 20.0",
    ),
    "np table": (
        "table = np.array([5.0, 7.0])\ndef step(c, i):\n    return c + table[i], c\ncarry, ys = lax.scan(step, 0.0, jnp.array([1, 1, 0]))",
        "table[i]",
        "assert float(carry) == 19.0",
    ),
    "dict": (
        "cost = {0: 1.0, 1: 5.0}\ndef step(c, i):\n    return c + cost[i], c\ncarry, ys = lax.scan(step, 0.0, jnp.array([1, 0]))",
        "cost[i]",
        "assert float(carry) == 6.0",
    ),
    "window": (
        "series = jnp.arange(1.0, 6.0)\ndef step(prev, i):\n    mean = series[i:i + 3].mean()\n    return mean, mean - prev\n"
        "carry, ys = lax.scan(step, 0.0, jnp.arange(3))",
        "series[i:i + 3]",
        "assert ys.tolist() == [2.0, 1.0, 1.0]",
    ),
    "window of a name": (
        "width = 2\ndata = jnp.arange(12.0).reshape(6, 2)\ndef step(c, t):\n    start = t * width\n    stop = start + width\n"
        "    return c, data[start:stop, 1]\ncarry, ys = lax.scan(step, 0.0, jnp.arange(3))",
        "data[start:stop, 1]",
        "assert ys.tolist() == [[1.0, 3.0], [5.0, 7.0], [9.0, 11.0]]",
    ),
    "block": (
        "data = jnp.arange(6.0)\ndef step(c, b):\n    return c, data[b * 2:(b + 1) * 2]\ncarry, ys = lax.scan(step, 0.0, jnp.arange(3))",
        "data[b * 2:(b + 1) * 2]",
        "assert ys.tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]",
    ),
    "columns": (
        "data = jnp.arange(8.0).reshape(2, 4)\ndef step(c, i):\n    return c, data[:, i:i + 2]\ncarry, ys = lax.scan(step, 0.0, jnp.arange(3))",
        "data[:, i:i + 2]",
        "assert ys.tolist()[1] == [[1.0, 2.0], [5.0, 6.0]]",
    ),
    "before": (
        "data = jnp.arange(6.0)\ndef step(c, i):\n    return c, data[i - 2:i].sum()\ncarry, ys = lax.scan(step, 0.0, jnp.array([2, 3]))",
        "data[i - 2:i]",
        "assert ys.tolist() == [1.0, 3.0]",
    ),
    "up to": (
        "data = jnp.arange(1.0, 5.0)\ndef step(c, n):\n    return c, data[:n].sum()\ncarry, ys = lax.scan(step, 0.0, jnp.arange(4))",
        "data[:n]",
        "assert ys.tolist() == [0.0, 1.0, 3.0, 6.0]",
    ),
    "mask": (
        "def step(total, x):\n    total = total + x[x > 0].sum()\n    return total, total\n"
        "carry, ys = lax.scan(step, 0.0, jnp.array([[1.0, -2.0], [3.0, 4.0]]))",
        "x[x > 0]",
        "assert ys.tolist() == [1.0, 8.0]",
    ),
    "mask, mean": (
        "def step(total, row):\n    keep = row != 0\n    return total + row[keep].mean(), total\n"
        "carry, ys = lax.scan(step, 0.0, jnp.array([[2.0, 0.0, 4.0], [3.0, 3.0, 0.0]]))",
        "row[keep]",
        "assert float(carry) == 6.0",
    ),
    "mask, max": (
        "def step(c, x):\n    return c, jnp.max(x[x < 0])\ncarry, ys = lax.scan(step, 0.0, jnp.array([[-1.0, 2.0], [-3.0, -4.0]]))",
        "x[x < 0]",
        "assert ys.tolist() == [-1.0, -3.0]",
    ),
    "mask, count": (
        "def step(c, x):\n    return c + len(x[x > 0]), c\ncarry, ys = lax.scan(step, 0, jnp.array([[1.0, -2.0], [3.0, 4.0]]))",
        "x[x > 0]",
        "assert int(carry) == 3",
    ),
    "mask in a name": (
        "def step(c, x):\n    good = x[x > 0]\n    return c + good.sum(), c\ncarry, ys = lax.scan(step, 0.0, jnp.array([[1.0, -2.0], [3.0, 4.0]]))",
        "x[x > 0]",
        "assert float(carry) == 8.0",
    ),
    "mask that leaves": (
        "def step(c, x):\n    return c, jnp.sort(x[x > 0])\ncarry, ys = lax.scan(step, 0.0, jnp.ones((2, 2)))",
        "x[x > 0]",
        None,
    ),
    "found": (
        "def step(c, x):\n    return c + jnp.nonzero(x)[0].sum(), c\ncarry, ys = lax.scan(step, 0, jnp.ones((2, 2)))",
        "jnp.nonzero(x)",
        None,
    ),
    "format": (
        "def step(c, x):\n    print(f'c = {c:.1f} of {x.dtype}')\n    return c + x, c\ncarry, ys = lax.scan(step, 0.0, jnp.ones(3))",
        "{c:.1f}",
        "assert _out.splitlines() == ['c = 0.0 of float32', 'c = 1.0 of float32', 'c = 2.0 of float32']",
    ),
    "percent": (
        "def step(c, x):\n    print('c = %.1f' % c)\n    return c + x, c\ncarry, ys = lax.scan(step, 0.0, jnp.ones(2))",
        "'c = %.1f' % c",
        "assert _out.splitlines() == ['c = 0.0', 'c = 1.0']",
    ),
    "np buffer": (
        "def step(c, x):\n    out = np.zeros(2)\n    out[1] = c\n    return c + x, out\ncarry, ys = lax.scan(step, 1.0, jnp.ones(2))",
        "out[1]",
        "assert ys.tolist() == [[0.0, 1.0], [0.0, 2.0]]",
    ),
    "a global np buffer": (
        "out = np.zeros(2)\ndef step(c, x):\n    out[1] = c\n    return c + x, c\ncarry, ys = lax.scan(step, 1.0, jnp.ones(2))",
        "out[1]",
        None,
    ),
    "times": (
        "def step(c, n):\n    pad = [0.0] * n\n    return c, n\ncarry, ys = lax.scan(step, 1.0, jnp.arange(2))",
        "[0.0] * n",
        None,
    ),
    "a key of a dict": (
        "seen = {}\ndef step(c, i):\n    seen[i] = 1\n    return c, i\ncarry, ys = lax.scan(step, 1.0, jnp.arange(2))",
        "seen[i]",
        None,
    ),
    "jit, a method, a helper": (
        "class Net:\n    scale = [1.0, 3.0]\n    def pick(self, which):\n        return self.scale[which]\n"
        "    def __call__(self, x, which):\n        return x * self.pick(which)\nnet = Net()\nout = jax.jit(net.__call__)(2.0, 1)",
        "self.scale[which]",
        "assert float(out) == 6.0",
    ),
    "jit, range": (
        "@jax.jit\ndef power(x, n):\n    out = 1.0\n    for _ in range(n):\n        out = out * x\n    return out\nresult = power(2.0, 3)",
        "range(n)",
        "assert float(result) == 8.0",
    ),
    "vmap": (
        "names = [10.0, 20.0]\nout = jax.vmap(lambda i: names[i])(jnp.array([1, 0]))",
        "names[i]",
        "assert out.tolist() == [20.0, 10.0]",
    ),
    "fori_loop": (
        "rates = [1.0, 2.0, 3.0]\ndef body(k, c):\n    return c + rates[k]\nout = lax.fori_loop(0, 3, body, 0.0)",
        "rates[k]",
        "assert float(out) == 6.0",
    ),
    "nested": (
        "grid = [[1.0, 2.0], [3.0, 4.0]]\ndef outer(c, i):\n    def inner(d, j):\n        return d + jnp.array(grid)[i][j] + [0.0, 1.0][j], None\n"
        "    return lax.scan(inner, c, jnp.arange(2))[0], None\nout, _ = lax.scan(outer, 0.0, jnp.arange(2))",
        "[0.0, 1.0][j]",
        "assert float(out) == 12.0",
    ),
    "lambda": (
        "w = [1.0, 2.0]\nout, _ = lax.scan(lambda c, i: (c + w[i], None), 0.0, jnp.arange(2))",
        "w[i]",
        "assert float(out) == 3.0",
    ),
}
FIXED = [name for name, (_, _, test) in NEEDS.items() if test is not None]


@BOTH
@pytest.mark.parametrize("name", NEEDS)
def test_it_is_found_where_the_value_was_needed(name: str, prepare: Any) -> None:
    body, place, _ = NEEDS[name]
    checkup = check(body, prepare)
    assert broken(checkup) == [("P202", place)], checkup.report.error
    (violation,) = (v for v in checkup.report.violations if v.code == "P202")
    assert violation.jax_said
    assert not violation.silent


@pytest.mark.parametrize("name", FIXED)
def test_its_fixes_give_what_was_meant(name: str) -> None:
    body, _, test = NEEDS[name]
    assert test is not None
    mended(body, "P202", test)


@pytest.mark.parametrize("name", ["np", "window", "list", "mask", "format"])
def test_its_fixes_hold_in_the_sandbox(name: str) -> None:
    from core.doctor.sandboxed import sandboxed

    body, _, test = NEEDS[name]
    assert test is not None
    mended(body, "P202", test, sandboxed)


def test_what_cannot_be_mended_gets_no_fix() -> None:
    for name, (body, _, test) in NEEDS.items():
        if test is None:
            assert not any(check(body, fixes=True).sources), name


def test_all_of_numpy_in_a_step_is_one_fix() -> None:
    body, _, test = NEEDS["numpy twice"]
    assert test is not None
    first, *_ = mended(body, "P202", "pass")
    assert "jnp.where" in first
    assert "jnp.square" in first


def test_a_fix_is_written_as_one_would_write_it() -> None:
    assert "jnp.where(x > 0, x, 0).sum()" in mended(*_case("mask"))[0]
    assert "lax.dynamic_slice_in_dim(series, i, 3).mean()" in mended(*_case("window"))[0]
    assert "lax.dynamic_slice_in_dim(data, start, width)[:, 1]" in mended(*_case("window of a name"))[0]


def _case(name: str) -> tuple[str, str, str]:
    body, _, test = NEEDS[name]
    assert test is not None
    return body, "P202", test


NEAR = {
    "int of a size": "def step(c, x):\n    return c + int(x.size), float(x.ndim) + c",
    "range of a shape": "def step(c, x):\n    for k in range(x.ndim + 2):\n        c = c + k\n    return c, c",
    "np of a constant": "def step(c, x):\n    return c * np.sqrt(2.0) + np.pi, np.arange(3).sum() + c",
    "list by a Python int": "w = [1.0, 2.0]\ndef step(c, x):\n    return c + sum(w[k] * x for k in range(len(w))), c",
    "dict by name": "p = {'a': 1.0}\ndef step(c, x):\n    return c + p['a'] * x, c",
    "slice of known length": "def step(c, x):\n    v = jnp.stack([c, x, c])\n    return c + v[1:3].sum() + v[:: 2].sum(), c",
    "index by a tracer": "t = jnp.arange(4.0)\ndef step(c, x):\n    return c + t[x.astype(int)], c",
    "three-armed where": "def step(c, x):\n    return jnp.where(x > 0, x, c), c",
    "asarray at the door": "t = np.arange(4.0)\ndef step(c, x):\n    return c + jnp.asarray(t)[0] + x, c",
    "format of a shape": "def step(c, x):\n    label = f'{x.shape} {x.dtype!s:>10}'\n    return c + len(label) * x, c",
    "eager int": "def half(v):\n    return int(v) // 2\nprint(half(jnp.float32(3)))\ndef step(c, x):\n    return c + x, c",
}


@BOTH
@pytest.mark.parametrize("name", NEAR)
def test_what_is_known_while_tracing_may_be_used(name: str, prepare: Any) -> None:
    silent(f"{NEAR[name]}\nfinal, ys = lax.scan(step, 0.0, jnp.arange(3.0))", prepare)
