"""S119: a leaf of the carry is never read."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, run
from tests.unit.contract.two_languages import line_of, names, only, silent

CASES = {
    "report": (
        """def step(state, a):
    state = {"pos": state["pos"] + a, "penalty": jnp.where(a > 1.0, 1.0, 0.0)}
    return state, state["pos"]
init = {"pos": 0.0, "penalty": 0.0}
carry, ys = lax.scan(step, init, jnp.array([5.0, 0.0, 0.0]))
out = carry["penalty"]
""",
        2,
    ),
    "tuple": (
        """def advance(c, x):
    total, hits = c
    total = total + x
    hits = (x > 1).astype(jnp.float32)
    return (total, hits), total
(t, out), _ = lax.scan(advance, (0.0, 0.0), jnp.array([5.0, 0.0, 0.0]))
""",
        5,
    ),
    "lambda-under-vmap": (
        """def run(xs):
    return lax.scan(lambda c, x: ({"s": c["s"] + x, "n": jnp.int32(x > 1)}, None), {"s": 0.0, "n": 0}, xs)[0]["n"]
out = jax.vmap(run)(jnp.array([[5.0, 0.0, 0.0]]))[0]
""",
        2,
    ),
    "jitted": (
        """@partial(jax.jit, static_argnames="n")
def go(s, n):
    def body(c, _):
        w = 0.5 * c["w"]
        return {"w": w, "big": jnp.where(c["w"] > 0.6, 1.0, 0.0)}, w
    return lax.scan(body, {"w": s, "big": 0.0}, None, length=n)[0]["big"]
out = go(1.0, n=3)
""",
        5,
    ),
    "method": (
        """class Sim:
    def step(self, s, a):
        pos, hit = s
        return (pos + a, jnp.float32(a > 1.0)), pos
(p, out), _ = lax.scan(Sim().step, (0.0, 0.0), jnp.array([5.0, 0.0, 0.0]))
""",
        4,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_leaf_is_named_where_it_is_made_and_a_total_is_offered(case: str) -> None:
    text, line = CASES[case]
    violation, sources = only(text, "S119")
    assert violation.severity is Severity.NOTE
    assert line_of(violation) == line
    assert float(names(sources[0])["out"]) == 1.0


def test_the_inner_scan_of_two() -> None:
    text = (
        'def sub(s, a):\n    return dict(pos=s["pos"] + a, bad=jnp.where(a > 1.0, 1.0, 0.0)), None\n'
        "def step(s, act):\n    s, _ = lax.scan(sub, s, jnp.stack([act, 0.0 * act]))\n    return s, s['pos']\n"
        "final, ys = lax.scan(step, dict(pos=0.0, bad=0.0), jnp.array([1.0, 5.0, 0.0]))\n"
    )
    violation, _ = only(text, "S119")
    assert line_of(violation) == 2


def test_a_call_is_mended_by_adding_up() -> None:
    def step(c: Any, x: Any) -> Any:
        return {"s": c["s"] + x, "last": x * x}, None

    call = ScanCall(step, {"s": 0.0, "last": 0.0}, jnp.arange(4.0))
    assert kinds(call, "S119") == ["step_add"]
    final, _ = run(mended(call, "S119", "step_add"))
    assert float(final["last"]) == 14.0


@pytest.mark.parametrize(
    ("step", "init"),
    [
        (lambda c, x: ((c[0] + x, x), c[0]), (0.0, 0.0)),  # the last x as it came in
        (lambda c, x: ((c[0] + x, 2 * x), None), (0.0, 1.0)),  # no start of a total
        (lambda c, x: (2 * x, None), 0.0),  # the whole carry
    ],
    ids=["last-x", "starts-at-1", "whole"],
)
def test_a_note_without_a_fix(step: Any, init: Any) -> None:
    (note,) = [v for v in check(ScanCall(step, init, jnp.arange(4.0))).violations if v.code == "S119"]
    assert note.severity is Severity.NOTE
    assert note.fixes == ()


READ = {
    "maximum": (lambda c, x: ((c[0] + x, jnp.maximum(c[1], x)), None), (0.0, 0.0)),
    "handed-on": (lambda c, x: ((c[0] + x, c[1]), None), (0.0, 0.0)),
    "chosen": (lambda c, x: ((c[0] + x, jnp.where(x > 1, x, c[1])), None), (0.0, 0.0)),
    "into-another-leaf": (lambda c, x: ((c[1], c[0] + x), None), (0.0, 0.0)),
    "into-y": (lambda c, x: ((c[0] + x, x), c[1]), (0.0, 0.0)),
    "window": (lambda c, x: (jnp.concatenate([c[1:], x[None]]), c.sum()), np.zeros(3, np.float32)),
}


@pytest.mark.parametrize("case", READ.values(), ids=READ)
def test_what_is_read_somewhere_is_fine(case: Any) -> None:
    step, init = case
    report = clean(ScanCall(step, init, jnp.arange(4.0)))
    assert "S119" not in {v.code for v in report.violations}


def test_one_step_has_no_step_before_it() -> None:
    silent("final, ys = lax.scan(lambda c, x: ((c[0] + x, 2 * x), x), (0.0, 0.0), jnp.ones(1))\n", "S119")
