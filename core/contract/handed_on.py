"""Pairs that leave a scan, a layer or a function as (c, h) and are handed on to another cell as (h, c) (L302).

An encoder's final carry is a decoder's init: the arrays are the same objects, so that what each of them was where it
was made, and what it is taken for, are both known. What goes from one direct step of a cell to the next is seen in the
cells' own record already, and left out here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from jax import lax

from core.contract import repairs_cell, trees
from core.contract.cell_proof import again, farthest
from core.contract.record import CellEvents, StepEvent, recording
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScanSite, ScriptRecord
from core.contract.states import C, H, Pair, runs_pairs, states_of
from core.contract.steps import steps_of
from core.contract.subject import MISSING, ScanCall

INITIAL = "initial_carry"


@dataclass(frozen=True, slots=True, eq=False)
class Handed:
    """One pair the wrong way round.

    Attributes:
        taker: what takes it: a scan, a direct step of a cell, a call of a layer.
        paths: of a scan, the slots of its carry that hold what is taken as c and as h.
        path: what it is called in messages.
        cell: the class of the cell that takes it.
        given: what is taken as c and as h.
        pair: the pair as it was made.
        node: the expression that hands it on; None where the text does not show it.
    """

    taker: ScanSite | StepEvent | Called
    paths: tuple[str, str]
    path: str
    cell: str
    given: tuple[Any, Any]
    pair: Pair
    node: ast.expr | None


def handed_on(facts: ScriptFacts) -> tuple[Handed, ...]:
    """All of a script, each once."""
    return facts.once(_all)


def _all(facts: ScriptFacts) -> tuple[Handed, ...]:
    return tuple(_each(facts)) if states_of(facts).pairs else ()


def _each(facts: ScriptFacts) -> Iterator[Handed]:
    seen: set[tuple[int, str]] = set()
    for site, use in steps_of(facts):
        if not use.event.wants_pair or len(use.parts) != 2:
            continue
        taker: ScanSite | StepEvent = use.event if site is None else site
        given, paths = _given(site, use)
        if given is None or (id(taker), paths[0]) in seen:
            continue
        seen.add((id(taker), paths[0]))
        node = site.arguments.get("init") if site is not None else None
        yield from _wrong(facts, taker, paths, use.path, use.cell_name, given, node)
    for call in facts.record.calls:
        carry = call.kwargs.get(INITIAL)
        if runs_pairs(call.func) and isinstance(carry, tuple | list) and len(carry) == 2:
            node = next((k.value for k in call.node.keywords if k.arg == INITIAL), None)
            name = type(call.func.cell).__name__
            yield from _wrong(facts, call, ("", ""), INITIAL, name, (carry[0], carry[1]), node)


def _given(site: ScanSite | None, use: Any) -> tuple[tuple[Any, Any] | None, tuple[str, str]]:
    """What a step of a cell is given as c and as h, where that comes from outside, and the slots that bring it."""
    if site is None:
        carry = use.event.carry
        pair = isinstance(carry, tuple | list) and len(carry) == 2
        return ((carry[0], carry[1]) if pair else None), ("", "")
    one, other = use.parts
    if not (one.slot and other.slot):
        return None, ("", "")
    try:
        first, second = (trees.find(site.call.init, "carry", part.path) for part in use.parts)
    except (KeyError, TypeError):
        return None, ("", "")
    return (first, second), (one.path, other.path)


def _wrong(
    facts: ScriptFacts,
    taker: ScanSite | StepEvent | Called,
    paths: tuple[str, str],
    path: str,
    cell: str,
    given: tuple[Any, Any],
    node: ast.expr | None,
) -> Iterator[Handed]:
    states = states_of(facts)
    first, second = (states.of(part) for part in given)
    if first is None or second is None or first.series or second.series or first.family != second.family:
        return
    if (first.kind, second.kind) != (H, C) or _stepped(facts, given):
        return
    yield Handed(taker, paths, path, cell, given, states.pair(first.family), _written(facts, given, node))


def _stepped(facts: ScriptFacts, given: tuple[Any, Any]) -> bool:
    """Whether a direct step of a cell made these two."""
    made = (e.result[0] for e in facts.cells.steps if e.wants_pair and e.result is not None)
    return any(c is given[1] and h is given[0] for c, h in made)


def _written(facts: ScriptFacts, given: tuple[Any, Any], node: ast.expr | None) -> ast.expr | None:
    """The display ``(h, c)``: what the argument names, or any other in the script; else the argument itself."""
    named = None if node is None else facts.source.resolve(node)
    displays = (d for d in (named, *facts.nodes(ast.Tuple, ast.List)) if isinstance(d, ast.Tuple | ast.List))
    pairs = (d for d in displays if isinstance(d.ctx, ast.Load) and len(d.elts) == 2)
    same = (d for d in pairs if all(facts.value(e) is one for e, one in zip(d.elts, given, strict=True)))
    return next(same, node)


@dataclass(frozen=True, slots=True)
class Moved:
    """How far the result of the n-th scan, step or call is from that of the same one with c as c and h as h."""

    number: int
    kind: type

    def __call__(self, record: Any) -> float:
        """The number, in this run of the script; 0 where the pair is handed on in the right order.

        Raises:
            ValueError: there are no numbers.
        """
        if not isinstance(record, ScriptRecord):
            raise ValueError("there is no script")
        facts = ScriptFacts(record)
        for one in handed_on(facts):
            if isinstance(one.taker, self.kind) and number_of(facts, one) == self.number:
                with recording(CellEvents()):  # what is run again is none of the script's
                    return _apart(one)
        return 0.0


def number_of(facts: ScriptFacts, one: Handed) -> int:
    """Which scan, step or call of the script takes the pair."""
    takers: tuple[list[Any], ...] = (facts.scans, list(facts.cells.steps), list(facts.record.calls))
    return next(i for kept in takers for i, taker in enumerate(kept) if taker is one.taker)


def _apart(one: Handed) -> float:
    h, c = one.given
    if isinstance(one.taker, ScanSite):
        call = one.taker.call
        if one.taker.traced:
            raise ValueError("the values are traced")
        right = repairs_cell.swap_slots(*one.paths).apply(call)
        if not isinstance(right, ScanCall):
            raise ValueError("the two cannot change places")
        ends = (lax.scan(k.body, k.init, k.xs, k.length, k.reverse, k.unroll)[0] for k in (call, right))
        return farthest(*ends)
    if isinstance(one.taker, StepEvent):
        return farthest(again(one.taker)[1], again(one.taker, carry=(c, h))[1])
    if one.taker.traced or any(a is MISSING for a in (*one.taker.args, *one.taker.kwargs.values())):
        raise ValueError("its arguments are not known")
    kwargs = dict(one.taker.kwargs) | {INITIAL: (c, h)}
    return farthest(one.taker.result, one.taker.func(*one.taker.args, **kwargs))
