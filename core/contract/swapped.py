"""Calls of a cell with its two arguments the wrong way round: ``cell(x, h)`` for ``cell(h, x)`` (L316).

Proof is what only a carry can be: the pair itself, the result of this cell's `initialize_carry` or of its step before,
the slot of a scan's carry that the cell's new carry goes back to; or sizes that fit the other way round only.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import tree_util

from core.base.avals import aval_of
from core.contract import trees
from core.contract.cell_proof import concrete_step, host
from core.contract.cells import CellUse
from core.contract.facts import ScanFacts
from core.contract.fates import concrete, given_as
from core.contract.record import CELLS, CellEvents, StepEvent, recording
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite, ScriptRecord
from core.contract.steps import steps_of
from core.contract.taken import SAYS_H, says
from core.contract.trace import StepTrace

SAYS_X = frozenset({"x", "xs", "xt", "inp", "input", "inputs", "data", "token", "tokens", "emb", "frame", "obs"})
SAYS_CARRY = SAYS_H | {"carry", "state", "init", "prev"}
ZEROS = frozenset({"jax.numpy.zeros", "jax.numpy.zeros_like", "numpy.zeros", "numpy.zeros_like"})
DEPTH = 3


class Sure(enum.IntEnum):
    """How it is known."""

    #: The second argument is all zeros, as carries are at their start, and the first is not.
    ZEROS = 1
    #: That, and the script's own names say it too.
    NAMED = 2
    #: What only a carry can be stands second.
    PROVEN = 3
    #: JAX raises, and the sizes fit the other way round.
    RAISED = 4


@dataclass(frozen=True, slots=True, eq=False)
class Swapped:
    """One call with its arguments exchanged.

    Attributes:
        call: in the script.
        carry, inputs: the expressions of its first and second argument, as they stand.
        use: what was recorded.
        sure: how it is known.
        site: the scan in whose step it is; None outside scans.
    """

    call: ast.Call
    carry: ast.expr
    inputs: ast.expr
    use: CellUse
    sure: Sure
    site: ScanSite | None


def swapped(facts: ScriptFacts) -> list[Swapped]:
    """One entry for each call in the script: the surest."""
    best: dict[ast.Call, Swapped] = {}
    for site, use in steps_of(facts):
        call = _call(facts, use.event)
        arguments = None if call is None else _arguments(call)
        if call is None or arguments is None:
            continue
        sure = _sure(facts, site, use, *arguments)
        if sure is not None and (call not in best or sure > best[call].sure):
            best[call] = Swapped(call, *arguments, use, sure, site)
    return list(best.values())


def _call(facts: ScriptFacts, event: StepEvent) -> ast.Call | None:
    """The call of the cell in the script's text; None where a library makes it."""
    place = event.site.find("call") if event.site is not None else None
    node = None if place is None else facts.source.expression(place)  # type: ignore[arg-type]  # sites are Spans
    if not isinstance(node, ast.Call):
        return None
    known = [c.func for c in facts.calls_at(node) if c.func is not None]
    return node if not known or any(isinstance(f, CELLS) for f in known) else None


def _arguments(call: ast.Call) -> tuple[ast.expr, ast.expr] | None:
    named = {k.arg: k.value for k in call.keywords}
    plain = [a for a in call.args if not isinstance(a, ast.Starred)]
    if len(plain) == 2 and len(call.args) == 2:
        return plain[0], plain[1]
    if "carry" in named and "inputs" in named:
        return named["carry"], named["inputs"]
    return None


# --- how it is known ------------------------------------------------------------------------------------------------


def _sure(facts: ScriptFacts, site: ScanSite | None, use: CellUse, carry: ast.expr, inputs: ast.expr) -> Sure | None:
    event = use.event
    first, second = aval_of(event.carry), aval_of(event.inputs)
    if event.wants_pair:
        if first is None or not _pair(event.inputs, use.hidden):
            return None
        return Sure.PROVEN if event.error is None else Sure.RAISED
    if first is None or second is None or not first.shape or not second.shape:
        return None
    widths = first.shape[-1], second.shape[-1]
    if event.error is not None:
        return Sure.RAISED if widths == (use.features, use.hidden) and use.features != use.hidden else None
    if widths != (use.features, use.hidden):
        return None
    others = _carries(facts, site, use)
    if any(event.carry is one for one in others):
        return None
    if any(event.inputs is one for one in others):
        return Sure.PROVEN
    if not (_zero(facts, inputs, event.inputs) and not _zero(facts, carry, event.carry)):
        return None
    named = _named(inputs, SAYS_CARRY, SAYS_X) and _named(carry, SAYS_X, SAYS_CARRY)
    return Sure.NAMED if named else Sure.ZEROS


