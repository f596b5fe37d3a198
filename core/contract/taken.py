"""Reads of a cell state c that go on as if it were the hidden state h (L316).

Whether a value is c is known by identity (`states`). That it is *taken for* h is shown by what becomes of it: it goes
through weights, out of a function or out of a step while h goes nowhere, or the script's own name for it says h.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from core.base.violation import TextEdit
from core.contract.cell_proof import host
from core.contract.fates import Fate, concrete, fate_of, given_as
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScriptRecord
from core.contract.states import C, H, State, States, states_of

#: Parts of names that say which state is meant, split at underscores and digits.
SAYS_H = frozenset({"h", "hs", "ht", "hn", "hid", "hidden", "hiddens"})
SAYS_C = frozenset({"c", "cs", "ct", "cn", "cell", "cells", "mem", "memory", "lt", "longterm"})
#: What h has to go through for its cell's c to have been read on purpose.
SERIOUS = frozenset({Fate.LAYER, Fate.RETURNED, Fate.OUTPUT, Fate.USED})
#: What makes c an output.
OUTWARD = frozenset({Fate.LAYER, Fate.RETURNED, Fate.OUTPUT})
#: How many names are followed from a parameter to what was given for it, or from one derived value to the next.
DEPTH = 4


@dataclass(slots=True, eq=False)
class Read:
    """One place where a script takes c out of a pair.

    Attributes:
        node: the expression (``carry[0]``), or the name that an unpacking binds it to.
        target: the name that it is bound to; None when it is used where it stands.
        value: the very c.
        family: of the pair.
        fates: what becomes of it.
        uses: the expressions that read it.
    """

    node: ast.expr
    target: ast.Name | None
    value: Any
    family: int
    fates: set[Fate] = field(default_factory=set)
    uses: list[ast.expr] = field(default_factory=list)


def says(name: str, words: frozenset[str]) -> bool:
    """Whether a part of a name is one of these words: ``h``, ``h_n``, ``last_hidden``, ``hT``."""
    parts = re.split(r"[_\d]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name))
    return any(part.lower() in words for part in parts)


def reads(facts: ScriptFacts) -> list[Read]:
    """Every place where c is taken out of a pair, with what becomes of it."""
    states = states_of(facts)
    found: dict[ast.AST, Read] = {}
    for seen in facts.record.seen:
        state = states.of(seen.value)
        if state is None or state.kind != C or state.series:
            continue
        if not isinstance(seen.node, ast.Name | ast.Subscript | ast.Attribute):
            continue
        for node, target in _origins(facts, seen.node, seen.value, DEPTH):
            read = found.setdefault(target or node, Read(node, target, seen.value, state.family))
            if seen.node not in read.uses:
                read.uses.append(seen.node)
                read.fates |= fates(facts, states, seen.node, state)
    return list(found.values())


def goes_on(facts: ScriptFacts, family: int) -> bool:
    """Whether h of this family (or the outputs, which are h) is computed with, returned or put out."""
    states = states_of(facts)
    for seen in facts.record.seen:
        state = states.of(seen.value)
        if state is None or state.kind != H or state.family != family:
            continue
        if fates(facts, states, seen.node, state) & SERIOUS:
            return True
    return False


def fates(facts: ScriptFacts, states: States, node: ast.expr, state: State, depth: int = DEPTH) -> set[Fate]:
    """What becomes of a value, through the names of what is computed from it."""
    other = H if state.kind == C else C

    def partner(expression: ast.expr) -> bool:
        return states.holds(facts.value(expression), other, state.family)

    fate = fate_of(facts, node, partner)
    if fate is not Fate.NAMED or depth == 0:
        return {fate}
    out: set[Fate] = {fate}
    for target in _derived(facts, node):
        for load in _loads(facts, target):
            out |= fates(facts, states, load, state, depth - 1)
    return out


def _derived(facts: ScriptFacts, node: ast.expr) -> Iterator[ast.Name]:
    """The names that something computed from this expression is bound to; its own name is followed by identity."""
    statement = facts.source.statement(node)
    if isinstance(statement, ast.Assign) and statement.value is not node:
        yield from (t for t in statement.targets if isinstance(t, ast.Name))


def _loads(facts: ScriptFacts, target: ast.Name) -> Iterator[ast.Name]:
    """Later reads of a name, in its scope and in the functions there."""
    scope = facts.source.scope(target)
    for node in ast.walk(scope):
        loaded = isinstance(node, ast.Name) and node.id == target.id and isinstance(node.ctx, ast.Load)
        if loaded and isinstance(node, ast.Name) and node.lineno > target.lineno:
            yield node


# --- where c was taken out ------------------------------------------------------------------------------------------


def _origins(facts: ScriptFacts, node: ast.expr, value: Any, depth: int) -> Iterator[tuple[ast.expr, ast.Name | None]]:
    """The expression that took the value out of its pair, with the name it is bound to."""
    if not isinstance(node, ast.Name):
        statement = facts.source.parents.get(node)
        single = isinstance(statement, ast.Assign) and statement.value is node and len(statement.targets) == 1
        target = statement.targets[0] if single and isinstance(statement, ast.Assign) else None
        yield node, target if isinstance(target, ast.Name) else None
        return
    bound = target_of(facts, node)
    if bound is not None:
        target, whole = bound
        if not isinstance(whole, ast.Name | ast.Call) or _unpacks(facts, target):
            yield (whole if isinstance(whole, ast.Subscript | ast.Attribute) else target), target
        elif isinstance(whole, ast.Name) and depth:
            yield from _origins(facts, whole, value, depth - 1)
        return
    for _, argument in given_as(facts, node):
        if depth and facts.value(argument) is value:
            yield from _origins(facts, argument, value, depth - 1)
            return


def _unpacks(facts: ScriptFacts, target: ast.Name) -> bool:
    return isinstance(facts.source.parents.get(target), ast.Tuple | ast.List)


def target_of(facts: ScriptFacts, name: ast.Name) -> tuple[ast.Name, ast.expr] | None:
    """The name in the assignment that a read of it goes back to, and what is assigned there; None for parameters."""
    source = facts.source
    scopes: list[ast.AST] = [*source.enclosing(name), source.tree]
    for i, scope in enumerate(scopes):
        before = name.lineno if i == 0 else len(source.lines) + 1
        found: tuple[ast.Name, ast.expr] | None = None
        for node in source.within(scope):
            if not isinstance(node, ast.Assign) or node.lineno > before or name in ast.walk(node):
                continue
            for target in node.targets:
                for part in ast.walk(target):
                    if isinstance(part, ast.Name) and part.id == name.id and isinstance(part.ctx, ast.Store):
                        found = part, node.value
        if found is not None:
            return found
        if any(True for _ in _parameter(scope, name.id)):
            return None
    return None


def _parameter(scope: ast.AST, name: str) -> Iterator[ast.arg]:
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        yield from (a for a in ast.walk(arguments) if isinstance(a, ast.arg) and a.arg == name)


# --- the other half -------------------------------------------------------------------------------------------------


def to_hidden(facts: ScriptFacts, read: Read) -> tuple[TextEdit, ...] | None:
    """Edits that take h where c is taken; None where the text does not say how."""
    if isinstance(read.node, ast.Subscript | ast.Attribute):
        return _other_part(facts, read.node, read.family)
    target = read.target
    display = facts.source.parents.get(target) if target is not None else None
    if target is None or not isinstance(display, ast.Tuple | ast.List) or len(display.elts) != 2:
        return None
    other = next(e for e in display.elts if e is not target)
    if not isinstance(other, ast.Name):
        return None
    read_too = any(True for _ in _loads(facts, other))
    if read_too and not says(target.id, SAYS_H):
        return tuple(TextEdit(facts.span(use), other.id) for use in read.uses if isinstance(use, ast.Name))
    return TextEdit(facts.span(target), other.id), TextEdit(facts.span(other), target.id)


def _other_part(facts: ScriptFacts, node: ast.Subscript | ast.Attribute, family: int) -> tuple[TextEdit, ...] | None:
    """``carry[0]`` as ``carry[1]``, ``state.c`` as ``state.h``, ``state["c"]`` as ``state["h"]``."""
    states, whole = states_of(facts), facts.value(node.value)
    if isinstance(node, ast.Attribute):
        fields = getattr(whole, "_fields", None) or list(getattr(whole, "__dataclass_fields__", ()))
        name = next((f for f in fields if _is_h(states, getattr(whole, f), family)), None)
        return None if name is None else (TextEdit(facts.span(node), f"{facts.source.text_of(node.value)}.{name}"),)
    if not isinstance(node.slice, ast.Constant | ast.UnaryOp):
        return None
    items = whole.items() if isinstance(whole, dict) else enumerate(whole) if isinstance(whole, tuple | list) else ()
    key = next((k for k, v in items if _is_h(states, v, family)), None)
    return None if key is None else (TextEdit(facts.span(node.slice), repr(key)),)


def _is_h(states: States, value: Any, family: int) -> bool:
    state = states.of(value)
    return state is not None and state.kind == H and state.family == family


# --- the number -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Distance:
    """How far the value of a name that is bound on some line is from the h of its pair (largest unit)."""

    line: int
    name: str

    def __call__(self, record: Any) -> float:
        """The number, in this run of the script.

        Raises:
            ValueError: the name is not bound to a c or h there, or there are no numbers.
        """
        if not isinstance(record, ScriptRecord):
            raise ValueError("there is no script")
        facts = ScriptFacts(record)
        states = states_of(facts)
        for seen in record.seen:
            state = states.of(seen.value)
            if state is not None and not state.series and self._is(facts, seen.node):
                return distance(states, seen.value)
        raise ValueError("there is no such value")

    def _is(self, facts: ScriptFacts, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            bound = target_of(facts, node)
            return bound is not None and bound[0].id == self.name and bound[0].lineno == self.line
        statement = facts.source.parents.get(node)
        if not isinstance(statement, ast.Assign) or statement.value is not node or statement.lineno != self.line:
            return False
        return any(isinstance(t, ast.Name) and t.id == self.name for t in statement.targets)


def distance(states: States, value: Any) -> float:
    """The largest difference between a c or h and the h of its pair.

    Raises:
        ValueError: there are no numbers.
    """
    hidden = states.hidden_of(value)
    if not concrete(value) or not concrete(hidden):
        raise ValueError("the values are traced")
    return float(np.abs(host(value) - host(hidden)).max(initial=0.0))
