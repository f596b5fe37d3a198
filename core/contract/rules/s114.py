"""A reversed scan keeps the order of its outputs.

**What.** `lax.scan(..., reverse=True)` visits x from last to first, but ys stay in the order of xs: ys[t] belongs to
xs[t], and the step that ran first is at the end. `nnx.RNN(reverse=True)` returns the order of the visits instead, unless
it is told `keep_order=True`: outputs of a forward and a reversed RNN then pair different steps.

**Why.** Two conventions meet: order of time and order of visits. They have the same shape, so nothing raises.

**Bad**

    backward = jax.lax.scan(step, init, xs, reverse=True)[1][::-1]    # flipped to "the right order": now it is wrong

**Good**

    backward = jax.lax.scan(step, init, xs, reverse=True)[1]          # backward[t] belongs to xs[t]

    forward, backward = rnn(x), rnn(x, reverse=True, keep_order=True)  # both in the order of time; so does nnx.Bidirectional

For `lax.scan` it is a note; a warning where `reverse` is a text that says no ("False"), for to Python it says yes. For
`nnx.RNN` it is a warning where its outputs stand beside a sequence in order of time (added, joined), and a note where
they do not; outputs that the script turns round again are no finding, nor is their last step or their mean.

Source: jax.lax.scan, argument `reverse`; flax.nnx.RNN, arguments `reverse` and `keep_order`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import jax
import numpy as np

from core.base.places import Because, Span
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import sequence_rules
from core.contract.facts import ScanFacts
from core.contract.origin import record_of
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called
from core.contract.sequence_facts import SequenceFacts
from core.contract.subject import ScanCall, Subject
from core.contract.trace import StepTrace
from core.contract.visits import Reversed, is_rnn, reversed_calls, reverses, sequences, steps_of
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
VISITS = (
    "This RNN runs backwards and returns its outputs in the order of its visits: output 0 belongs to the last step of "
    "{inputs}."
)
MIXED = VISITS + " They are put beside a sequence in order of time, so different steps are paired."
MIXED_AT = "paired with another step here"
CLAIM_RNN = "The RNN was run once more with keep_order=True: largest difference to the outputs that the script used."
CLAIM_TRACED = "Outputs that stand at the place of another step were counted."
TITLE_ORDER = "Set keep_order to True"
TITLE = "Set reverse to {value}"
WHY = "lax.scan keeps ys in the order of xs also in reverse; order of time and order of visits have the same shape."

#: Texts that mean False to whoever wrote them.
NO = frozenset({"false", "no", "0", "off", "none", "f", "n"})


def check(facts: ScanFacts | ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """The scan's own `reverse`; of a script, calls of `nnx.RNN`; of a layer over sequences, the layer."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_rules.order_of_visits(facts)
        return
    yield from _scan(facts) if isinstance(facts, ScanFacts) else _networks(facts)


def _scan(facts: ScanFacts) -> Iterator[Finding]:
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


# --- nnx.RNN --------------------------------------------------------------------------------------------------------


def _networks(facts: ScriptFacts) -> Iterator[Finding]:
    by_node: dict[ast.Call, Reversed] = {}
    for one in facts.once(reversed_calls):
        before = by_node.get(one.call.node)
        if before is None or (before.mixed is None and one.mixed is not None):
            by_node[one.call.node] = one
    for node, one in by_node.items():
        if one.mixed is None and one.undone:
            continue
        inputs = one.call.argument_node(0, "inputs")
        said = fill(
            VISITS if one.mixed is None else MIXED, inputs="x" if inputs is None else facts.source.text_of(inputs)
        )
        yield Finding(
            message=said,
            place=facts.span(node),
            because=None if one.mixed is None else Because(facts.span(one.mixed), MIXED_AT),
            repairs=tuple(_kept(facts, one.call)) if one.mixed is not None else (),
            measure=None if one.mixed is None else _moved(facts, one.call),
            severity=Severity.NOTE if one.mixed is None else Severity.WARNING,
            silent=True,
            path=facts.source.text_of(node.func),
        )


def _kept(facts: ScriptFacts, call: Called) -> Iterator[Repair]:
    """``keep_order=True``, in the call."""
    given = next((k.value for k in call.node.keywords if k.arg == "keep_order"), None)
    if given is not None:
        yield facts.rewrite(fill(TITLE_ORDER), given, "True")
        return
    parts: list[ast.expr] = [*call.node.args, *(k.value for k in call.node.keywords)]
    span = facts.span(max(parts, key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0)))
    end = Span(span.end_line, span.end_col, span.end_line, span.end_col)
    yield facts.rewrites(fill(TITLE_ORDER), TextEdit(end, ", keep_order=True"))


def _moved(facts: ScriptFacts, call: Called) -> Measure:
    """The proof: by the numbers where there are any, else by the places of the steps."""
    number = [c for c in facts.record.calls if is_rnn(c)].index(call)
    traced = isinstance(sequences(call)[1], jax.core.Tracer)

    def of(subject: Subject) -> float:
        same = [c for c in record_of(subject).calls if is_rnn(c)][number]
        if traced:
            steps = steps_of(same)
            return float(steps - steps % 2) if reverses(same) else 0.0
        outputs = np.asarray(sequences(same)[1], np.float64)
        ordered = same.func(*same.args, **{**same.kwargs, "keep_order": True, "return_carry": False})
        return float(np.abs(outputs - np.asarray(ordered, np.float64)).max())

    return Measure(fill(CLAIM_TRACED if traced else CLAIM_RNN), of)


RULE = Rule(
    code="S114",
    name="reverse-keeps-order",
    title="A reversed scan keeps the order of its outputs",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"scan", "script", "sequence"}),
)
