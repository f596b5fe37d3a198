"""The step does not return a pair.

**What.** The step returns one array, nothing at all, three things, or a pair that is no plain tuple or list (a dict, a
NamedTuple): anything but two things.

**Why.** A scan unpacks what the step returns into the new carry, which goes on to the next step, and y, which is
stacked into ys. It unpacks a tuple or a list of exactly two. An array with a leading axis of 2 is one thing, not two.

**Bad**

    def step(carry, x):
        return carry + x

**Good**

    def step(carry, x):
        return carry + x, None

Source: `jax.lax.scan`, argument `f`: "f returns a pair where the first element represents a new value for the loop
carry and the second represents a slice of the output".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from core.base.avals import LeafType
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs, trees
from core.contract.carry import own_name
from core.contract.facts import ScanFacts
from core.contract.mend import AsTuple, Gather, WithY
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.trace import Raised, same_structure

MESSAGE = "The step returns {got}, not a pair (new carry, y)."
MESSAGE_NOTHING = "The step returns None, not a pair (new carry, y): its `return` is missing or bare."
WHY = "A scan unpacks what the step returns: the new carry goes on to the next step, y is stacked into ys."
PAIR = "a tuple of 2: (new carry, y)"
TITLE_NO_Y = "Return it as the new carry, with no y: (new carry, None)"
TITLE_SAME_Y = "Return it twice, as the new carry and as y"
TITLE_GATHER = "Group the outputs: (new carry, (y, …))"
TITLE_RETURN = "Return the new carry, with no y"
TITLE_TUPLE = "Return a plain tuple (new carry, y)"


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One finding when what was returned is no tuple or list of two."""
    trace = facts.trace
    if isinstance(trace, Raised) or trace.pair is not None:
        return
    returned = trace.returned
    yield Finding(
        message=MESSAGE_NOTHING if returned is None else fill(MESSAGE, got=trees.describe(returned)),
        place=facts.places.find("return", "step", "scan"),
        expected=(LeafType("return", None, PAIR),),
        got=(trees.shown(returned, "return"),),
        repairs=(*repairs.right_step(facts.call), *_repairs(facts, trace.carry_in, returned)),
    )


def _repairs(facts: ScanFacts, carry: Any, returned: Any) -> Iterator[Repair]:
    """Ways to read the carry out of what was returned, by its structure and the types of its leaves."""
    init = facts.call.init
    if returned is None and init is not None:  # what to return is known to the source alone
        yield Repair("step_return", TITLE_RETURN, lambda _: None, "", "carry, None")
        return
    if same_structure(init, returned):
        yield repairs.mend_step("step_return", TITLE_NO_Y, WithY(repeat=False), "", "carry, None")
        yield repairs.mend_step("step_return", TITLE_SAME_Y, WithY(repeat=True), "", "carry, carry")
        return
    parts = list(trees.node_of(returned).children.values())
    if type(returned) in (tuple, list):
        first = trees.node_of(init)
        if len(parts) > 2 and trees.same_leaves(carry, parts[0]):
            yield repairs.mend_step("step_return", TITLE_GATHER, Gather(None), "", "carry, (y, ...)")
        elif first.kind in (tuple, list) and len(parts) > len(first.children) and _leads(carry, parts):
            yield repairs.mend_step("step_return", TITLE_GATHER, Gather(len(first.children)), "", "(carry...), y")
    elif len(parts) == 2:
        first_part = _carry_part(facts, carry, returned)
        if first_part is not None:
            yield repairs.mend_step("step_return", TITLE_TUPLE, AsTuple(first_part), "", "tuple")


def _carry_part(facts: ScanFacts, carry: Any, returned: Any) -> int | None:
    """Which of two children is the carry: the only one of its types; of both, the first field or the one named so."""
    children = trees.node_of(returned).children
    fits = [i for i, part in enumerate(children.values()) if trees.same_leaves(carry, part)]
    if len(fits) == 1 or (fits and not isinstance(returned, dict)):
        return fits[0]
    names = [getattr(key, "key", None) for key in children]
    own = [i for i in fits if names[i] in ("carry", "new_carry", own_name(facts.call.body))]
    return own[0] if len(own) == 1 else None


def _leads(carry: Any, parts: list[Any]) -> bool:
    """Whether the parts begin with the carry's own children."""
    children = trees.node_of(carry).children.values()
    return all(trees.same_leaves(child, part) for child, part in zip(children, parts, strict=False))


RULE = Rule(
    code="S101",
    name="step-returns-no-pair",
    title="The step does not return a pair",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
)
