"""initialize_carry is given another shape than that of one input.

**What.** It takes every axis of `input_shape` but the last one for batch, whatever they are. Given the shape of the
whole sequence, ``(T, B, F)``, it returns one state for each time and example; given ``(B,)``, a state without batch.
Both are silent, and both broadcast silently against an input ``(B, F)``. A list, a number or the array itself raise.

**Why.** `input_shape` is the shape of what one step is given: ``(B, F)``.

**Bad**

    xs = jnp.ones((5, 2, 3))
    carry = cell.initialize_carry(xs.shape, nnx.Rngs(1))
    carry, y = cell(carry, xs[0])

**Good**

    carry = cell.initialize_carry(xs[0].shape, nnx.Rngs(1))
    carry, y = cell(carry, xs[0])

The shape alone proves nothing: a cell may be stepped on inputs with several batch axes, or with none. It is compared
with the input that is really stepped. The last number is not looked at, neither here nor by the cell.

Source: flax.nnx.LSTMCell.initialize_carry, "mem_shape = batch_dims + (self.hidden_features,)".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from core.base.avals import Aval, aval_of
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs_cell
from core.contract.batches import Kind, kind_of, severity_of
from core.contract.cell_proof import examples_moved, states_per_example
from core.contract.cells import (
    CellUse,
    first_of_each,
    got_text,
    input_because,
    made_by,
    place_of,
    slot_changes,
    types,
)
from core.contract.facts import Facts
from core.contract.record import CarryEvent
from core.contract.rngs import is_key, is_seed, is_shape
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage

MORE = (
    "initialize_carry was given {given}, but one step takes {x}: the carry is {got}, with axes that one step does "
    "not have."
)
FEWER = (
    "initialize_carry was given {given}, but one step takes {x}: the carry is {got}, without the batch axes of one "
    "step."
)
NO_TUPLE = "initialize_carry was given {given} for input_shape; it wants a tuple of whole numbers, such as (B, F)."
CLAIM_MORE = "One step returns this many hidden states for each example of its input; it must be 1."
CLAIM_FEWER = (
    "One row of the carry changed by 0.1 moves h of this many examples; each has its own memory, so it must be 1."
)
WHY = (
    "input_shape is the shape of what one step is given, (B, F): every axis of it but the last becomes batch in "
    "the carry."
)
NOTHING = "nothing"
ARRAY = "an array {aval}"
VALUE = "{value!r}"
KIND = "a value of type {kind}"


def check(facts: Facts) -> Iterator[Finding]:
    """One finding for each step whose carry was initialised for another shape, and for each shape that is none."""
    for event in facts.cells.carries:
        if event.error is not None and not is_shape(event.input_shape) and not is_shape(event.rngs):
            yield _no_shape(facts, event)
    for use in first_of_each(facts):
        yield from _other_shape(facts, use)


def _no_shape(facts: Facts, event: CarryEvent) -> Finding:
    given = event.input_shape
    shape = _as_shape(given)
    title = repairs_cell.TITLE_SHAPE_TUPLE
    return Finding(
        message=fill(NO_TUPLE, given=_describe(given)),
        place=place_of(facts, event, "carry_call", "carry_shape"),
        repairs=() if shape is None else (repairs_cell.input_shape(shape, title),),
        severity=Severity.ERROR,
        silent=False,
        path="input_shape",
    )


def _as_shape(given: Any) -> tuple[int, ...] | None:
    """The shape that was meant: of a list its numbers, of an array its own shape."""
    if isinstance(given, list) and is_shape(tuple(given)):
        return tuple(given)
    aval = aval_of(given)
    return aval.shape if aval is not None and aval.shape and not is_key(given) else None


def _describe(given: Any) -> str:
    if given is None:
        return fill(NOTHING)
    aval = aval_of(given)
    if aval is not None and aval.shape:
        return fill(ARRAY, aval=aval)
    plain = is_seed(given) or (isinstance(given, list | tuple) and all(isinstance(n, int | float) for n in given))
    return fill(VALUE, value=given) if plain else fill(KIND, kind=type(given).__name__)


def _other_shape(facts: Facts, use: CellUse) -> Iterator[Finding]:
    if not use.parts or use.x is None or use.batch is None:
        return
    first = use.parts[0]
    event = made_by(facts, first)
    if event is None or not isinstance(event.input_shape, tuple) or len(event.input_shape) == len(use.x.shape):
        return
    kind = min(kind_of(use, part) for part in use.parts)
    if kind is not Kind.FITS:
        yield _finding(facts, use, event, kind, use.x)


def _finding(facts: Facts, use: CellUse, event: CarryEvent, kind: Kind, x: Aval) -> Finding:
    more = len(event.input_shape) - len(x.shape)
    severity = severity_of(kind, grows=slot_changes(facts, (part.path for part in use.parts)))
    given = tuple(int(n) if isinstance(n, np.integer) else n for n in event.input_shape)
    template = MORE if more > 0 else FEWER
    return Finding(
        message=fill(template, given=given, x=x, got=got_text(use.parts)),
        place=place_of(facts, event, "carry_call", "carry_shape"),
        because=input_because(facts, use),
        expected=types((part, use.wanted(part) or part.aval) for part in use.parts),
        got=types((part, part.aval) for part in use.parts),
        repairs=_repairs(use, x),
        measure=_measure(use, more) if severity is Severity.WARNING else None,
        severity=severity,
        silent=severity is not Severity.ERROR,
        path=use.path,
        covers=tuple(part.path for part in use.parts),
    )


def _measure(use: CellUse, more: int) -> Measure:
    if more > 0:
        return Measure(CLAIM_MORE, states_per_example(use.index), 1.0)
    return Measure(CLAIM_FEWER, examples_moved(use.index, "carry"), 1.0)


def _repairs(use: CellUse, x: Aval) -> tuple[Repair, ...]:
    """The shape that is stepped; for a scan, init made anew for it (it is what initialize_carry would return)."""
    zeros = repairs_cell.to_zeros(use, use.parts, (*x.shape[:-1], use.hidden))
    return (repairs_cell.input_shape(x.shape), zeros)


RULE = Rule(
    code="L308",
    name="carry-for-another-shape",
    title="initialize_carry is given another shape than one input's",
    severity=Severity.WARNING,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"cell", "scan", "log"}),
    beats=frozenset({"L303", "S102", "S103"}),
)
