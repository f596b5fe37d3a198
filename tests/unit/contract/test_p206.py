"""P206: an index out of bounds."""

from __future__ import annotations

import numpy as np
import pytest

from core.base.violation import Severity
from core.doctor.check import check_script
from tests.unit.contract.two_languages import HEAD, line_of, names, only, silent

X = "x = jnp.array([1.0, 2.0, 3.0])\n"
#: Script, line, a word of what is said, and what a verified fix leaves in `out` (None: no fix).
KNOWN = {
    "constant": (X + "out = x[3]\n", "entry 2", 3.0),
    "negative": (X + "out = x[-4]\n", "entry 0", 1.0),
    "two-axes": ("x = jnp.ones((2, 3))\nout = x[0, 5]\n", "index 5", 1.0),
    "behind-an-ellipsis": ("x = jnp.ones((2, 3))\nout = x[..., 4].sum()\n", "index 4", 2.0),
    "array": (X + "out = x[jnp.array([0, 7])].sum()\n", "index 7", 4.0),
    "write": (X + "out = x.at[3].set(9.0).sum()\n", "writes nothing", 6.0),
    "add": (X + "out = x.at[jnp.array([0, 4])].add(1.0).sum()\n", "index 4", 7.0),
    "get": (X + "out = x.at[5].get()\n", "entry 2", 3.0),
    "take": ("x = jnp.array([1, 2, 3])\nout = jnp.take(x, 3)\n", "smallest whole number", 3.0),
    "method-take": (X + "out = x.take(jnp.array([0, 4]), mode='clip').sum() + jnp.take(x, 4)\n", "NaN", 7.0),
    "along-axis": (X + "out = jnp.take_along_axis(x, jnp.array([3]), 0)[0]\n", "NaN", 3.0),
    "window": (X + "out = lax.dynamic_slice(x, (2,), (2,))\n", "begin at 1", None),
    "window-in-dim": (X + "out = lax.dynamic_slice_in_dim(x, 2, 2)\n", "begin at 1", None),
    "update": (X + "out = lax.dynamic_update_slice(x, jnp.ones(2), (2,))\n", "begin at 1", None),
    "python-loop": (X + "for i in range(12): out = x[i]\n", "index 3", 3.0),
}


@pytest.mark.parametrize("case", KNOWN)
def test_a_known_index(case: str) -> None:
    text, said, fixed = KNOWN[case]
    violation, sources = only(text, "P206")
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert line_of(violation) == 2
    assert said in violation.message
    assert violation.proof is not None
    assert violation.proof.before >= 1.0
    assert violation.proof.after in (0.0, None)
    assert bool(sources) is (fixed is not None)
    if fixed is not None:
        assert any(float(names(source)["out"]) == fixed for source in sources), sources


TRACED = {
    "counter-in-a-scan": (
        "xs = jnp.arange(5.0)\ndef step(i, x):\n    return i + 1, xs[i + 1] - x\n_, out = lax.scan(step, 0, xs)\n",
        3,
        "index 5 at step 4",
    ),
    "backwards": (
        "xs = jnp.arange(5.0)\ndef step(i, x):\n    return i + 1, xs[i + 1] - x\n"
        "_, out = lax.scan(step, 0, xs, reverse=True)\n",
        3,
        "index 5 at step 0",
    ),
    "write-in-a-scan": (
        "def fill(c, x):\n    i, buf = c\n    buf = buf.at[i].set(x)\n    return (i + 1, buf), None\n"
        "(i, out), _ = lax.scan(fill, (0, jnp.zeros(3)), jnp.arange(5.0))\n",
        3,
        "index 3 at step 3",
    ),
    "jitted-argument": ("@jax.jit\ndef f(x, i):\n    return x[i]\nout = f(jnp.arange(4.0), 4)\n", 3, "index 4"),
    "scan-in-jit": (
        "@jax.jit\ndef f(table, ids):\n    def step(c, i):\n        e = jnp.take(table, i, axis=0)\n        return c + e, None\n"
        "    return lax.scan(step, jnp.zeros(2), ids)[0]\nout = f(jnp.ones((5, 2)), jnp.array([0, 5, 2]))\n",
        4,
        "index 5 at step 1",
    ),
    "vmap": (
        "def roll(row):\n    return lax.scan(lambda t, _: (t + 1, row[t]), 0, None, length=6)[1]\n"
        "out = jax.vmap(roll)(jnp.ones((2, 4)))\n",
        2,
        "index 4 at step 4",
    ),
    "nested-scan": (
        "def outer(c, row):\n    def inner(t, _):\n        return t + 1, row[t]\n    return c, lax.scan(inner, 0, None, length=3)[1]\n"
        "_, out = lax.scan(outer, 0.0, jnp.ones((2, 2)))\n",
        3,
        "index 2",
    ),
    "method": (
        "class Net:\n    def __init__(self): self.w = jnp.ones((3, 2))\n    @partial(jax.jit, static_argnums=0)\n"
        "    def go(self, ids):\n        return self.w[ids].sum()\nout = Net().go(jnp.array([1, 3]))\n",
        5,
        "index 3",
    ),
}


