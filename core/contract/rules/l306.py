"""initialize_carry is not given an nnx.Rngs.

**What.** Called without `rngs`, with a PRNG key or a number for it, with an `nnx.Rngs` that has no stream to draw
from, or with its arguments the wrong way round (the key came first in Linen). It raises, also where the carry is
zeros and nothing is drawn.

**Why.** A carry may be random, so `initialize_carry(input_shape, rngs)` always takes a key from the stream ``carry``
of an `nnx.Rngs`, or from its default stream.

**Bad**

    carry = cell.initialize_carry((2, 3))

**Good**

    carry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))

Source: flax.nnx.LSTMCell.initialize_carry, "RNGs must be provided to initialize the cell carry".
"""

from __future__ import annotations

from collections.abc import Iterator

from flax import nnx

from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs_cell
from core.contract.cells import place_of
from core.contract.facts import Facts
from core.contract.record import CarryEvent
from core.contract.rngs import describe, is_key, is_seed, is_shape, stream_of
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.subject import MISSING

NO_STREAM = "initialize_carry was given an nnx.Rngs that has neither a stream named carry nor a default one."
GIVEN = "initialize_carry was given {got}; it wants an nnx.Rngs."
ORDER = "initialize_carry was given {got} first and the shape {shape} second: the shape comes first."
WHY = (
    "initialize_carry(input_shape, rngs) takes a key from the stream carry of an nnx.Rngs (or from its default "
    "stream), also for a carry of zeros."
)
#: Another seed than the parameters' usual 0.
SEED = 1


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each `initialize_carry` that raised because of its rngs."""
    for event in facts.cells.carries:
        if event.error is None:
            continue
        place = place_of(facts, event, "carry_call", "carry_rngs", "carry_shape")
        if _swapped(event):
            yield Finding(
                message=fill(ORDER, got=describe(event.input_shape), shape=event.rngs),
                place=place,
                repairs=(repairs_cell.shape_first(event.rngs, event.input_shape, SEED),),
                path="rngs",
            )
        elif not _draws(event):
            yield Finding(
                message=fill(NO_STREAM if isinstance(event.rngs, nnx.Rngs) else GIVEN, got=describe(event.rngs)),
                place=place,
                repairs=(repairs_cell.carry_rngs(event.rngs, SEED),),
                path="rngs",
            )


def _swapped(event: CarryEvent) -> bool:
    """Whether a shape was given for rngs and something to draw from for the shape."""
    first = event.input_shape
    return is_shape(event.rngs) and (isinstance(first, nnx.Rngs | nnx.RngStream) or is_key(first) or is_seed(first))


def _draws(event: CarryEvent) -> bool:
    """Whether a key can be drawn from what was given, or, where nothing was, from what the cell keeps itself."""
    if event.rngs is MISSING or event.rngs is None:
        return getattr(event.cell, "rngs", None) is not None
    if isinstance(event.rngs, nnx.Rngs):
        return stream_of(event.rngs, "carry") is not None
    return callable(event.rngs)


RULE = Rule(
    code="L306",
    name="carry-without-rngs",
    title="initialize_carry is not given an nnx.Rngs",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
)
