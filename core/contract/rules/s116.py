"""`length` or `unroll` is not a whole number.

**What.** `length` is a fraction, a text, a bool, or negative; `unroll` is a fraction, a text, an array, or negative.

**Why.** Both count steps. `lax.scan` takes `int()` of `length`, so `2.9` runs 2 steps and `"3"` runs 3, without a word;
a negative `length` gets as far as the compiler, and past it where nothing is stacked into ys: no step is run. A `length`
from 2**31 on does not fit the scan's own counter. Documented and no fault: `unroll=0` and `unroll=True` (unroll all),
`unroll=False` (unroll nothing).

**Bad**

    jax.lax.scan(step, 0.0, length=hours / 0.5)

**Good**

    jax.lax.scan(step, 0.0, length=round(hours / 0.5))

Source: `jax.lax.scan`, arguments `length` ("optional integer specifying the number of loop iterations") and `unroll`
("optional non-negative int or bool"); run on JAX 0.11.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
from jax import lax

from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs
from core.contract.counts import Kind, is_int, is_number
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.sequence import length_count, scans_nothing, xs_length
from core.contract.sequence_facts import SequenceFacts
from core.contract.subject import ScanCall

MESSAGE_BENT = "length is {value}, which is no whole number: JAX takes it as {steps}."
MESSAGE_BENT_XS = "length is {value}, which is no whole number: JAX takes it as {steps}, but xs has {axis} steps."
MESSAGE_SAME = "length is {value}, a {kind}: JAX takes it as {steps}."
MESSAGE_NEGATIVE = "length is {value}: there is no negative number of steps."
MESSAGE_NEGATIVE_RUNS = "length is {value}: there is no negative number of steps, and JAX runs none without a word."
MESSAGE_LARGE = "length is {value:,}: JAX counts the steps in int32, which ends at 2,147,483,647."
MESSAGE_NO_COUNT = "length is {value}, which is no number of steps."
MESSAGE_UNROLL = "unroll is {value}, which is no whole number of at least 0."
MESSAGE_UNROLL_LUCK = "unroll is {value}, no int: this call takes it, others raise."
WHY_LENGTH = "length counts steps: a whole number. JAX takes int() of whatever it is given, without a word."
WHY_LARGE = (
    "The scan's own counter is an int32, unless jax_enable_x64 is set. Each step costs time: nest scans, or take fewer."
)
WHY_UNROLL = "unroll counts steps: an int of at least 0 (0: all), or a bool."
CLAIM = "A scan that only counts was run with this length: this is how far the number of its steps is from it."
#: How much of a value is shown.
WIDTH = 40


def check(facts: ScanFacts | SequenceFacts) -> Iterator[Finding]:
    """At most one finding for `length` and one for `unroll`; a layer over sequences has only the latter."""
    if isinstance(facts, SequenceFacts):
        yield from _unroll(facts, facts.trial.unroll)
        return
    yield from _length(facts)
    yield from _unroll(facts, facts.call.unroll)


def _length(facts: ScanFacts) -> Iterator[Finding]:
    value = facts.call.length
    count = length_count(facts)
    if value is not None and count.kind is Kind.WHOLE and (count.steps or 0) >= 2**31 and facts.jax is not None:
        yield Finding(
            message=fill(MESSAGE_LARGE, value=count.steps),
            place=facts.places.find("length", "scan"),
            severity=Severity.ERROR,
            silent=False,
            why=WHY_LARGE,
            path="length",
        )
        return
    if value is None or count.kind in (Kind.WHOLE, Kind.ABSTRACT):
        return
    axis = xs_length(facts)
    agrees = axis is None or count.steps == axis
    if count.kind is Kind.SAME and not agrees:
        return  # a whole number after all: S108 says what is wrong with it
    raises = count.kind is Kind.NONE or not agrees or (count.kind is Kind.NEGATIVE and facts.jax is not None)
    template, severity = {
        Kind.SAME: (MESSAGE_SAME, Severity.NOTE),
        Kind.BENT: (MESSAGE_BENT, Severity.WARNING) if agrees else (MESSAGE_BENT_XS, Severity.ERROR),
        Kind.NEGATIVE: (MESSAGE_NEGATIVE if raises else MESSAGE_NEGATIVE_RUNS, Severity.ERROR),
        Kind.NONE: (MESSAGE_NO_COUNT, Severity.ERROR),
    }[count.kind]
    yield Finding(
        message=fill(template, value=_shown(value), steps=count.steps, axis=axis, kind=type(value).__name__),
        place=facts.places.find("length", "scan"),
        repairs=tuple(_length_repairs(facts, axis, count.steps)),
        measure=None if raises or not is_number(value) or count.kind is Kind.SAME else Measure(CLAIM, _steps_lost),
        severity=severity,
        silent=not raises,
        why=WHY_LENGTH,
        path="length",
    )


def _steps_lost(call: ScanCall) -> float:
    """How many steps, or what part of one, `length` asks for and is not given."""
    if call.length is None:
        return 0.0
    steps, _ = lax.scan(lambda n, _: (n + 1, None), 0, None, length=call.length)
    return abs(float(call.length) - float(steps))


def _length_repairs(facts: ScanFacts, axis: int | None, steps: int | None) -> Iterator[Repair]:
    """The length from xs where there is one; else the whole number that is nearest to what was given."""
    if axis is not None:
        yield repairs.length_from_xs(axis)
        return
    if facts.xs_types:
        return  # its leaves do not agree: that comes first
    near = {n for n in (steps, _nearest(facts.call.length)) if n is not None and n > 0}
    for n in sorted(near) or ([1] if scans_nothing(facts) else []):
        yield repairs.set_length(n)


def _nearest(value: Any) -> int | None:
    """A whole number next to a value: rounded up, its sign dropped, the one entry of a container taken."""
    if isinstance(value, list | tuple) and len(value) == 1:
        return _nearest(value[0])
    if getattr(value, "size", None) == 1 and getattr(value, "shape", ()) != ():
        return _nearest(np.asarray(value).reshape(()))
    if isinstance(value, str | bytes):
        try:
            value = float(value)
        except ValueError:
            return None
    if not is_number(value) or not math.isfinite(value):
        return None
    return math.ceil(abs(float(value)))


def _unroll(facts: ScanFacts | SequenceFacts, value: Any) -> Iterator[Finding]:
    if isinstance(value, jax.core.Tracer | bool | np.bool_):
        return
    array = isinstance(value, jax.Array | np.ndarray)
    if is_int(value) and int(value) >= 0 and not array:
        return
    # A float goes as far as the compiler, and some pass it: only a trial tells.
    raises = array or not is_number(value) or value < 0 or facts.jax is not None
    near = None if is_number(value) and value < 0 else _nearest(value)
    yield Finding(
        message=fill(MESSAGE_UNROLL if raises else MESSAGE_UNROLL_LUCK, value=_shown(value)),
        place=facts.places.find("unroll", "scan"),
        repairs=(repairs.set_unroll(near if near is not None else 1),),
        severity=Severity.ERROR if raises else Severity.NOTE,
        silent=not raises,
        why=WHY_UNROLL,
        path="unroll",
    )


def _shown(value: Any) -> str:
    """The value as it was written, cut when it is long."""
    text = repr(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


RULE = Rule(
    code="S116",
    name="length-or-unroll-no-count",
    title="length or unroll is not a whole number",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.INPUT,
    why=WHY_LENGTH,
    check=check,
    on=frozenset({"scan", "sequence"}),
)
