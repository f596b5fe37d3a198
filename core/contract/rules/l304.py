"""The width of the carry is not the cell's hidden_features.

**What.** The hidden state h is multiplied with the recurrent weights, so another width raises. The cell state c of an
LSTM is only scaled unit by unit: a c of width 1, or a plain number, broadcasts over all units and nothing is raised
in a direct call (in a scan it comes back wider than it went in, which raises).

**Why.** Every unit has its own cell state and its own hidden state: the last axis of both is hidden_features.

**Bad**

    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
    carry = (jnp.zeros((2, 1)), jnp.zeros((2, 4)))
    carry, y = cell(carry, jnp.ones((2, 3)))

**Good**

    carry = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))
    carry, y = cell(carry, jnp.ones((2, 3)))

Source: flax.nnx.LSTMCell.__call__, "new_c = f * c + i * g".
"""

from __future__ import annotations

from collections.abc import Iterator

from core.base.avals import Aval
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs_cell
from core.contract.cell_proof import numbers_moved, units_returned
from core.contract.cells import (
    CellUse,
    Part,
    carry_place,
    cell_because,
    first_of_each,
    got_text,
    origin,
    slot_changes,
    types,
)
from core.contract.facts import Facts
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.subject import CellTrial

WIDTH = "The carry's last axis must be hidden_features, {hidden}: {label} {got}."
NUMBER = "The carry's last axis must be hidden_features, {hidden}: {label} {got}, one number without an axis."
BROADCAST = "{label} is {got}: each row is one number, shared by all {hidden} units of {cell}."
SHARED = "{label} is {got}: one number, shared by all units of all examples."
WIDER = "{label} is {got} where {cell} has hidden_features={hidden}: its one unit is spread over {width}."
CLAIM_NUMBERS = "The first number of c changed by 0.1 moves this many numbers of the new c; it must be 1."
CLAIM_WIDTH = "The width of h after one step; it must be hidden_features."
WHY = "Every unit has its own cell state and its own hidden state: the last axis of the carry is hidden_features."


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each step with parts of another width than the cell's."""
    for use in first_of_each(facts):
        faulty = tuple(p for p in use.parts if p.aval.shape[-1:] != (use.hidden,))
        if not faulty or not isinstance(use.hidden, int):
            continue
        silent = all(_broadcasts(use, p) for p in faulty) and not slot_changes(facts, (p.path for p in use.parts))
        if silent and all(p.aval.size == 1 for p in faulty) and use.hidden == 1 and _one(use):
            continue  # one unit, one example: the number is that unit's own
        yield _finding(facts, use, faulty, silent=silent)


def _broadcasts(use: CellUse, part: Part) -> bool:
    """Whether the cell takes this part all the same: c is only scaled unit by unit."""
    return part.name == "c" and len(use.parts) == 2 and (part.aval.shape[-1:] in ((), (1,)) or use.hidden == 1)


def _one(use: CellUse) -> bool:
    """Whether the input is one example."""
    return use.batch is not None and all(n == 1 for n in use.batch)


def _finding(facts: Facts, use: CellUse, faulty: tuple[Part, ...], *, silent: bool) -> Finding:
    widths = [p.aval.shape[-1] if p.aval.shape else 1 for p in faulty]
    number = any(not p.aval.shape for p in faulty)
    if silent:
        template = WIDER if widths != [1] else SHARED if number else BROADCAST
    else:
        template = NUMBER if number else WIDTH
    measure = None
    if silent and widths == [1]:
        measure = Measure(CLAIM_NUMBERS, numbers_moved(use.index), 1.0)
    elif silent:
        measure = Measure(CLAIM_WIDTH, units_returned(use.index), float(use.hidden))
    return Finding(
        message=fill(
            template,
            label=use.label(faulty),
            got=got_text(faulty),
            hidden=use.hidden,
            cell=use.cell_name,
            width=widths[0],
        ),
        place=carry_place(facts, use),
        because=origin(facts, faulty[0]) or cell_because(facts, use),
        expected=types((p, Aval(_shape(use, p), p.aval.dtype)) for p in faulty),
        got=types((p, p.aval) for p in faulty),
        repairs=_repairs(facts, use, faulty),
        measure=measure,
        severity=Severity.WARNING if silent else Severity.ERROR,
        silent=silent,
        path=faulty[0].path if len(faulty) == 1 else use.path,
        covers=tuple(p.path for p in use.parts),
    )


def _shape(use: CellUse, part: Part) -> tuple[int, ...]:
    """The part's own batch axes (the input's, for a plain number) and the cell's width."""
    return (*(part.aval.shape[:-1] if part.aval.shape else use.batch or ()), use.hidden)


def _repairs(facts: Facts, use: CellUse, faulty: tuple[Part, ...]) -> tuple[Repair, ...]:
    shapes = {_shape(use, p) for p in faulty}
    if len(shapes) != 1:
        return (repairs_cell.from_initialize_carry(),)
    shape = shapes.pop()
    one_number = all(p.aval.shape[-1:] in ((), (1,)) for p in faulty)
    make = repairs_cell.to_shape if one_number else repairs_cell.to_zeros
    others = (repairs_cell.from_initialize_carry(),) if isinstance(facts.subject, CellTrial) else ()
    return (make(use, faulty, shape), *others)


RULE = Rule(
    code="L304",
    name="carry-width-differs",
    title="The width of the carry is not hidden_features",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
    beats=frozenset({"S102", "S103"}),
)
