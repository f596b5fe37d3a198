"""The batch of the carry is not the batch of the input.

**What.** A cell adds what comes of the input to what comes of the carry. Where their batch axes differ but broadcast,
a direct call says nothing: a carry ``(H,)`` or ``(1, H)`` is one state that all examples share, an input ``(1, F)``
is one input that they share. In a scan the carry comes back larger than it went in, which raises; an input of batch 1
stays silent there too. Batches that do not broadcast raise everywhere.

**Why.** Row i of the carry is the memory of example i: the carry has the input's axes, with hidden_features for the
last one.

**Bad**

    h = jnp.zeros(4)
    h, y = cell(h, jnp.ones((2, 3)))

**Good**

    h = jnp.zeros((2, 4))
    h, y = cell(h, jnp.ones((2, 3)))

A note only where nothing is shared, as with one example: ``(H,)`` with an input ``(1, F)``.

Source: flax.nnx.RNNCellBase.__call__, "All dimensions except the final are considered batch dimensions".
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.avals import Aval, LeafType
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs_cell
from core.contract.batches import Kind, kind_of, severity_of, size, spread
from core.contract.cell_proof import examples_moved, input_leaf
from core.contract.cells import (
    CellUse,
    Part,
    carry_place,
    first_of_each,
    got_text,
    input_because,
    input_place,
    made_by,
    origin,
    slot_changes,
    types,
)
from core.contract.facts import Facts
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage

CLASH = "The carry's batch does not fit the input's: {label} {got}, input {x}."
SHARED = "All {count} examples share {states} of memory: {label} {got}, input {x}."
SPREAD = "The input {x} spreads the carry over the batch: {label} {got} goes in, {expected} comes back."
INPUT = "All {count} examples share {inputs} of input: input {x}, {label} {got}."
AXES = "Nothing is shared, but the carry comes back as {expected}: {label} {got}, input {x}."
ROW = "one row"
ROWS = "{count} rows"
CLAIM_CARRY = (
    "One row of the carry changed by 0.1 moves h of this many examples; each has its own memory, so it must be 1."
)
CLAIM_INPUT = (
    "One row of the input changed by 0.1 moves h of this many examples; each has its own input, so it must be 1."
)
WHY = (
    "Row i of the carry is the memory of example i: the carry has the batch axes of the input, and hidden_features for "
    "the last axis."
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each step whose carry has another batch than its input."""
    for use in first_of_each(facts):
        worst = min((kind_of(use, part) for part in use.parts), default=Kind.FITS)
        if worst is not Kind.FITS:
            yield finding(facts, use, worst)


def finding(facts: Facts, use: CellUse, kind: Kind) -> Finding:
    """What is to be said of a use whose parts are at worst of this kind."""
    faulty = tuple(part for part in use.parts if kind_of(use, part) is not Kind.FITS)
    grows = slot_changes(facts, (part.path for part in use.parts))
    severity = severity_of(kind, grows=grows)
    place = input_place(facts, use) if kind is Kind.INPUT and not grows else carry_place(facts, use)
    return Finding(
        message=_message(use, faulty, kind, grows=grows),
        place=place,
        because=origin(facts, faulty[0]) or input_because(facts, use),
        expected=_expected(use, faulty, kind),
        got=_got(use, faulty, kind),
        repairs=_repairs(facts, use, faulty, kind),
        measure=None if severity is not Severity.WARNING else _measure(use, kind),
        severity=severity,
        silent=severity is not Severity.ERROR,
        path=faulty[0].path if len(faulty) == 1 else use.path,
        covers=tuple(part.path for part in use.parts),
    )


def _expected(use: CellUse, faulty: tuple[Part, ...], kind: Kind) -> tuple[LeafType, ...]:
    if kind is Kind.INPUT and use.x is not None:
        return (LeafType("inputs", Aval((*faulty[0].aval.shape[:-1], use.x.shape[-1]), use.x.dtype)),)
    return types((part, use.wanted(part) or part.aval) for part in faulty)


def _got(use: CellUse, faulty: tuple[Part, ...], kind: Kind) -> tuple[LeafType, ...]:
    if kind is Kind.INPUT and use.x is not None:
        return (LeafType("inputs", use.x),)
    return types((part, part.aval) for part in faulty)


def _message(use: CellUse, faulty: tuple[Part, ...], kind: Kind, *, grows: bool) -> str:
    label, got = use.label(faulty), got_text(faulty)
    both = spread(use) or ()
    returned = Aval((*both, use.hidden), faulty[0].aval.dtype)
    names = {"label": label, "got": got, "x": use.x, "count": size(both), "expected": returned}
    if kind is Kind.CLASH:
        return fill(CLASH, **names)
    if grows:
        return fill(SPREAD, **names)
    if kind is Kind.SHARED:
        return fill(SHARED, states=_rows(size(faulty[0].aval.shape[:-1])), **names)
    if kind is Kind.INPUT:
        return fill(INPUT, inputs=_rows(size(use.batch or ())), **names)
    return fill(AXES, **names)


def _rows(count: int) -> str:
    return fill(ROW) if count == 1 else fill(ROWS, count=count)


def _measure(use: CellUse, kind: Kind) -> Measure:
    if kind is Kind.INPUT:
        return Measure(CLAIM_INPUT, examples_moved(use.index, "input"), 1.0)
    return Measure(CLAIM_CARRY, examples_moved(use.index, "carry"), 1.0)


def _repairs(facts: Facts, use: CellUse, faulty: tuple[Part, ...], kind: Kind) -> tuple[Repair, ...]:
    """The carry made for this input; an input that is shared is rather repeated, or the carry cut to it."""
    batch = use.batch or ()
    first = faulty[0]
    out: list[Repair] = []
    if made_by(facts, first) is not None and use.x is not None:
        out.append(repairs_cell.input_shape(use.x.shape))
    if kind is Kind.INPUT:
        rows = first.aval.shape[:-1]
        out.append(repairs_cell.input_to_batch(input_leaf(facts, use.index), rows, size(rows)))
    elif kind is Kind.CLASH:
        out.append(repairs_cell.to_zeros(use, faulty, (*batch, use.hidden)))
    elif kind is Kind.SHARED:
        out.append(repairs_cell.to_batch(use, faulty, batch, size(batch)))
    else:
        out.append(repairs_cell.to_axes(use, faulty, batch))
    return tuple(out)


RULE = Rule(
    code="L303",
    name="carry-batch-differs",
    title="The batch of the carry is not the batch of the input",
    severity=Severity.WARNING,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
    beats=frozenset({"S102", "S103"}),
)