def _pair(value: Any, hidden: Any) -> bool:
    """Whether a value is what a pair cell carries: two arrays of its width."""
    if not isinstance(value, tuple | list) or len(value) != 2:
        return False
    avals = [aval_of(part) for part in value]
    return all(aval is not None and aval.shape[-1:] == (hidden,) for aval in avals)


def _carries(facts: ScriptFacts, site: ScanSite | None, use: CellUse) -> list[Any]:
    """Every value that is this cell's carry for sure, before this step: initialised, left by a step, or a slot."""
    cell = use.event.cell
    out = [e.result for e in facts.cells.carries if e.cell is cell and e.error is None]
    if site is None:
        before = facts.cells.steps[: use.index]
        return out + [e.result[0] for e in before if e.cell is cell and e.result is not None]
    out += [e.result for e in site.facts.cells.carries if e.cell is cell and e.error is None]
    before = site.facts.cells.steps[: use.index]
    out += [e.result[0] for e in before if e.cell is cell and e.result is not None]
    return [*out, *_slot(site.facts, use.event)]


def _slot(facts: ScanFacts, event: StepEvent) -> Iterator[Any]:
    """The leaf of the carry that came in where this step's new carry goes out."""
    if not isinstance(facts.trace, StepTrace) or facts.trace.pair is None or event.result is None:
        return
    for path, leaf in _flat(facts.trace.carry_in):
        try:
            if trees.find(facts.trace.pair[0], "carry", path) is event.result[0]:
                yield leaf
        except KeyError:
            continue


def _flat(tree: Any) -> list[tuple[str, Any]]:
    return [("carry" + tree_util.keystr(p), leaf) for p, leaf in tree_util.tree_flatten_with_path(tree)[0]]


def _zero(facts: ScriptFacts, node: ast.expr, value: Any) -> bool:
    """Whether a value is all zeros: by its numbers, by those given for the parameter, or by the call that made it."""
    if concrete(value) or isinstance(value, np.ndarray):
        return not np.asarray(value).any()
    for _ in range(DEPTH):
        made = facts.source.resolve(node)
        if isinstance(made, ast.Call) and facts.source.dotted(made.func) in ZEROS:
            return True
        if not isinstance(made, ast.Name):
            return False
        given = next((a for _, a in given_as(facts, made)), None)
        if given is None:
            return False
        known = facts.value(given)
        if concrete(known):
            return not np.asarray(known).any()
        node = given
    return False


def _named(node: ast.expr, yes: frozenset[str], no: frozenset[str]) -> bool:
    return isinstance(node, ast.Name) and says(node.id, yes) and not says(node.id, no)


# --- the numbers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moved:
    """How far h of the call at a place is from h of the same step with the carry first (largest unit).

    `carry` is the text of the argument that is the carry, wherever it stands.
    """

    line: int
    col: int
    carry: str

    def __call__(self, record: Any) -> float:
        """The number, in this run of the script.

        Raises:
            ValueError: the call is not there, or there are no numbers.
        """
        facts, site, use, arguments = _find(record, self.line, self.col)
        event = use.event if site is None else concrete_step(site.call, use.index)
        values = event.carry, event.inputs
        if facts.source.text_of(arguments[0]) != self.carry:
            values = event.inputs, event.carry
        if not all(concrete(leaf) for leaf in tree_util.tree_leaves((values, event.result))):
            raise ValueError("the values are traced")
        with recording(CellEvents()):  # a step of ours is none of the script's
            right = event.cell(*values)[1]
        return float(np.abs(host(event.result[1]) - host(right)).max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Arrivals:
    """In how many of the cell's recorded steps at a place what is its carry for sure arrives as the input."""

    line: int
    col: int

    def __call__(self, record: Any) -> float:
        """The number, in this run of the script.

        Raises:
            ValueError: the call is not there.
        """
        facts, site, _, arguments = _find(record, self.line, self.col)
        uses = [u for s, u in steps_of(facts) if s is site and _at(facts, u, self.line, self.col)]
        return float(sum(_sure(facts, site, u, *arguments) in (Sure.PROVEN, Sure.NAMED) for u in uses))


def _find(record: Any, line: int, col: int) -> tuple[ScriptFacts, ScanSite | None, CellUse, tuple[ast.expr, ast.expr]]:
    if isinstance(record, ScriptRecord):
        facts = ScriptFacts(record)
        for site, use in steps_of(facts):
            call = _call(facts, use.event)
            arguments = None if call is None else _arguments(call)
            if arguments is not None and _at(facts, use, line, col):
                return facts, site, use, arguments
    raise ValueError("there is no such call")


def _at(facts: ScriptFacts, use: CellUse, line: int, col: int) -> bool:
    call = _call(facts, use.event)
    if call is None:
        return False
    span = facts.span(call)
    return (span.line, span.col) == (line, col)
