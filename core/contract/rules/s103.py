"""The carry's shape changes inside the step.

**What.** A leaf of the new carry has another shape than the same leaf of init: it grows by `append` or `concatenate`,
gains or loses an axis (`()` to `(1,)`), or broadcasts against x.

**Why.** A scan is one compiled loop: what goes in at step t must be what came out at t - 1, same shape, same dtype.
Init sets the contract.

**Bad**

    def step(carry, x):
        return jnp.append(carry, x), x

**Good**

    def step(carry, x):
        return carry + x, x

Source: jax.lax.scan, "the loop-carried value carry must hold a fixed shape and dtype across all iterations".
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.trace import Raised

MESSAGE = "{path} goes in as {expected} and comes out as {got}."
BECAUSE = "init sets the contract: {path} is {expected} here"
WHY = "A scan is one compiled loop: what goes in at step t must be what came out at step t − 1, same shape, same dtype."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding for each leaf whose shape differs, where the trees agree."""
    if isinstance(facts.trace, Raised) or facts.trace.pair is None:
        return
    after = facts.trace.carry_types()
    if [t.path for t in after] != [t.path for t in facts.carry_in]:
        return
    for want, have in zip(facts.carry_in, after, strict=True):
        if want.aval is None or have.aval is None or want.aval.shape == have.aval.shape:
            continue
        yield Finding(
            message=fill(MESSAGE, path=want.path, expected=want, got=have),
            place=facts.places.find(f"return:{want.path}", "return", "step", "scan"),
            because=Because(facts.places.find(f"init:{want.path}"), fill(BECAUSE, path=want.path, expected=want)),
            expected=(want,),
            got=(have,),
            path=want.path,
        )


RULE = Rule(
    code="S103",
    name="carry-shape-changes",
    title="The carry's shape changes inside the step",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
)
