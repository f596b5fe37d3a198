"""P207: a jitted function keeps the value that a global had when it was traced."""

from __future__ import annotations

import numpy as np
import pytest

from core.base.violation import Severity
from tests.unit.contract.two_languages import line_of, names, only, silent

#: Script, the line that reads, what a fix leaves in `out`.
BAD = {
    "global": (
        "k = 1.0\n@jax.jit\ndef f(x):\n    return k * x\na = f(jnp.ones(3))\nk = 5.0\nout = f(jnp.ones(3))\n",
        4,
        5.0,
    ),
    "lambda": ("k = 1.0\ng = jax.jit(lambda v: v + k)\ng(1.0)\nk = 3.0\nout = g(1.0)\n", 2, 4.0),
    "array": ("w = jnp.ones(2)\n@jax.jit\ndef f(x):\n    return w * x\nf(2.0)\nw = 2 * w\nout = f(2.0)\n", 4, 4.0),
    "loop-over-values": ("f = jax.jit(lambda x: k * x)\nfor k in [1.0, 2.0, 3.0]:\n    out = f(2.0)\n", 1, 6.0),
    "in-place-operator": ("k = 1.0\nf = jax.jit(lambda x: k * x)\nf(1.0); k *= 3; out = f(1.0)\n", 2, 3.0),
    "in-a-function": (
        "def main():\n    k = 1.0\n    f = jax.jit(lambda x: k * x)\n    f(2.0)\n    k = 4.0\n    return f(2.0)\nout = main()\n",
        3,
        8.0,
    ),
    "step-of-a-scan": (
        "dt = 0.5\ndef step(c, x):\n    return c + dt * x, None\nlax.scan(step, 0.0, jnp.ones(4))\ndt = 1.0\n"
        "out = lax.scan(step, 0.0, jnp.ones(4))[0]\n",
        3,
        4.0,
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_the_read_is_named_and_the_fix_computes_with_the_new_value(case: str) -> None:
    text, line, fixed = BAD[case]
    violation, sources = only(text, "P207")
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert line_of(violation) == line
    assert violation.because is not None
    assert violation.proof is not None
    assert violation.proof.before > 0.0
    assert violation.proof.after == 0.0
    assert np.all(np.asarray(names(sources[0])["out"]) == fixed)


def test_an_entry_of_a_dict() -> None:
    text = 'cfg = {"lr": 0.1}\nf = jax.jit(lambda x: x - cfg["lr"] * x)\nf(1.0)\ncfg["lr"] = 0.5\nout = f(1.0)\n'
    violation, _ = only(text, "P207")
    assert 'cfg["lr"] was 0.1' in violation.message


def test_a_function_of_the_script() -> None:
    text = "act = jnp.tanh\n@jax.jit\ndef g(x):\n    return act(x)\ng(1.0)\nact = jnp.sin\nout = g(1.0)\n"
    violation, sources = only(text, "P207")
    assert line_of(violation) == 4
    assert sources == []


FINE = {
    "traced-again": "k = 1.0\nf = jax.jit(lambda x: k * x)\nf(jnp.ones(3))\nk = 5.0\nout = f(jnp.ones(4))\n",
    "cleared": "k = 1.0\nf = jax.jit(lambda x: k * x)\nf(1.0)\nk = 5.0\nf.clear_cache()\nout = f(1.0)\n",
    "rebound-after": "k = 1.0\nf = jax.jit(lambda x: k * x)\nf(1.0)\nf(1.0)\nk = 5.0\n",
    "same-value": "k = 1.0\nf = jax.jit(lambda x: k * x)\nf(1.0)\nk = 1.0\nout = f(1.0)\n",
    "not-kept": "k = 1.0\nf = lambda x: k * x\njax.vmap(f)(jnp.ones(2))\nk = 5.0\nout = jax.vmap(f)(jnp.ones(2))\n",
    "a-local": "@jax.jit\ndef f(x):\n    k = 2.0\n    return k * x\nk = 1.0\nf(1.0)\nk = 3.0\nout = f(1.0)\n",
    "argument": "f = jax.jit(lambda x, k: k * x)\nfor k in (1.0, 2.0):\n    out = f(1.0, k)\n",
    "factory": (
        "def make(s):\n    k = 2 * s\n    return jax.jit(lambda x: k * x)\none = make(1.0)\none(1.0)\ntwo = make(2.0)\n"
        "out = one(1.0) + two(1.0)\n"
    ),
    "fresh-each-time": "for k in (1.0, 2.0):\n    out = jax.jit(lambda x: k * x)(1.0)\n",
    "unread": "n = 0\nf = jax.jit(lambda x: x + 1)\nfor i in range(3):\n    n = i\n    out = f(1.0)\n",
    "steps-of-their-own": "for dt in (0.1, 0.2):\n    out = lax.scan(lambda c, x: (c + dt * x, None), 0.0, jnp.ones(3))\n",
}


@pytest.mark.parametrize("text", FINE.values(), ids=FINE)
def test_what_is_traced_anew_is_fine(text: str) -> None:
    silent(text, "P207")
