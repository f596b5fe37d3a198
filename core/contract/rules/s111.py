"""The sequence is empty.

**What.** xs has a leading axis of 0, or `length` is 0: not one step is run.

**Why.** That is legal: ys comes out empty, with a leading axis of 0, and the final carry is init. The step is traced all
the same, so that it must keep the contract even though it is never run.

**Bad**

    jax.lax.scan(step, 0.0, xs[:0])

**Good**

    jax.lax.scan(step, 0.0, xs)

Source: `jax.lax.scan`; run on JAX 0.11.2.
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.text import fill
from core.base.violation import Severity
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.sequence import whole_length
from core.contract.sequence_facts import SequenceFacts
from core.contract.sequence_padding import place

MESSAGE_XS = "xs is empty, {xs}: no step is run, ys is empty and the final carry is init."
MESSAGE_LENGTH = "length is 0: no step is run, ys is empty and the final carry is init."
MESSAGE_LAYER = "T is 0: no step is run, the outputs are empty and the final carry is init."
WHY = "An empty sequence is legal. The step is still traced once, so it must keep the contract all the same."


def check(facts: ScanFacts | SequenceFacts) -> Iterator[Finding]:
    """A note when T is 0."""
    if isinstance(facts, SequenceFacts):
        if facts.trial.length == 0 and not facts.trial.misread:
            yield Finding(MESSAGE_LAYER, place(facts, "length"))
        return
    if facts.length != 0:
        return
    if facts.xs_types:
        message = fill(MESSAGE_XS, xs=", ".join(str(t) for t in facts.xs_types))
        yield Finding(message, facts.places.find("xs", "length", "scan"), got=facts.xs_types)
    elif whole_length(facts) == 0:
        yield Finding(MESSAGE_LENGTH, facts.places.find("length", "scan"))


RULE = Rule(
    code="S111",
    name="empty-sequence",
    title="The sequence is empty",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.INPUT,
    why=WHY,
    check=check,
    on=frozenset({"scan", "sequence"}),
)
