"""ys and the carry are one step apart.

**What.** The step returns its carry as y: the new one, and then init is not in ys; or the one that came in, and then
the final carry is not in ys.

**Why.** T steps have T + 1 carries, and ys has room for T. Which one is left out is a choice, and it is one that is
easily made by accident: the final carry is taken for ys, or ys for the whole trajectory.

**Bad** (if the trajectory with its start is wanted)

    final, ys = jax.lax.scan(lambda carry, x: (carry + x, carry + x), 0., xs)
    trajectory = ys                                     # the start, 0., is missing

**Good**

    trajectory = jnp.concatenate([jnp.zeros(1), ys])    # T + 1 values

Always a note: both are right, when known.

Source: the loop in the documentation of jax.lax.scan: `carry, y = f(carry, x); ys.append(y)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jax import tree_util

from core.base.avals import path_name
from core.base.text import fill
from core.base.violation import Severity
from core.contract.facts import ScanFacts
from core.contract.precision import ran
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.trace import StepTrace
from core.contract.wording import show

NEW = "{y} is the new {carry} of each step: its last entry is the final carry{last}, and init{first} is not among them."
INCOMING = (
    "{y} is the {carry} that came into each step: it begins with init{first}, and the final carry{last} is not in it."
)
NEW_REVERSED = (
    "{y} is the new {carry} of each step: its first entry is the final carry{last}, for the scan runs in reverse, and "
    "init{first} is not among them."
)
INCOMING_REVERSED = (
    "{y} is the {carry} that came into each step: it ends with init{first}, for the scan runs in reverse, and the final "
    "carry{last} is not in it."
)
NUMBER = " ({number})"
WHY = "T steps have T + 1 carries, from init to the final one. ys has room for T of them."


def check(facts: ScanFacts) -> Iterator[Finding]:
    """One note, for the first leaf of y that is a leaf of the carry."""
    result = ran(facts)
    if result is None or not isinstance(facts.trace, StepTrace) or facts.trace.pair is None:
        return
    for y, carry, new in _shared(facts.trace):
        series = next(s for s in result.carries if s.path == carry)
        scalar = series.values.ndim == 1 and not str(series.type).startswith("key")
        first, last = (fill(NUMBER, number=show(series.values[i])) if scalar else "" for i in (0, -1))
        yield Finding(
            message=fill(_TEMPLATES[new, result.reverse], y=y, carry=carry, first=first, last=last),
            place=facts.places.find("return", "step", "scan"),
            path=y,
        )
        return


#: By (the new carry?, in reverse?).
_TEMPLATES = {
    (True, False): NEW,
    (True, True): NEW_REVERSED,
    (False, False): INCOMING,
    (False, True): INCOMING_REVERSED,
}


def _shared(trace: StepTrace) -> Iterator[tuple[str, str, bool]]:
    """Paths of y leaves that are leaves of the carry: (y, carry, whether it is the new one).

    A carry leaf that the step hands on unchanged says nothing: old and new are the same.
    """
    pair: Any = trace.pair
    new, y = pair
    incoming = {id(leaf): path_name("carry", p) for p, leaf in tree_util.tree_flatten_with_path(trace.carry_in)[0]}
    outgoing = {id(leaf): path_name("carry", p) for p, leaf in tree_util.tree_flatten_with_path(new)[0]}
    unchanged = {key for key, path in outgoing.items() if incoming.get(key) == path}
    for path, leaf in tree_util.tree_flatten_with_path(y)[0]:
        if id(leaf) in unchanged:
            continue
        if id(leaf) in outgoing:
            yield path_name("y", path), outgoing[id(leaf)], True
        elif id(leaf) in incoming:
            yield path_name("y", path), incoming[id(leaf)], False


RULE = Rule(
    code="S113",
    name="ys-and-carry-one-apart",
    title="ys and the carry are one step apart",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.RUN,
    why=WHY,
    check=check,
)
