"""L302 in scripts: what an encoder leaves as (c, h) goes on as (h, c)."""

from __future__ import annotations

import pytest

from core.base.violation import Violation
from core.doctor.check import check_script
from core.doctor.instrument import Prepare, trusted
from core.doctor.sandboxed import sandboxed

HEAD = """import jax
import jax.numpy as jnp
from flax import nnx
enc = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
dec = nnx.OptimizedLSTMCell(3, 4, rngs=nnx.Rngs(1))
xs = jax.random.normal(jax.random.key(0), (5, 2, 3))
init = enc.initialize_carry((2, 3), nnx.Rngs(2))
encode = lambda carry, x: enc(carry, x)
decode = lambda carry, x: dec(carry, x)
"""
SCANNED = "(c, h), ys = jax.lax.scan(encode, init, xs)\n"
LAYER = "(c, h), ys = nnx.RNN(enc, return_carry=True, time_major=True)(xs)\n"

WRONG = {
    "to a scan": (SCANNED + "_, out = jax.lax.scan(decode, (h, c), xs)\n", 11),
    "by name": (SCANNED + "start = (h, c)\n_, out = jax.lax.scan(decode, start, xs)\n", 11),
    "by index": (
        "final, ys = jax.lax.scan(encode, init, xs)\n_, out = jax.lax.scan(decode, (final[1], final[0]), xs)\n",
        11,
    ),
    "from a layer": (LAYER + "_, out = jax.lax.scan(decode, (h, c), xs)\n", 11),
    "to a layer": (SCANNED + "out = nnx.RNN(dec, time_major=True)(xs, initial_carry=(h, c))\n", 11),
    "to a step": (SCANNED + "_, out = dec((h, c), xs[0])\n", 11),
    "to a function": (
        SCANNED + "def run(state):\n    return jax.lax.scan(decode, state, xs)\n_, out = run((h, c))\n",
        13,
    ),
    "in a larger carry": (
        SCANNED
        + "def step(carry, x):\n    state, n = carry\n    state, y = dec(state, x)\n    return (state, n + 1), y\n"
        "_, out = jax.lax.scan(step, ((h, c), 0), xs)\n",
        15,
    ),
}
RIGHT = {
    "as it left": SCANNED + "_, out = jax.lax.scan(decode, (c, h), xs)\n",
    "whole": "final, ys = jax.lax.scan(encode, init, xs)\n_, out = jax.lax.scan(decode, final, xs)\n",
    "to a layer": SCANNED + "out = nnx.RNN(dec, time_major=True)(xs, initial_carry=(c, h))\n",
    "h twice": SCANNED + "_, out = jax.lax.scan(decode, (h, h), xs)\n",
    "only h": SCANNED + "_, out = jax.lax.scan(decode, (jnp.zeros_like(h), h), xs)\n",
    "kept the other way round": SCANNED
    + "def step(carry, x):\n    h, c = carry\n    (c, h), y = dec((c, h), x)\n    return (h, c), y\n"
    + "_, out = jax.lax.scan(step, (h, c), xs)\n",
    "of two encoders": SCANNED
    + "(c2, h2), _ = jax.lax.scan(decode, init, xs)\n_, out = jax.lax.scan(decode, (h2, c), xs)\n",
}


def found(text: str, prepare: Prepare = trusted) -> list[Violation]:
    checkup = check_script(HEAD + text, prepare=prepare)
    assert checkup.report.error is None
    assert checkup.run is not None
    assert not checkup.run.problems
    checkup.close()
    return [v for v in checkup.report.violations if v.code == "L302" or v.severity.breaks]


@pytest.mark.parametrize("name", WRONG)
def test_h_and_c_handed_on(name: str) -> None:
    text, line = WRONG[name]
    (violation,) = found(text)
    assert violation.code == "L302"
    assert violation.place.line == line
    assert violation.because.place.line == 10
    assert violation.proof.before > 1e-3
    assert violation.proof.after == 0.0
    assert len(violation.fixes) == 1


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_no_exchange(name: str) -> None:
    assert found(RIGHT[name]) == []


def test_both_languages_say_the_same() -> None:
    text, _ = WRONG["to a scan"]
    assert found(text) == found(text, sandboxed)


def test_under_jit_there_is_no_number() -> None:
    text = SCANNED.replace("init, xs", "init, xs_") + "_, out = jax.lax.scan(decode, (h, c), xs_)\n"
    body = "".join(f"    {line}\n" for line in text.splitlines())
    (violation,) = found(f"@jax.jit\ndef run(xs_):\n{body}    return out\nrun(xs)\n")
    assert (violation.code, violation.proof) == ("L302", None)
    assert violation.fixes
