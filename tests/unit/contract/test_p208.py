"""P208: a donated buffer is used again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.outcome import Outcome
from core.doctor.check import check_script
from tests.unit.contract.two_languages import HEAD, line_of, names, only, silent

#: Script, the line of the use, and what `out` is after a fix.
BAD = {
    "used-after": (
        "f = jax.jit(lambda p, g: p - 0.5 * g, donate_argnums=0)\np = jnp.ones(2)\nnew = f(p, jnp.ones(2))\nout = p + 0.0\n",
        4,
        (0.5, 1.0),
    ),
    "loop-over-a-tree": (
        '@partial(jax.jit, donate_argnums=(0,))\ndef train(p, x):\n    return {"w": p["w"] - x}\np = {"w": jnp.full(2, 3.0)}\n'
        'for i in range(3):\n    q = train(p, 1.0)\nout = q["w"]\n',
        6,
        (0.0, 2.0),
    ),
    "by-name-in-a-class": (
        '@partial(jax.jit, donate_argnames="p")\ndef train(p, x):\n    return p - x\nclass T:\n'
        "    def __init__(self): self.p = jnp.ones(2)\n    def go(self):\n        train(self.p, 1.0)\n        return self.p.sum()\n"
        "out = T().go()\n",
        8,
        (2.0,),
    ),
    "scan-in-a-function": (
        "def run(p):\n    f = jax.jit(lambda c, xs: lax.scan(lambda c, x: (c + x, c), c, xs), donate_argnums=0)\n"
        "    c, ys = f(p, jnp.ones((4, 3)))\n    return c - p\nout = run(jnp.zeros(3))\n",
        4,
        (4.0,),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_the_use_is_named_and_each_fix_runs(case: str) -> None:
    text, line, values = BAD[case]
    violation, sources = only(text, "P208")
    assert not violation.silent
    assert line_of(violation) == line
    assert violation.because is not None
    assert len(sources) >= 2
    for source in sources:
        out = np.asarray(names(source)["out"])
        assert any(np.all(out == value) for value in values), (source, out)


def test_passed_twice_in_one_call() -> None:
    text = "f = jax.jit(lambda p, q: p - q, donate_argnums=0)\nx = jnp.ones(3)\nout = f(x, x)\n"
    violation, sources = only(text, "P208")
    assert line_of(violation) == 3
    assert names(sources[0])["out"].tolist() == [0.0, 0.0, 0.0]


FINE = {
    "rebound": "f = jax.jit(lambda p: p - 1.0, donate_argnums=0)\np = jnp.ones(3)\np = f(p)\np = f(p)\n",
    "copied": "f = jax.jit(lambda p: p - 1.0, donate_argnums=0)\np = jnp.ones(3)\nq = f(jnp.copy(p))\nout = p + q\n",
    "not-usable": "f = jax.jit(lambda p: p.sum(), donate_argnums=0)\np = jnp.ones(3)\nout = f(p), p + 1\n",
    "host-array": "f = jax.jit(lambda p: p - 1.0, donate_argnums=0)\np = np.ones(3)\nout = f(p), p + 1\n",
    "shape-only": "f = jax.jit(lambda p: p - 1.0, donate_argnums=0)\np = jnp.ones(3)\nq = f(p)\nout = p.shape\n",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
def test_what_is_not_used_again_is_fine(text: str) -> None:
    silent(text, "P208")


def test_an_array_that_was_deleted_by_hand_was_not_donated() -> None:
    checkup = check_script(HEAD + "p = jnp.ones(3)\np.delete()\nout = p + 1\n")
    assert checkup.report.outcome is Outcome.ERROR
    assert checkup.report.error is not None
    assert not checkup.report.violations


def test_this_version_donates_on_the_cpu() -> None:
    p = jnp.ones(3)
    jax.jit(lambda v: v + 1, donate_argnums=0)(p)
    assert p.is_deleted()
