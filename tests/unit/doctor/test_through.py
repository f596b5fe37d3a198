"""h alone in the carry of an LSTM's scan: the pair is carried through the step, however the script is written."""

from __future__ import annotations

import numpy as np
import pytest

from core.doctor.check import check_script
from core.doctor.sandboxed import sandboxed

TITLE = "Carry (c, h) through the step"
AFRESH = "Pass a pair: c from zeros, this array as h"
HEAD = """import jax, jax.numpy as jnp
from flax import nnx
from typing import NamedTuple
class Carry(NamedTuple):
    h: jax.Array
    n: jax.Array
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
xs = jax.random.normal(jax.random.key(1), (7, 2, 3))
h0 = jax.random.normal(jax.random.key(2), (2, 4))
"""
STEP = "def step(state, x):\n    h, n = state\n"
LAST = "final, ys = jax.lax.scan(step, (h0, 0.0), xs)\n"
RIGHT = HEAD + (
    "def step(state, x):\n    (c, h), n = state\n    (c, h), out = cell((c, h), x)\n    return ((c, h), n + 1.0), out\n"
    "final, ys = jax.lax.scan(step, ((jnp.zeros_like(h0), h0), 0.0), xs)\n"
)
#: Scripts whose ys are h of each step, and what each is about.
WRITTEN = {
    "thrown away": STEP + "    _, out = cell(h, x)\n    return (out, n + 1.0), out\n" + LAST,
    "named": STEP + "    new, out = cell(h, x)\n    return (out, n + 1.0), out\n" + LAST,
    "named again": STEP + "    h, out = cell(h, x)\n    return (out, n + 1.0), out\n" + LAST,
    "named again, later": STEP
    + "    new, out = cell(h, x)\n    new = jnp.mean(x)\n    return (out, n + new * 0), out\n"
    + LAST,
    "the same name": STEP + "    _, h = cell(h, x)\n    return (h, n + 1.0), h\n" + LAST,
    "apart": STEP + "    (_, new_h), _ = cell(h, x)\n    return (new_h, n + 1.0), new_h\n" + LAST,
    "by item": "def step(s, x):\n    out = cell(s[0], x)[1]\n    return (out, s[1] + 1.0), out\n" + LAST,
    "by item in the return": STEP + "    y = cell(h, x)[1]\n    return (cell(h, x)[-1], n + 1.0), y\n" + LAST,
    "a result": STEP + "    made = cell(h, x)\n    new = (made[1], n + 1.0)\n    return new, made[1]\n" + LAST,
    "a walrus": STEP + "    return ((r := cell(h, x))[1], n + 1.0), r[1]\n" + LAST,
    "keywords": STEP + "    _, out = cell(inputs=x, carry=h)\n    return (out, n + 1.0), out\n" + LAST,
    "a lambda": "step = lambda s, x: ((cell(s[0], x)[1], s[1] + 1.0), cell(s[0], x)[1])\n" + LAST,
    "used elsewhere": STEP
    + "    size = jnp.mean(h)\n    _, out = cell(h, x)\n    return (out, n + size), out\n"
    + LAST
    + "print(final[0].shape, final[1])\n",
    "a dict": "def step(s, x):\n    _, out = cell(s['h'], x)\n    return {'h': out, 'n': s['n'] + 1.0}, out\n"
    "final, ys = jax.lax.scan(step, {'h': h0, 'n': 0.0}, xs)\nlast = final['h']\nprint(last.mean())\n",
    "a dict, spread": "def step(s, x):\n    _, out = cell(s['h'], x)\n    return {**s, 'h': out}, out\n"
    "init = dict(h=h0, n=0.0)\nfinal, ys = jax.lax.scan(step, init, xs)\n",
    "a NamedTuple": "def step(s, x):\n    _, out = cell(s.h, x)\n    return Carry(out, s.n + 1), out\n"
    "final, ys = jax.lax.scan(step, Carry(h0, jnp.array(0)), xs)\nprint(final.h.shape)\n",
    "replaced": "def step(s, x):\n    _, out = cell(s.h, x)\n    return s._replace(h=out), out\n"
    "init = Carry(h=h0, n=jnp.array(0))\nfinal, ys = jax.lax.scan(step, init, xs)\n",
    "the whole carry": "def step(h, x):\n    _, out = cell(h, x)\n    return out, out\n"
    "final, ys = jax.lax.scan(step, h0, xs)\nprint(final.shape)\n",
    "deeper": "def step(s, x):\n    n, inner = s\n    _, out = cell(inner['h'], x)\n"
    "    return (n + 1.0, dict(inner, h=out)), out\n"
    "final, ys = jax.lax.scan(step, (0.0, {'h': h0, 'k': 1.0}), xs)\n",
    "a function makes init": STEP
    + "    _, out = cell(h, x)\n    return (out, n + 1.0), out\n"
    + "def make():\n    return h0, 0.0\nfinal, ys = jax.lax.scan(step, make(), xs)\n",
    "two scans": STEP
    + "    _, out = cell(h, x)\n    return (out, n + 1.0), out\n"
    + "(h, n), ys = jax.lax.scan(step, (h0, 0.0), xs)\nprint(h.shape)\n(h, n), more = jax.lax.scan(step, (h, n), xs)\n",
    "in a function": "def main(h0):\n    def step(state, x):\n        h, n = state\n        _, out = cell(h, x)\n"
    "        return (out, n + 1.0), out\n    return jax.lax.scan(step, (h0, 0.0), xs)\nfinal, ys = main(h0)\n",
}


