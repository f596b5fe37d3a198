"""`length` disagrees with xs.

**What.** `length` is given beside xs and is not the length of its leading axis.

**Why.** xs already says how many steps there are; `length` may only repeat it. It is for scans without xs.

**Bad**

    jax.lax.scan(step, 0.0, jnp.ones(5), length=4)

**Good**

    jax.lax.scan(step, 0.0, jnp.ones(5))

Source: `jax.lax.scan`, argument `length`: "optional integer specifying the number of loop iterations, which must agree
with the sizes of leading axes of the arrays in xs".
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.sequence import whole_length, xs_length

MESSAGE = "length is {length}, but xs has a leading axis of {axis}."
BECAUSE = "xs has a leading axis of {axis} here"
WHY = "xs already says how many steps there are; length may only repeat it."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding when a whole `length` differs from the one that all leaves of xs share."""
    axis = xs_length(facts)
    if axis is None or facts.call.length is None:
        return
    length = whole_length(facts)
    if length is None or length == axis:
        return
    cut = (repairs.xs_cut(length),) if 0 < length < axis else ()
    yield Finding(
        message=fill(MESSAGE, length=length, axis=axis),
        place=facts.places.find("length", "scan"),
        because=Because(facts.places.find("xs"), fill(BECAUSE, axis=axis)),
        got=facts.xs_types,
        repairs=(repairs.length_from_xs(axis), *cut),
    )


RULE = Rule(
    code="S108",
    name="length-disagrees-with-xs",
    title="length disagrees with xs",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.INPUT,
    why=WHY,
    check=check,
)
