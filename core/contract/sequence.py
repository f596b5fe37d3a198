"""What the rules of xs and length share: how long xs is, and whether the step wants any x at all."""

from __future__ import annotations

from jax import tree_util

from core.contract.counts import Count, Kind, count_of
from core.contract.facts import ScanFacts
from core.contract.trace import Raised, struct_of, trace_step


def xs_length(facts: ScanFacts) -> int | None:
    """The leading length that all leaves of xs share; None when there are no leaves or they do not agree."""
    lengths = set(facts.leading)
    return lengths.pop() if len(lengths) == 1 else None


def length_count(facts: ScanFacts) -> Count:
    """The `length` argument as `lax.scan` reads it. Ask only when one was given."""
    return count_of(facts.call.length)


def whole_length(facts: ScanFacts) -> int | None:
    """The `length` argument when it is a whole number >= 0 (`3.0` too); what else it may be is S116's."""
    count = length_count(facts)
    return count.steps if count.kind in (Kind.WHOLE, Kind.SAME) else None


def scans_nothing(facts: ScanFacts) -> bool:
    """Whether the step makes do without any x: it traces when x is None."""
    try:
        carry = tree_util.tree_map(struct_of, facts.call.init)
    except TypeError:
        return False
    return not isinstance(trace_step(facts.call.body, carry, None), Raised)
