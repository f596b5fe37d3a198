"""Who owns a container or a name, and in which trace the owner's own code runs: what a step makes for itself is its own."""

from __future__ import annotations

import ast
from typing import Any

from core.contract.p_text import function_of
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Seen
from core.contract.source import FUNCTIONS, Function, parameters
from core.contract.subject import MISSING

#: Where a level of tracing is: whether anything was traced, and the innermost scan.
type Level = tuple[bool, int | None]
MODULE: Level = (False, None)


#: Methods whose first argument is an object that is only being made.
MAKERS = frozenset({"__init__", "__post_init__", "__new__", "__setstate__", "setup"})


def value_at(facts: ScriptFacts, node: ast.expr, level: Level) -> Any:
    """The last value that an expression had at this level of tracing; its last one when it had none there."""
    here = [s for s in facts.seen(node) if (s.traced, s.scan) == level]
    return here[-1].value if here else facts.value(node, MISSING)


def declared_outside(facts: ScriptFacts, function: Function, name: str) -> bool:
    """Whether a function says that a name is global or nonlocal."""
    return _declares(facts, function, name, (ast.Global, ast.Nonlocal))


def is_outside(facts: ScriptFacts, node: ast.expr, holder: Any, level: Level, hops: int = 6) -> bool:
    """Whether a container or object was there before the trace in which it is changed."""
    if isinstance(node, ast.Name) and _being_made(facts, node):
        return False
    born = facts.born(holder) if holder is not MISSING and holder is not None else None
    if born is not None and (born.traced, born.scan) != level and (not born.traced or born.scan != level[1]):
        return True
    if not hops:
        return False
    if isinstance(node, ast.Name):
        return _name_outside(facts, node, holder, level, hops)
    if isinstance(node, ast.Attribute | ast.Subscript):
        if isinstance(born.node if born else None, ast.Call) and born is not None and (born.traced, born.scan) == level:
            return False
        return is_outside(facts, node.value, value_at(facts, node.value, level), level, hops - 1)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("setdefault", "get"):
        return is_outside(facts, node.func.value, value_at(facts, node.func.value, level), level, hops - 1)
    return False


def _being_made(facts: ScriptFacts, node: ast.Name) -> bool:
    """Whether a name is the first argument of a method that makes the object."""
    function = function_of(facts.source, node)
    given = [] if function is None else parameters(function)
    return bool(given) and given[0].arg == node.id and getattr(function, "name", "") in MAKERS


def _name_outside(facts: ScriptFacts, node: ast.Name, holder: Any, level: Level, hops: int) -> bool:
    source = facts.source
    function = function_of(facts.source, node)
    if function is None:
        return False
    owner = owner_of(facts, function, node.id)
    if owner is not function:
        return level_of(facts, owner) != level
    made = source.bound(node)
    if made is not None:
        again = isinstance(made, ast.Attribute | ast.Subscript | ast.Name | ast.Call)
        return again and is_outside(facts, made, value_at(facts, made, level), level, hops - 1)
    default = _default(function, node.id)
    if (
        default is not None
        and isinstance(default, ast.List | ast.Dict | ast.Set | ast.Call)
        and function in facts.traced_functions
    ):
        return not any(_gives(s, node.id) for s in facts.uses(holder) if s.node is not node)
    for seen in facts.uses(holder) if holder is not MISSING else ():
        other = seen.node
        if isinstance(other, ast.Name) and function_of(facts.source, other) is not function:
            scope = function_of(facts.source, other)
            if scope is None or owner_of(facts, scope, other.id) is not scope:
                return level_of(facts, None if scope is None else owner_of(facts, scope, other.id)) != level
            if source.bound(other) is not None:
                return level_of(facts, scope) != level
    return False


def _gives(seen: Seen, name: str) -> bool:
    return isinstance(seen.node, ast.Name) and seen.node.id != name


def _default(function: Function, name: str) -> ast.expr | None:
    args = function.args
    plain = [*args.posonlyargs, *args.args]
    pairs = dict(zip([a.arg for a in plain[len(plain) - len(args.defaults) :]], args.defaults, strict=True))
    pairs |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}
    return pairs.get(name)


def owner_of(facts: ScriptFacts, function: Function, name: str) -> Function | None:
    """The function whose name it is; None for the module's."""
    source = facts.source
    here: ast.AST = function
    while isinstance(here, FUNCTIONS):
        if _declares(facts, here, name, ast.Global):
            return None
        own = any(a.arg == name for a in parameters(here)) or any(_binds(n, name) for n in source.within(here))
        if own and not _declares(facts, here, name, ast.Nonlocal):
            return here
        here = source.scope(here)
    return None


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Store)
    return isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name


def _declares(
    facts: ScriptFacts, function: Function, name: str, kind: type[ast.AST] | tuple[type[ast.AST], ...]
) -> bool:
    found = (n for n in facts.source.within(function) if isinstance(n, kind))
    return any(name in getattr(n, "names", ()) for n in found)


def level_of(facts: ScriptFacts, owner: Function | None) -> Level:
    """In which trace the owner's own code ran first; the module's runs in none."""
    if owner is None:
        return MODULE
    body = [owner.body] if isinstance(owner, ast.Lambda) else owner.body  # decorators and defaults run outside of it
    parts = (part for statement in body for part in ast.walk(statement) if facts.source.scope(part) is owner)
    seen = [s for part in parts for s in facts.seen(part)[:1]]
    first = min(seen, key=lambda s: s.order, default=None)
    return MODULE if first is None else (first.traced, first.scan)


def beyond(facts: ScriptFacts, function: Function, target: ast.expr, level: Level) -> bool:
    """Whether a global or nonlocal name lives outside of the trace."""
    name = target.id if isinstance(target, ast.Name) else ""
    owner = owner_of(facts, function, name)
    return owner is not function and level_of(facts, owner) != level
