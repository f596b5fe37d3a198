"""The leaves of xs have different leading lengths.

**What.** xs holds several arrays, and their leading axes are not equally long.

**Why.** A scan cuts every leaf of xs at the same t: x at step t is `leaf[t]` of each. All of them must have T entries.

**Bad**

    jax.lax.scan(step, 0.0, {"price": jnp.ones(5), "volume": jnp.ones(4)})

**Good**

    jax.lax.scan(step, 0.0, {"price": jnp.ones(5), "volume": jnp.ones(5)})

Source: `jax.lax.scan`, argument `xs`: "any pytree (nested Python tuple/list/dict) thereof with consistent leading axis
sizes".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs
from core.contract.counts import Kind, count_of
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Repair, Rule, Stage

MESSAGE = "The leaves of xs have different leading lengths: {lengths}."
ONE = "{path} has {length}"
BECAUSE = "{path} has the leading length {length} here"
WHY = "A scan cuts every leaf of xs at the same t: all of them must have T entries along their leading axis."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding for all leaves together: which of them is wrong only the learner knows."""
    known = [(t, n) for t, n in zip(facts.xs_types, facts.leading, strict=True) if n is not None]
    if len({n for _, n in known}) < 2:
        return
    usual = Counter(n for _, n in known).most_common(1)[0][0]
    odd = next(t for t, n in known if n != usual)
    other = next(t for t, n in known if n == usual)
    yield Finding(
        message=fill(MESSAGE, lengths=", ".join(fill(ONE, path=t.path, length=n) for t, n in known)),
        place=facts.places.find(f"xs:{odd.path}", "xs", "scan"),
        because=Because(facts.places.find(f"xs:{other.path}", "xs"), fill(BECAUSE, path=other.path, length=usual)),
        got=tuple(t for t, _ in known),
        repairs=tuple(_repairs(facts, min(n for _, n in known))),
    )


def _repairs(facts: ScanFacts, shortest: int) -> Iterator[Repair]:
    """Every leaf cut to the shortest; to `length` where that one was given and is shorter still."""
    if facts.call.length is not None:
        count = count_of(facts.call.length)
        if count.kind is Kind.WHOLE and count.steps is not None:
            shortest = min(shortest, count.steps)
    if shortest > 0:
        yield repairs.xs_cut(shortest)


RULE = Rule(
    code="S107",
    name="xs-lengths-differ",
    title="The leaves of xs have different leading lengths",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.INPUT,
    why=WHY,
    check=check,
)