@pytest.mark.parametrize("case", TRACED)
def test_a_traced_index_with_the_numbers_it_had(case: str) -> None:
    text, line, said = TRACED[case]
    checkup = check_script(HEAD + text)
    found = [v for v in checkup.report.violations if v.code == "P206"]
    assert [(line_of(v), said in v.message) for v in found] == [(line, True)], found
    assert {v.code for v in checkup.report.broken} <= {"P206", "N501"}  # N501: a take that gives NaN
    assert checkup.run is not None
    assert not checkup.run.problems


FINE = {
    "negative-wrap": X + "out = x[-3] + x[-1] + x[jnp.array([-1, 2])].sum()\n",
    "slices": X + "out = x[1:9], x[-7:2], x[::-1]\n",
    "mode": X + 'out = x.at[5].get(mode="clip"), x.at[5].set(1.0, mode="drop"), jnp.take(x, 4, mode="clip")\n',
    "mask": X + "out = x[x > 1], x[None, 0], x[..., 2], x[jnp.array([True, False, True])]\n",
    "ring": (
        "def step(c, x):\n    t, buf = c\n    buf = buf.at[t % 3].set(x)\n    return (t + 1, buf), buf[(t - 1) % 3]\n"
        "out = lax.scan(step, (0, jnp.zeros(3)), jnp.arange(7.0))\n"
    ),
    "in-a-where": (
        "xs = jnp.arange(5.0)\ndef step(c, i):\n    return c + jnp.where(i + 1 < 5, xs[i + 1], 0.0), None\n"
        "out = lax.scan(step, 0.0, jnp.arange(5))\n"
    ),
    "chosen-later": (
        "xs = jnp.arange(5.0)\ndef step(c, i):\n    n = xs[i + 1]\n    return c + jnp.where(i + 1 < 5, n, 0.0), None\n"
        "out = lax.scan(step, 0.0, jnp.arange(5))\n"
    ),
    "times-a-mask": (
        "xs = jnp.arange(5.0)\ndef step(c, i):\n    return c + (i + 1 < 5) * xs[i + 1], None\n"
        "out = lax.scan(step, 0.0, jnp.arange(5))\n"
    ),
    "branch": (
        "xs = jnp.arange(5.0)\ndef step(c, i):\n    return lax.cond(i + 1 < 5, lambda: c + xs[i + 1], lambda: c), None\n"
        "out = lax.scan(step, 0.0, jnp.arange(5))\n"
    ),
    "sentinel": "out = jnp.zeros(5).at[jnp.where(jnp.arange(3) > 1, 5, jnp.arange(3))].add(1.0)\n",
    "library": (
        "ids = jnp.array([0, 2, 5])\nout = jax.ops.segment_sum(jnp.ones(3), ids, num_segments=4), jax.nn.one_hot(ids, 4)\n"
        "more = jnp.roll(ids, 1), ids[jnp.argsort(ids)], np.arange(3)[2], [1, 2][-1], {'a': 1}['a']\n"
    ),
    "moving-window": (
        "xs = jnp.arange(8.0)\nout = lax.scan(lambda c, i: (c, lax.dynamic_slice(xs, (i,), (3,)).mean()), 0, jnp.arange(6))\n"
    ),
    "embedding": "e = jnp.ones((4, 2))\nout = jax.jit(lambda e, i: e[i].sum() + e[:, 1][i].sum())(e, jnp.array([0, 3, -1]))\n",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
def test_what_lies_inside_or_is_chosen_is_fine(text: str) -> None:
    silent(text, "P206", both=False)


def test_the_fix_reads_what_jax_reads_now() -> None:
    text = "xs = jnp.arange(5.0)\n_, out = lax.scan(lambda i, x: (i + 1, xs[i + 1] - x), 0, xs)\n"
    _, sources = only(text, "P206")
    assert np.array_equal(names(sources[0])["out"], names(HEAD + text)["out"])
    assert 'mode="clip"' in sources[0]
