"""Lengths that are no lengths: seq_lengths of 0, above T, negative, of another shape or type.

**What.** A layer returns the carry at index ``seq_lengths - 1``. A length of 0 gives index -1: the carry after all the
padding. A negative one counts from the end too, one above T is cut to T. One length for all examples, ``(B, 1)``
lengths and a mask whose sides are equal are taken without a word; fractions, lists and another count raise.

**Why.** A length is the number of steps of one example that count: a whole number from 1 to T, one for each example.

**Bad**

    lengths = jnp.array([0, 4])                            # example 0 has no step: it gets the carry of its padding
    carry, ys = rnn(x, seq_lengths=lengths)

**Good**

    carry, ys = rnn(x, seq_lengths=lengths)
    carry = jnp.where((lengths > 0)[:, None], carry, 0.0)  # an empty sequence ends where it began

Without ``return_carry`` (and not reversed) a layer does not look at its lengths. Where the carry goes nowhere, or the
script tells empty sequences apart itself (``lengths > 0``), there is no finding.

Source: flax.nnx.nn.recurrent._select_last_carry, "last_idx = seq_lengths - 1"; flip_sequences.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.text import fill
from core.base.violation import Severity
from core.contract import sequence_lengths
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.seq_lengths import Fault, Kind, Off, faults, repairs_of
from core.contract.sequence_facts import SequenceFacts

EMPTY = (
    "Example {example} has length 0: index -1 is taken, and its final carry is that of step {last}, which is padding. "
    "An empty sequence ends with the carry it began with."
)
NEGATIVE = "Example {example} has length {length}: a negative length counts from the end, and its carry is that of step {step}."
ABOVE = "Example {example} has length {length}, and the input only {steps} steps: {length} is cut to {steps} without a word."
TURNED = (
    "Example {example} has length {length}, and the input only {steps} steps: reversed, its steps start in the middle."
)
ONE = "{got} is one length for all {batch} examples. It was taken from {name}, which has one for each."
MAYBE_ONE = "{got} is one length for all {batch} examples."
AXES = (
    "seq_lengths is {type}: it must have one axis, ({batch},). The final carry comes back as {carry}, one row for each "
    "pair of examples."
)
FLAGS = "seq_lengths is {type}: True counts as length 1, False as length 0."
TYPE = "seq_lengths is {type}: a layer takes an array of whole numbers, one for each of the {batch} examples."
COUNT = "seq_lengths is {type} for {batch} examples: it must have one entry for each, ({batch},)."
CLAIM = {
    Kind.EMPTY: "The final carry of an example of length 0, compared with the carry it began with: largest difference.",
    Kind.NEGATIVE: "Examples with a negative length were counted.",
    Kind.ABOVE: "Steps that seq_lengths counts and that the input does not have.",
    Kind.TURNED: "Steps that seq_lengths counts and that the input does not have.",
    Kind.ONE: "The final carry, compared with that at each example's own length: largest difference.",
    Kind.AXES: "Axes of the final carry that no example asked for: they were counted.",
    Kind.FLAGS: "Examples whose length is a truth value were counted.",
}
TEXTS = {
    Kind.EMPTY: EMPTY, Kind.NEGATIVE: NEGATIVE, Kind.ABOVE: ABOVE, Kind.CUT: ABOVE, Kind.TURNED: TURNED, Kind.ONE: ONE,
    Kind.MAYBE_ONE: MAYBE_ONE, Kind.AXES: AXES, Kind.FLAGS: FLAGS, Kind.TYPE: TYPE, Kind.COUNT: COUNT,
}  # fmt: skip
TITLES = {
    "keep_init": "Keep the carry that an empty sequence began with",
    "cut": "Cut the lengths to the steps that there are",
    "each": "Give each example its own length: {text}",
    "base": "Take the lengths as they are: {text}",
    "flat": "Take one axis of lengths: {text}",
    "array": "Make the lengths an array of whole numbers: {text}",
    "sum": "Sum the mask over its steps: {text}",
}
WHY = "seq_lengths is the number of steps that count, one whole number from 1 to T for each example of the batch."
RAISES = frozenset({Kind.TYPE, Kind.COUNT})
MAYBE = frozenset({Kind.MAYBE_ONE, Kind.CUT})


def check(facts: ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """One finding for each call of a layer whose lengths are none."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_lengths.lengths(facts)
        return
    for fault in faults(facts):
        yield _finding(facts, fault)


def _finding(facts: ScriptFacts, fault: Fault) -> Finding:
    severity = Severity.WARNING
    if fault.kind in RAISES:
        severity = Severity.ERROR
    elif fault.kind in MAYBE:
        severity = Severity.NOTE
    measure = Measure(fill(CLAIM[fault.kind]), Off(fault.number, fault.kind)) if severity is Severity.WARNING else None
    repairs: list[Repair] = [
        facts.rewrites(fill(TITLES[kind], text=text), *edits) for kind, text, edits in repairs_of(facts, fault)
    ]
    return Finding(
        message=fill(TEXTS[fault.kind], **fault.names),
        place=facts.span(fault.node),
        repairs=tuple(repairs),
        measure=measure,
        severity=severity,
        silent=severity is not Severity.ERROR,
        path=f"seq_lengths:{fault.number}",
    )


RULE = Rule(
    code="L310",
    name="lengths-are-no-lengths",
    title="Lengths that are no lengths",
    severity=Severity.WARNING,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "sequence"}),
)
