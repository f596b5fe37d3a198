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

Source: `jax.lax.scan`, "the loop-carried value carry must hold a fixed shape and dtype across all iterations".
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.avals import Aval
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs
from core.contract.carry import carry_pairs, init_because, named, return_place
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Repair, Rule, Stage

MESSAGE = "{path} goes in as {expected} and comes out as {got}."
MESSAGE_GROWS = "{path} grows: it goes in as {expected} and comes out as {got}."
WHY = "A scan is one compiled loop: what goes in at step t must be what came out at step t − 1, same shape, same dtype."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding for each leaf whose shape differs, where the trees agree."""
    for given, want, have in carry_pairs(facts):
        if want.aval is None or have.aval is None or want.aval.shape == have.aval.shape:
            continue
        template = MESSAGE_GROWS if _grows(want.aval, have.aval) else MESSAGE
        yield Finding(
            message=fill(template, path=named(facts, want.path), expected=want, got=have),
            place=return_place(facts, want.path),
            because=init_because(facts, given, want),
            expected=(want,),
            got=(have,),
            repairs=(*repairs.right_step(facts.call), *_repairs(want.path, want.aval, have.aval)),
            path=want.path,
        )


def _grows(want: Aval, have: Aval) -> bool:
    """The same axes, one of them longer: an append or a concatenate, which no init can put right."""
    if not want.shape or len(want.shape) != len(have.shape):
        return False
    longer = [b - a for a, b in zip(want.shape, have.shape, strict=True) if a != b]
    return len(longer) == 1 and longer[0] > 0


def _repairs(path: str, want: Aval, have: Aval) -> Iterator[Repair]:
    """Axes of length 1 taken back in the step; init in the shape that came out, where that one is stable."""
    if [n for n in want.shape if n != 1] == [n for n in have.shape if n != 1]:
        yield repairs.step_shape(path, want.shape)
    yield repairs.init_shape(path, have.shape)


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
