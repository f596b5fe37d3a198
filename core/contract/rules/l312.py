"""A mask of examples meets the carry along its units.

**What.** A step's mask has one entry for each example, ``(B,)``; the carry is ``(B, H)``. NumPy's rule lines up the last
axes: the mask is laid along the units. With B == H that raises nothing, and the mask of example 1 switches unit 1 of
every example. With other sizes it raises.

**Why.** Broadcasting lines axes up from the right: one entry for each row must be a column, ``mask[:, None]``.

**Bad**

    def step(h, inputs):
        x_t, keep = inputs                                 # keep: (B,)
        new, y = cell(h, x_t)
        return jnp.where(keep, new, h), y

**Good**

    return jnp.where(keep[:, None], new, h), y

A vector of H units against ``(B, H)`` is ordinary. It is said only of a vector that is known to be one of examples: it
was made from lengths, from a mask that pads each sequence at its end, or its name says so (``done``, ``valid``).

Source: numpy, "Broadcasting"; jax.numpy.where.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import sequence_masks
from core.contract.masks_met import Leak, Met, beside, column, met, place_number
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.sequence_facts import SequenceFacts

SILENT = (
    "{mask} has one entry for each of {count} examples, and meets {other} {type} along its last axis: the entry of "
    "example 1 decides unit 1 of every example."
)
RAISED = "{mask} has one entry for each of {count} examples: it does not fit {other} {type}, whose last axis is {last}."
CLAIM = "The mask of one example was changed; this is how far the others move."
COUNT = "Units that the mask of another example decides: they were counted."
TITLE = "Give the mask an axis for the units: {text}"
WHY = "Broadcasting lines axes up from the right: one entry for each example must be a column, (B, 1), to meet (B, H)."


def check(facts: ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """One finding for each function in which a mask of examples meets units."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_masks.feature_mask(facts)
        return
    groups: dict[object, list[Met]] = {}
    for one in met(facts):
        groups.setdefault((facts.source.scope(one.node), one.raised), []).append(one)
    for group in groups.values():
        yield _finding(facts, group)


def _finding(facts: ScriptFacts, group: list[Met]) -> Finding:
    first = group[0]
    names = {
        "mask": facts.source.text_of(first.mask),
        "other": facts.source.text_of(first.other),
        "count": first.count,
        "type": first.type,
        "last": first.type.shape[-1],
    }
    measure = None
    if not first.raised:
        number = place_number(facts, first)
        leak = Leak(number)
        measure = Measure(CLAIM if leak.moves(facts) else COUNT, leak)
    return Finding(
        message=fill(RAISED if first.raised else SILENT, **names),
        place=facts.span(first.mask),
        repairs=(_column(facts, group),),
        measure=measure,
        severity=Severity.ERROR if first.raised else Severity.WARNING,
        silent=not first.raised,
        path=f"mask:{place_number(facts, first)}",
    )


def _column(facts: ScriptFacts, group: list[Met]) -> Repair:
    """``mask[:, None]`` wherever it meets units in that function."""
    edits: dict[tuple[int, int], TextEdit] = {}
    for one in group:
        for mask in (one.mask, *beside(facts, one)):
            span = facts.span(mask)
            edits[span.line, span.col] = TextEdit(span, column(facts, mask))
    return facts.rewrites(fill(TITLE, text=column(facts, group[0].mask)), *edits.values())


RULE = Rule(
    code="L312",
    name="mask-along-the-units",
    title="A mask of examples meets the carry along its units",
    severity=Severity.WARNING,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "sequence"}),
)