def ys_of(text):
    checkup = check_script(text, prepare=sandboxed, fixes=False)
    assert checkup.report.error is None, text
    assert not checkup.report.broken, (text, checkup.report.violations)
    return np.asarray(checkup.run.record.names["ys"])


@pytest.fixture(scope="module")
def right():
    return ys_of(RIGHT)


@pytest.mark.parametrize("written", WRITTEN)
def test_the_pair_is_carried_through(written, right):
    checkup = check_script(HEAD + WRITTEN[written], prepare=sandboxed)
    broken = [n for n, v in enumerate(checkup.report.violations) if v.code == "L301"]
    assert broken
    for number in broken:
        violation = checkup.report.violations[number]
        assert [fix.title for fix in violation.fixes] == [TITLE]
        (text,) = checkup.sources[number]
        assert "initialize_carry" not in text
        (after,) = [run for run in checkup.runs if run.record.source.text == text][-1:]
        assert after.record.failure is None
        np.testing.assert_array_equal(after.record.names["ys"], right)
        assert violation.proof is not None
        assert violation.proof.before > 0.001
        assert violation.proof.after == 0


def test_what_is_zeros_already_is_written_twice():
    text = HEAD + STEP + "    _, out = cell(h, x)\n    return (out, n + 1.0), out\n"
    checkup = check_script(text + "init = (jnp.zeros((2, 4)), 0.0)\nfinal, ys = jax.lax.scan(step, init, xs)\n")
    assert "init = ((jnp.zeros((2, 4)), jnp.zeros((2, 4))), 0.0)\n" in checkup.sources[0][0]


@pytest.mark.parametrize("batch", [1, 3, 5])
def test_where_it_raises_because_of_the_batch(batch):
    text = HEAD + STEP + "    _, out = cell(h, x)\n    return (out, n + 1.0), out\n"
    text += f"xs = jnp.ones((7, {batch}, 3))\nfinal, ys = jax.lax.scan(step, (jnp.zeros(({batch}, 4)), 0.0), xs)\n"
    (violation,) = check_script(text, prepare=sandboxed).report.violations
    assert violation.code == "L301"
    assert [fix.title for fix in violation.fixes] == [TITLE]


MOCK = """import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))

def step(state, x):
    (h, n) = state
    _, out = cell(h, x)
    n = n + 0.5
    return (out, n), out

init = (jnp.zeros((2, 4)), jnp.int32(0))
final, ys = jax.lax.scan(step, init, jnp.ones((7, 2, 3)))"""


def test_beside_another_fault_each_fix_says_what_remains_and_both_run_clean():
    checkup = check_script(MOCK, prepare=sandboxed)
    found = {v.code: v for v in checkup.report.violations}
    assert [(f.title, f.remaining) for f in found["L301"].fixes] == [(TITLE, ("S104",))]
    assert [f.remaining for f in found["S104"].fixes] == [("L301",)]
    proof = found["L301"].proof  # the scan itself raises: one step of it is enough
    assert proof is not None
    assert proof.before > 0.001
    assert proof.after == 0
    together = checkup.together.text
    assert "return (new, n), out\n" in together
    cell_right = MOCK.replace("_, out", "new, out").replace("(out, n)", "(new, n)").replace("int32(0)", "float32(0)")
    cell_right = cell_right.replace("(jnp.zeros((2, 4)), jnp.f", "((jnp.zeros((2, 4)), jnp.zeros((2, 4))), jnp.f")
    assert together == cell_right
    assert ys_of(together).shape == (7, 2, 4)


@pytest.mark.parametrize(
    "step",
    [
        "def run(h, x):\n    _, out = cell(h, x)\n    return out\ndef step(state, x):\n    h, n = state\n"
        "    out = run(h, x)\n    return (out, n + 1.0), out\n",
        STEP + "    _, out = cell(h, x)\n    return (jnp.tanh(out), n + 1.0), out\n",
    ],
    ids=["in another function", "h is changed before it is carried"],
)
def test_where_it_cannot_be_told_the_carry_is_never_initialised_in_the_step(step):
    checkup = check_script(HEAD + step + LAST, prepare=sandboxed)
    titles = [f.title for v in checkup.report.violations if v.code == "L301" for f in v.fixes]
    assert titles in ([], [AFRESH])
    assert not any("initialize_carry" in text for texts in checkup.sources for text in texts)


def test_the_cell_whose_h_is_carried_is_meant_not_another_one():
    text = (
        HEAD
        + STEP
        + "    _, other = cell(h, 2 * x)\n    _, out = cell(h, x)\n    return (out, n + 1.0), other\n"
        + LAST
    )
    checkup = check_script(text, prepare=sandboxed)
    texts = [t for v, t in zip(checkup.report.violations, checkup.sources, strict=True) if v.code == "L301"]
    assert len(texts) == 2
    for (fixed,) in texts:
        assert "new, out = cell(h, x)\n    return (new, n + 1.0), other" in fixed
