"""Lengths and masks that a padded input was made with, and that nothing else is done with afterwards (L311).

A script that pads its own sequences reads their lengths to do so. That is no use of them: the cell is told no more
than if they had never been read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from core.contract.fates import META, Fate, fate_of, function_of
from core.contract.script_facts import ScriptFacts
from core.contract.unused import DEPTH, loads, mixed, parameter

#: Methods that put something into what they are called on.
PUTS = frozenset({"append", "extend", "insert"})


def only_feeds(facts: ScriptFacts, scope: ast.AST, name: str, inputs: ast.expr, depth: int = DEPTH) -> bool:
    """Whether a name leads to `inputs`, and nowhere else but to what is shown.

    Args:
        facts: of the script.
        scope: the function, or the module, that the name belongs to.
        name: of the lengths or the mask.
        inputs: the expression that a layer is given as its inputs, or a scan as its xs.
        depth: how many names are followed from one to the next.
    """
    return _leads(facts, scope, name, frozenset(ast.walk(inputs)), frozenset(), depth) is True


def _leads(
    facts: ScriptFacts, scope: ast.AST, name: str, goal: frozenset[ast.AST], before: frozenset[str], depth: int
) -> bool | None:
    """True: to the inputs and nowhere else; None: nowhere; False: elsewhere too."""
    if depth == 0:
        return False
    reached: bool | None = None
    for load in loads(facts, scope, name):
        one = _load_leads(facts, load, goal, before | {name}, depth)
        if one is False:
            return False
        reached = one or reached
    return reached


def _load_leads(
    facts: ScriptFacts, load: ast.Name, goal: frozenset[ast.AST], before: frozenset[str], depth: int
) -> bool | None:
    if load in goal:
        return True
    parent = facts.source.parents.get(load)
    if isinstance(parent, ast.Attribute) and parent.attr in META:
        return None
    call = parent if isinstance(parent, ast.Call) and load in parent.args else None
    made = None if call is None else next((c for c in facts.calls_at(call) if function_of(facts, c.func)), None)
    function = None if made is None else function_of(facts, made.func)
    if made is not None and function is not None:
        inside = parameter(made, function, load)
        return False if inside is None else _leads(facts, function, inside, goal, frozenset(), depth - 1)
    targets = _made(facts.source.statement(load), load)
    if targets is None:
        shown = fate_of(facts, load) is Fate.SHOWN and not mixed(facts, load)
        return None if shown else False
    reached: bool | None = None
    for target in targets:
        if target.id in before:  # it is made of itself, or filled from what was read of it
            continue
        one = _leads(facts, facts.source.scope(target), target.id, goal, before, depth - 1)
        if one is False:
            return False
        reached = one or reached
    return reached


def _made(statement: ast.stmt | None, load: ast.Name) -> list[ast.Name] | None:
    """The names that a statement gives a value, or puts something into; None when it does anything else."""
    if isinstance(statement, ast.For):
        if not any(part is load for part in ast.walk(statement.iter)) or statement.orelse:
            return None
        parts = [_made(one, load) for one in statement.body]
        names = [n for part in parts if part is not None for n in part]
        return None if any(part is None for part in parts) else [*names, *_names(statement.target)]
    if isinstance(statement, ast.Assign):
        return [n for target in statement.targets for n in _names(target)]
    if isinstance(statement, ast.AugAssign):
        return list(_names(statement.target))
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in PUTS:
        return list(_names(call.func.value)) or None
    return None


def _names(target: ast.expr) -> Iterator[ast.Name]:
    """The names that an assignment's target binds, or whose contents it changes."""
    if isinstance(target, ast.Tuple | ast.List):
        for element in target.elts:
            yield from _names(element)
    elif isinstance(target, ast.Subscript | ast.Starred):
        yield from _names(target.value)
    elif isinstance(target, ast.Name):
        yield target
