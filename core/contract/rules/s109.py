"""Nothing to scan: neither xs nor length.

**What.** xs is left out, or holds no array (`None`, `()`, `{}`), and no `length` is given.

**Why.** Something must say how many steps there are: the leading axis of xs, or `length`.

**Bad**

    jax.lax.scan(lambda carry, _: (carry * 2, carry), 1.0)

**Good**

    jax.lax.scan(lambda carry, _: (carry * 2, carry), 1.0, length=8)

Source: `jax.lax.scan`, argument `length`: "can be used to perform scans where no input xs are needed".
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs, trees
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.sequence import scans_nothing

MESSAGE = "There is nothing to scan over: xs is not given, and neither is length."
MESSAGE_EMPTY = "There is nothing to scan over: xs is {xs} without any array in it, and length is not given."
WHY = "Something must say how many steps there are: the leading axis of xs, or length."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding when xs has no leaves and `length` is None."""
    call = facts.call
    if facts.xs_types or call.length is not None:
        return
    yield Finding(
        message=MESSAGE if call.xs is None else fill(MESSAGE_EMPTY, xs=trees.describe(call.xs)),
        place=facts.places.find("length", "xs", "scan") if call.xs is None else facts.places.find("xs", "scan"),
        # The number is the learner's to choose; one step is the least that runs it.
        repairs=(repairs.set_length(1),) if scans_nothing(facts) else (),
    )


RULE = Rule(
    code="S109",
    name="nothing-to-scan",
    title="Nothing to scan: neither xs nor length",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.INPUT,
    why=WHY,
    check=check,
)
