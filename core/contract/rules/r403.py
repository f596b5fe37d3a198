"""Parameters and carry are drawn from one stream.

**What.** The `nnx.Rngs` that a cell was built with is given to `initialize_carry` too, and has no stream of its own
for the carry: the carry continues where the parameters stopped. Or two `nnx.Rngs` of one seed are used, and a random
carry is drawn from the very keys that drew the weights.

**Why.** One stream for two purposes makes each depend on how much the other draws: a cell with more weights starts
from another carry. A named stream says that they are apart.

**Bad**

    rngs = nnx.Rngs(0)
    cell = nnx.LSTMCell(3, 4, rngs=rngs)
    carry = cell.initialize_carry((2, 3), rngs)

**Good**

    rngs = nnx.Rngs(params=0, carry=1)
    cell = nnx.LSTMCell(3, 4, rngs=rngs)
    carry = cell.initialize_carry((2, 3), rngs)

A note, no more: with a carry of zeros nothing is drawn but the count of the stream. Two `nnx.Rngs` of one seed with a
carry of zeros are not mentioned at all.

Source: flax.nnx.Rngs, a stream that was not named falls back to default.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import jax
import numpy as np
from jax import tree_util

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract.cells import place_of
from core.contract.facts import Facts, ScanFacts
from core.contract.record import BuildEvent, CarryEvent
from core.contract.rngs import key_data, stream_of
from core.contract.rule import Finding, Jax, Rule, Stage

STREAM = "The carry is drawn from the stream that drew the parameters of {cell}; it has no stream named carry."
ZEROS = (
    "The carry of {cell} takes its keys from the stream of the parameters; it is zeros, so only the stream's count "
    "moves."
)
SEED = "The carry is drawn from the keys that drew the parameters of {cell}: two nnx.Rngs of one seed."
BECAUSE = "the parameters are drawn here"
WHY = (
    "One stream for two purposes makes each depend on how much the other draws. A named stream, "
    "nnx.Rngs(params=0, carry=1), says that they are apart."
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each `initialize_carry` that draws from its cell's own stream."""
    seen = set()
    for event in facts.cells.carries:
        build = _build_of(facts, event)
        if event.error is not None or build is None:
            continue
        template = _shared(build, event)
        place = place_of(facts, event, "carry_rngs", "carry_shape")
        if template is None or (template, place, id(build)) in seen:
            continue
        seen.add((template, place, id(build)))
        yield Finding(
            message=fill(template, cell=build.cell_type.__name__),
            place=place,
            because=Because(place_of(facts, build, "cell_rngs", "cell"), BECAUSE),
            path="rngs",
        )


def _build_of(facts: Facts, event: CarryEvent) -> BuildEvent | None:
    earlier = facts.call.earlier if isinstance(facts, ScanFacts) else None
    builds = itertools.chain(facts.cells.builds, earlier.builds if earlier is not None else ())
    return next((build for build in builds if build.cell is event.cell), None)


def _shared(build: BuildEvent, event: CarryEvent) -> str | None:
    """The message that fits, or None when both draw from streams of their own."""
    params, carry = stream_of(build.rngs, "params"), stream_of(event.rngs, "carry")
    if params is None or carry is None:
        return None
    if params is carry:
        return STREAM if _random(event) else ZEROS
    data = key_data(params)
    same = data is not None and data == key_data(carry)
    return SEED if same and _random(event) else None


def _random(event: CarryEvent) -> bool:
    """Whether the carry has any number but one: zeros and other constants need no key."""
    leaves = tree_util.tree_leaves(event.result)
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return False
    return any(np.unique(np.asarray(leaf)).size > 1 for leaf in leaves)


RULE = Rule(
    code="R403",
    name="one-stream-for-params-and-carry",
    title="Parameters and carry are drawn from one stream",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
)
