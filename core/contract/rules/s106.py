"""xs has no leading axis.

**What.** A leaf of xs is a number, an array without axes, or no array at all (a `range`, a string): there is nothing to
cut it into steps along.

**Why.** A scan walks along the leading axis of every leaf of xs: x at step t is `leaf[t]`. A value that is the same at
each step does not belong in xs; the step can name it directly.

**Bad**

    jax.lax.scan(lambda carry, x: (carry + 1, carry), 0.0, 5)

**Good**

    jax.lax.scan(lambda carry, x: (carry + 1, carry), 0.0, length=5)

Source: `jax.lax.scan`, argument `xs`: "the value of type [a] over which to scan along the leading axis". For an array
without axes JAX 0.11.2 raises a bare `IndexError`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from core.base.avals import LeafType
from core.base.places import Because, Place, Span
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs, trees
from core.contract.counts import is_int
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.sequence import scans_nothing

MESSAGE = "{path} is {got}: it has no leading axis to scan over."
MESSAGE_NO_ARRAY = "{path} is a {kind}, which is no array: it has no leading axis to scan over."
WHY = "A scan walks along the leading axis of every leaf of xs: x at step t is leaf[t]."
BECAUSE = "{path} is set here"
LEADING_AXIS = "a leading axis"
#: So many leaves are told of; their repairs are looked for one by one.
LEAVES = 16


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding for each leaf of xs without a leading axis, but for those of a list of thousands."""
    bare = (leaf for leaf, length in zip(facts.xs_types, facts.leading, strict=True) if length is None)
    for leaf in itertools.islice(bare, LEAVES):
        place, because = _where(facts, leaf.path)
        template = MESSAGE_NO_ARRAY if leaf.aval is None else MESSAGE
        yield Finding(
            message=fill(template, path=leaf.path, got=leaf, kind=leaf.kind),
            place=place,
            because=because,
            expected=(LeafType(leaf.path, None, LEADING_AXIS),),
            got=(leaf,),
            repairs=tuple(_repairs(facts, leaf)),
            path=leaf.path,
        )


def _where(facts: ScanFacts, path: str) -> tuple[Place | None, Because | None]:
    """The scan's argument, and where the leaf got its value; the leaf itself where it is written in the argument."""
    argument, bound = facts.places.find("xs", "scan"), facts.places.find(f"xs_bound:{path}")
    if bound is None or bound == argument:
        return facts.places.find(f"xs:{path}", "xs", "scan"), None
    if isinstance(argument, Span) and isinstance(bound, Span) and _inside(bound, argument):
        return bound, None
    return argument, Because(bound, fill(BECAUSE, path=path))


def _inside(one: Span, other: Span) -> bool:
    starts = (other.line, other.col) <= (one.line, one.col)
    return starts and (one.end_line, one.end_col) <= (other.end_line, other.end_col)


def _repairs(facts: ScanFacts, leaf: LeafType) -> Iterator[Repair]:
    value = trees.find(facts.call.xs, "xs", leaf.path)
    if leaf.aval is None:
        if isinstance(value, range):
            yield repairs.xs_array(leaf.path)
        return
    if len(facts.leading) == 1:
        if leaf.path == "xs" and is_int(value) and int(value) > 0 and scans_nothing(facts):
            yield repairs.xs_to_length(int(value))
        yield repairs.xs_leading(leaf.path, 1)
        return
    lengths = {n for n in facts.leading if n is not None}
    if len(lengths) == 1:
        yield repairs.xs_leading(leaf.path, lengths.pop())


RULE = Rule(
    code="S106",
    name="xs-without-leading-axis",
    title="xs has no leading axis",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.INPUT,
    why=WHY,
    check=check,
)
