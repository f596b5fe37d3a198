"""A reversed scan keeps the order of its outputs.

**What.** `lax.scan(..., reverse=True)` visits x from last to first, but ys stay in the order of xs: ys[t] belongs to
xs[t], and the step that ran first is at the end. `nnx.RNN(reverse=True)` returns the order of the visits instead, unless
it is told `keep_order=True`: outputs of a forward and a reversed RNN then pair different steps.

**Why.** Two conventions meet: order of time and order of visits. They have the same shape, so nothing raises.

**Bad**

    backward = jax.lax.scan(step, init, xs, reverse=True)[1][::-1]    # flipped to "the right order": now it is wrong

**Good**

    backward = jax.lax.scan(step, init, xs, reverse=True)[1]          # backward[t] belongs to xs[t]

For `lax.scan` it is a note; a warning where `reverse` is a text that says no ("False"), for to Python it says yes.

Source: jax.lax.scan, argument `reverse`; flax.nnx.RNN, arguments `reverse` and `keep_order`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from core.base.text import fill
from core.base.violation import Severity
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.subject import ScanCall
from core.contract.trace import StepTrace
from core.runners.scan import run_call

WITH_XS = (
    "reverse={reverse}: the steps run from t = {last} down to 0, and ys stay in the order of xs, so ys[t] still belongs "
    "to xs[t]. The final carry comes out of t = 0."
)
WITHOUT_XS = (
    "reverse={reverse}: ys are filled from the end, so ys[{last}] is the output of the step that ran first and ys[0] of "
    "the one that ran last."
)
MEANS_NO = "reverse is the text {reverse}, and a text that is not empty counts as True: this scan runs backwards."
CLAIM = "The scan was looked at as it ran; this is the t of its first step."
TITLE = "Set reverse to {value}"
WHY = "lax.scan keeps ys in the order of xs also in reverse; order of time and order of visits have the same shape."

#: Texts that mean False to whoever wrote them.
NO = frozenset({"false", "no", "0", "off", "none", "f", "n"})


def check(facts: ScanFacts) -> Iterator[Finding]:
    """The scan's own `reverse`. (Calls of `nnx.RNN` are events of a script; they are looked at where those are.)"""
    call = facts.call
    if facts.jax is not None or not isinstance(facts.trace, StepTrace) or not call.reverse:
        return
    if facts.length is None or facts.length < 2:
        return
    if isinstance(call.reverse, str) and call.reverse.strip().lower() in NO:
        yield _means_no(facts)
    elif facts.trace.y_types():
        template = WITH_XS if facts.xs_types else WITHOUT_XS
        yield Finding(
            message=fill(template, reverse=call.reverse, last=facts.length - 1),
            place=facts.places.find("reverse", "scan"),
        )


def _means_no(facts: ScanFacts) -> Finding:
    fix = Repair("reverse", fill(TITLE, value=False), lambda call: replace(call, reverse=False), "", False)
    return Finding(
        message=fill(MEANS_NO, reverse=repr(facts.call.reverse)),
        place=facts.places.find("reverse", "scan"),
        repairs=(fix,),
        measure=Measure(CLAIM, _first_t),
        severity=Severity.WARNING,
        silent=True,
    )


def _first_t(call: ScanCall) -> float:
    return float(run_call(call).order[0])


RULE = Rule(
    code="S114",
    name="reverse-keeps-order",
    title="A reversed scan keeps the order of its outputs",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
)
