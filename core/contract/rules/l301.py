"""The carry of an LSTM is not the pair (c, h).

**What.** `LSTMCell` and `OptimizedLSTMCell` begin with ``c, h = carry``. One array whose first axis has length 2
unpacks along that axis: row 0 plays c and row 1 plays h, for every example of the batch, and nothing is raised. Any
other length raises, as do three parts, one part, a dict or None. A list or a NamedTuple of two is fine in a direct
call, but the cell returns a tuple, which a scan takes for another structure.

**Why.** The carry of an LSTM is two arrays of one shape: the cell state c and the hidden state h.

**Bad**

    h = jnp.zeros((2, 4))
    new, y = cell(h, jnp.ones((2, 3)))

**Good**

    carry = cell.initialize_carry((2, 3), nnx.Rngs(1))
    carry, y = cell(carry, jnp.ones((2, 3)))

A note only: a stacked ``(2, B, H)`` unpacks into the right c and h; it is the tuple coming back that a scan refuses.

Source: flax.nnx.LSTMCell.__call__, "c, h = carry".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from core.base.avals import Aval, LeafType, aval_of
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs_cell, trees
from core.contract.batches import size
from core.contract.cell_proof import input_leaf, neighbour_by_carry, neighbour_by_input
from core.contract.cells import CellUse, arrayed, carry_place, cell_because, first_of_each, place_of
from core.contract.facts import Facts, ScanFacts
from core.contract.record import StepEvent
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.subject import CellTrial
from core.contract.trace import StepTrace

EXAMPLES = (
    "{path} is one array, {got}, where {cell} wants the pair (c, h): it unpacks along the batch, so example 0 plays c "
    "and example 1 plays h for everybody."
)
ROWS = (
    "{path} is one array, {got}, where {cell} wants the pair (c, h): it unpacks along its first axis, so row 0 plays "
    "c and row 1 plays h for every example."
)
ARRAY = "{path} is one array, {got}, where {cell} wants the pair (c, h)."
COUNT = "{path} is {got} where {cell} wants the pair (c, h)."
PART = "{part} is {got}, no array: {cell} wants the pair (c, h)."
RETURNED = "{path} goes in as {got} and comes back from {cell} as the tuple (c, h)."
STACKED = (
    "{path} {got} unpacks into the right c and h, but {cell} returns a tuple: a scan takes that for another structure."
)
CLAIM_CARRY = "Example 0 of the carry changed by 0.1 moves h of example {last} by this much; it must not move at all."
CLAIM_INPUT = "x of example 0 changed by 0.1 moves h of example 1 by this much; it must not move at all."
WHY = (
    "The carry of an LSTM is two arrays of one shape, the cell state c and the hidden state h: the cell unpacks two "
    "parts."
)


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each place where a pair cell was given something else."""
    for use in first_of_each(facts):
        if not use.event.wants_pair:
            continue
        carry = use.event.carry
        if aval_of(carry) is not None:
            yield from _one_array(facts, use)
        elif isinstance(carry, tuple | list) and len(carry) == 2:
            yield from _two(facts, use)
        elif use.event.error is not None:
            got = trees.describe(carry)
            yield _finding(facts, use, fill(COUNT, path=use.path, got=got, cell=use.cell_name), Severity.ERROR)


def _one_array(facts: Facts, use: CellUse) -> Iterator[Finding]:
    aval = aval_of(use.event.carry)
    assert aval is not None  # noqa: S101  # the caller saw it
    names = {"path": use.path, "got": aval, "cell": use.cell_name}
    rows = aval.shape[:1] == (2,)
    right = rows and use.batch is not None and _fits(aval.shape[1:], use)
    repairs = (repairs_cell.pair_of_halves(use.path),) if right else _as_pair(facts, use, aval)
    if (use.event.error is not None and not _unpacks(aval, use)) or _refused(facts, use):
        yield _finding(facts, use, fill(ARRAY, **names), Severity.ERROR, repairs)
    elif right:
        if not isinstance(facts, ScanFacts):
            yield _finding(facts, use, fill(STACKED, **names), Severity.NOTE, repairs)
    else:
        template = EXAMPLES if aval.shape == (*(use.batch or ()), use.hidden) else ROWS
        yield _finding(facts, use, fill(template, **names), Severity.WARNING, repairs, _measure(facts, use))


def _unpacks(aval: Aval, use: CellUse) -> bool:
    """Whether the array alone raises nothing: two halves, each of the cell's width, that broadcast with the input."""
    try:
        np.broadcast_shapes(aval.shape[1:-1], use.batch or ())
    except ValueError:
        return False
    return aval.shape[:1] == (2,) and len(aval.shape) > 1 and aval.shape[-1] == use.hidden


