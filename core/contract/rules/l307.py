"""A cell is built without an nnx.Rngs.

**What.** `rngs` is left out, or it is a PRNG key, a number, one stream, or an `nnx.Rngs` that has no stream to draw
parameters from; or it is given by position, which a cell does not take. It raises, in words that name an attribute.

**Why.** The weights are drawn when the cell is built, from the stream ``params`` of an `nnx.Rngs`, or from its
default stream: ``rngs=`` is a keyword that must be there.

**Bad**

    cell = nnx.LSTMCell(3, 4, rngs=jax.random.key(0))

**Good**

    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))

Source: flax.nnx.LSTMCell.__init__, "rngs: rnglib.Rngs" after the star.
"""

from __future__ import annotations

from collections.abc import Iterator

from flax import nnx

from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs_cell
from core.contract.cells import place_of
from core.contract.facts import Facts
from core.contract.record import BuildEvent
from core.contract.rngs import describe, stream_of
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.subject import MISSING

NO_STREAM = "{cell} was built with an nnx.Rngs that has neither a stream named params nor a default one."
GIVEN = "{cell} was built with {got}; it wants rngs=nnx.Rngs(…)."
POSITION = "{cell} was given its rngs by position; it takes rngs=nnx.Rngs(…) by name only."
WHY = (
    "The weights are drawn when the cell is built, from the stream params of an nnx.Rngs (or from its default stream): "
    "rngs= is a keyword that must be there."
)
SEED = 0


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each build that raised because of its rngs."""
    for event in facts.cells.builds:
        if event.error is None or _draws(event):
            continue
        by_position = event.rngs is MISSING and bool(event.surplus)
        given = event.surplus[0] if by_position else event.rngs
        template = NO_STREAM if isinstance(event.rngs, nnx.Rngs) else POSITION if by_position else GIVEN
        yield Finding(
            message=fill(template, cell=event.cell_type.__name__, got=describe(event.rngs)),
            place=place_of(facts, event, "cell_call", "cell_rngs", "cell"),
            repairs=(repairs_cell.cell_rngs(given, SEED),),
            path="rngs",
        )


def _draws(event: BuildEvent) -> bool:
    """Whether parameters can be drawn from what was given."""
    if isinstance(event.rngs, nnx.Rngs):
        return stream_of(event.rngs, "params") is not None
    if event.rngs is MISSING or event.rngs is None or isinstance(event.rngs, nnx.RngStream):
        return False
    return not isinstance(event.rngs, type) and hasattr(event.rngs, "params")


RULE = Rule(
    code="L307",
    name="cell-without-rngs",
    title="A cell is built without an nnx.Rngs",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
)