def _fits(shape: tuple[int, ...], use: CellUse) -> bool:
    """Whether one half of a stacked array is a right c or h: the input's batch axes (save for length 1), then H."""
    batch = use.batch or ()
    return shape[-1:] == (use.hidden,) and [n for n in shape[:-1] if n != 1] == [n for n in batch if n != 1]


def _as_pair(facts: Facts, use: CellUse, aval: Aval) -> tuple[Repair, ...]:
    """An array of h's own shape becomes h; whatever else it is, the initialised carry takes its place.

    Not in a step that carries it: initialised at every step it would forget what the steps before it did.
    """
    fits = use.batch is None or aval.shape == (*use.batch, use.hidden)
    came = _came_back(facts, use) if fits else None
    through = () if came is None else (repairs_cell.carry_through(use.path, place_of(facts, came, "carry")),)
    mended = (repairs_cell.pair_of_one(use.path),) if fits else ()
    afresh = () if use.slot and isinstance(facts, ScanFacts) else (repairs_cell.from_initialize_carry(),)
    return (*through, *mended, *afresh)


def _came_back(facts: Facts, use: CellUse) -> StepEvent | None:
    """The step of a cell whose h the scan's step returns for this array; this one where it raised before it returned."""
    if not use.slot or not isinstance(facts, ScanFacts):
        return None
    if not isinstance(facts.trace, StepTrace) or facts.trace.pair is None:
        return use.event if use.event.error is not None else None
    try:
        after = trees.find(facts.trace.pair[0], "carry", use.path)
    except KeyError:
        return None
    steps = (event for event in facts.cells.steps if event.error is None and event.carry is use.event.carry)
    return next((event for event in steps if event.result[1] is after), None)


def _two(facts: Facts, use: CellUse) -> Iterator[Finding]:
    carry = use.event.carry
    if use.event.error is not None:
        for name, value in zip(("c", "h"), carry, strict=True):
            known = aval_of(value) if name == "c" else arrayed(value)
            if known is None:
                text = fill(PART, part=f"{use.path}[{'ch'.index(name)}]", got=trees.describe(value), cell=use.cell_name)
                yield _finding(facts, use, text, Severity.ERROR)
                return
    elif type(carry) is not tuple and _refused(facts, use):
        text = fill(RETURNED, path=use.path, got=trees.describe(carry), cell=use.cell_name)
        yield _finding(facts, use, text, Severity.ERROR, (repairs_cell.plain_tuple(use.path),))


def _refused(facts: Facts, use: CellUse) -> bool:
    """Whether the scan finds another structure where this carry was: the tuple that the cell returned."""
    if not (use.slot and isinstance(facts, ScanFacts) and isinstance(facts.trace, StepTrace) and facts.trace.pair):
        return False
    try:
        after = trees.find(facts.trace.pair[0], "carry", use.path)
    except KeyError:
        return False
    return type(after) is tuple and trees.node_of(after).kind is not trees.node_of(use.event.carry).kind


def _measure(facts: Facts, use: CellUse) -> Measure | None:
    """Over a sequence where the input can be changed there; else on one step. With one example there is no other."""
    if size(use.batch or ()) < 2:
        return None
    runs = isinstance(facts, ScanFacts) and facts.jax is None and (facts.length or 0) > 1
    if runs and input_leaf(facts, use.index) is not None:
        return Measure(CLAIM_INPUT, neighbour_by_input(use.index))
    return Measure(fill(CLAIM_CARRY, last=size(use.batch or ()) - 1), neighbour_by_carry(use.index))


def _finding(
    facts: Facts,
    use: CellUse,
    message: str,
    severity: Severity,
    repairs: tuple[Repair, ...] = (),
    measure: Measure | None = None,
) -> Finding:
    carry = use.event.carry
    wanted: Any = None if use.batch is None else Aval((*use.batch, use.hidden), "float32")
    expected = tuple(LeafType(f"{use.path}[{i}]", wanted) for i in range(2)) if wanted is not None else ()
    given = isinstance(facts.subject, CellTrial) and not repairs
    return Finding(
        message=message,
        place=carry_place(facts, use),
        because=cell_because(facts, use),
        expected=expected,
        got=(LeafType(use.path, aval_of(carry), trees.describe(carry)),),
        repairs=(repairs_cell.from_initialize_carry(),) if given else repairs,
        measure=measure,
        severity=severity,
        silent=severity is not Severity.ERROR,
        path=use.path,
    )


RULE = Rule(
    code="L301",
    name="carry-is-not-a-pair",
    title="The carry of an LSTM is not the pair (c, h)",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
    beats=frozenset({"S102", "S103", "S104"}),
)
