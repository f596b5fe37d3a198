"""What traced code does to the Python world around it: stores into outer containers and names, counters, prints.

An effect is found where it happened: the call or assignment ran while something was being traced, and what it stored
is traced, or it counts. Who owns the container decides whether it is an effect at all: a list that a step makes for
itself is the step's own business.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flax import nnx

from core.contract.p_owners import Level, beyond, declared_outside, is_outside, value_at
from core.contract.p_text import function_of, walk_here
from core.contract.p_traced import Tracer, from_outside, tracers_in
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, Seen
from core.contract.source import Function
from core.contract.subject import MISSING

#: Methods that put their arguments into the container they are called on, by the container's kind.
STORES: dict[type[Any], frozenset[str]] = {
    list: frozenset("append extend insert".split()),
    deque: frozenset("append extend appendleft extendleft insert".split()),
    dict: frozenset("update setdefault".split()),
    set: frozenset("add update".split()),
}
#: What shows values to a person, by public name.
SHOWS = frozenset(
    "builtins.print pprint.pprint pprint.pp logging.info logging.debug logging.warning logging.error".split()
)
COUNTS = (ast.Add, ast.Sub, ast.Mult)


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """One statement or call with an effect.

    Attributes:
        kind: ``store`` (a method of a container), ``item``, ``attribute``, ``name``, ``print``, ``count``, ``cached``.
        node: the call, or the target that is written.
        statement: around it.
        function: the one it stands in.
        holder: the expression of what is changed (``log``, ``self.last``); None for a print.
        value: the expression that is stored or printed, where there is one.
        values: the traced values that were stored.
        scan: index of the scan in whose step it ran; None in other traces.
        order: of its first traced run.
        times: how often it ran in that scan (in all, outside of scans).
        eager: whether the very same code also ran without being traced.
    """

    kind: str
    node: ast.expr
    statement: ast.stmt
    function: Function
    holder: ast.expr | None
    value: ast.expr | None
    values: tuple[Any, ...] = field(default=(), repr=False)
    scan: int | None = None
    order: int = 0
    times: int = 1
    eager: bool = False


def effects_of(facts: ScriptFacts) -> tuple[Effect, ...]:
    """Every effect of traced code, in the order of the text."""
    found = [*_stores(facts), *_assignments(facts), *_prints(facts), *_cached(facts)]
    return tuple(sorted(found, key=lambda e: (e.node.lineno, e.node.col_offset)))


def path_of(facts: ScriptFacts, effect: Effect) -> str:
    """How the script reaches what is changed (``key``, ``self.key``, ``log``): a fault of that key is the same one."""
    return facts.source.text_of(effect.node if effect.holder is None else effect.holder)


# --- calls ----------------------------------------------------------------------------------------------------------


def _stores(facts: ScriptFacts) -> Iterator[Effect]:
    for node in facts.nodes(ast.Call):
        function, method = function_of(facts.source, node), node.func
        if function is None or not isinstance(method, ast.Attribute):
            continue
        runs = [c for c in facts.calls_at(node) if c.traced]
        done = [(c, v) for c in runs if _stores_by(c, method.attr) and (v := _leaked(facts, c))]
        if not done or not is_outside(facts, method.value, done[0][0].receiver, _level(done[0][0])):
            continue
        value = node.args[-1] if node.args else node.keywords[0].value if node.keywords else None
        yield _effect(facts, "store", node, function, method.value, value, done[0][0], done)


def _stores_by(call: Called, method: str) -> bool:
    return any(isinstance(call.receiver, kind) and method in methods for kind, methods in STORES.items())


def _leaked(facts: ScriptFacts, call: Called) -> list[Any]:
    """The traced values among a call's arguments that were made in the trace that the call is in."""
    return of_trace(facts, (call.args, dict(call.kwargs)), _level(call))


def of_trace(facts: ScriptFacts, value: Any, level: Level) -> list[Any]:
    """The tracers of a value that belong to this level of tracing: those from further out live on."""
    out = []
    for tracer in tracers_in(value):
        born = facts.born(tracer)
        if from_outside(facts, tracer) or (
            born is not None and (born.traced, born.scan) != level and born.scan != level[1]
        ):
            continue
        out.append(tracer)
    return out


def _prints(facts: ScriptFacts) -> Iterator[Effect]:
    for node in facts.nodes(ast.Call):
        function = function_of(facts.source, node)
        runs = [c for c in facts.calls_at(node) if c.traced and c.name in SHOWS]
        if function is None or not runs:
            continue
        shown = [arg for arg in node.args if shows_traced(facts, arg)]
        if shown:
            done: list[tuple[Called, list[Any]]] = [(c, []) for c in runs]
            yield _effect(facts, "print", node, function, None, shown[0], runs[0], done)


def shows_traced(facts: ScriptFacts, node: ast.expr, hops: int = 4) -> bool:
    """Whether a printed expression is, or spells out, something traced; a shape or a dtype is not."""
    value = facts.value(node, MISSING)
    if tracers_in(value):
        return not all(from_outside(facts, t) for t in tracers_in(value))
    if isinstance(node, ast.JoinedStr):
        return any(shows_traced(facts, v.value, hops) for v in node.values if isinstance(v, ast.FormattedValue))
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(shows_traced(facts, e, hops) for e in node.elts)
    if isinstance(node, ast.Dict):
        return any(shows_traced(facts, e, hops) for e in node.values)
    if not isinstance(value, str):
        return False
    if isinstance(node, ast.Call):
        spelled = isinstance(node.func, ast.Attribute) and node.func.attr in ("format", "join")
        plain = isinstance(node.func, ast.Name) and node.func.id in ("str", "repr", "format")
        given = [*node.args, *(k.value for k in node.keywords)]
        return (spelled or plain) and any(shows_traced(facts, a, hops) for a in given)
    if isinstance(node, ast.BinOp):
        return shows_traced(facts, node.left, hops) or shows_traced(facts, node.right, hops)
    if isinstance(node, ast.Name) and hops:
        made = facts.source.bound(node)
        return made is not None and shows_traced(facts, made, hops - 1)
    return False


def _cached(facts: ScriptFacts) -> Iterator[Effect]:
    """Calls of a memoised function that gave something traced, and gave it again outside of that trace."""
    first: dict[int, Called] = {}
    for call in facts.record.calls:
        if not hasattr(call.func, "cache_info") or not tracers_in(call.result):
            continue
        for tracer in tracers_in(call.result):
            made = first.setdefault(id(tracer), call)
            function = function_of(facts.source, made.node)
            if _level(made) != _level(call) and function is not None:
                yield _effect(facts, "cached", made.node, function, made.node.func, made.node, made, [(made, [tracer])])
                return


# --- assignments ----------------------------------------------------------------------------------------------------


def _assignments(facts: ScriptFacts) -> Iterator[Effect]:
    for statement in facts.nodes(ast.stmt):
        function = function_of(facts.source, statement)
        if function is None or not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign):
            continue
        for target, part in _targets(statement):
            kind = _kind(facts, function, target)
            runs = ran(facts, statement) if kind else []
            if kind and runs:
                yield from _written(facts, kind, statement, function, target, part, runs)


def _targets(statement: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each single target with the expression that it gets (or takes a part of)."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    value = statement.value
    for target in targets:
        if value is not None:
            yield from _paired(target, value)


def _paired(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple | ast.List):
        literal = value.elts if isinstance(value, ast.Tuple | ast.List) else []
        same = len(literal) == len(target.elts)
        for i, part in enumerate(target.elts):
            yield from _paired(part, literal[i] if same else value)
    elif isinstance(target, ast.Starred):
        yield from _paired(target.value, value)
    else:
        yield target, value


def _kind(facts: ScriptFacts, function: Function, target: ast.expr) -> str:
    if isinstance(target, ast.Name):
        return "name" if declared_outside(facts, function, target.id) else ""
    if isinstance(target, ast.Attribute):
        return "attribute"
    return "item" if isinstance(target, ast.Subscript) else ""


def _written(
    facts: ScriptFacts,
    kind: str,
    statement: ast.Assign | ast.AugAssign | ast.AnnAssign,
    function: Function,
    target: ast.expr,
    value: ast.expr,
    runs: list[Seen],
) -> Iterator[Effect]:
    level = (True, runs[0].scan)
    if kind != "name" and isinstance(target, ast.Attribute | ast.Subscript):
        holder = value_at(facts, target.value, level)
        if isinstance(holder, nnx.Variable | nnx.Module | np.ndarray | Tracer) or hasattr(holder, "at"):
            return  # Flax keeps track of its own state; arrays are P205's
        if not is_outside(facts, target.value, holder, level):
            return
    elif not beyond(facts, function, target, level):
        return
    given = [v for part in walk_here(value) if isinstance(part, ast.expr) for s in facts.seen(part)
             if s.traced and s.scan == level[1] for v in _of_value(facts, value, part, s, level)]  # fmt: skip
    counted = _counts(facts, statement, target, value)
    if not given and not counted:
        return
    made = "count" if not given else kind
    times = len({s.order for s in runs}) or 1
    eager = any(not s.traced for part in ast.walk(statement) for s in facts.seen(part))
    yield Effect(
        made, target, statement, function, target, value, tuple(given), runs[0].scan, runs[0].order, times, eager
    )


def _of_value(facts: ScriptFacts, value: ast.expr, part: ast.expr, seen: Seen, level: Level) -> list[Any]:
    """The traced values of an expression, or of the parts of a display, which are not recorded as a whole."""
    parents = facts.source.parents
    here: ast.AST = part
    while here is not value:
        above = parents.get(here)
        if not isinstance(above, ast.Tuple | ast.List | ast.Dict | ast.Set | ast.BoolOp | ast.IfExp):
            return []
        here = above
    return of_trace(facts, seen.value, level)


def _counts(facts: ScriptFacts, statement: ast.stmt, target: ast.expr, value: ast.expr) -> bool:
    """``n += 1`` and ``n = n + 1`` of plain Python numbers."""
    if isinstance(statement, ast.AugAssign):
        plain = isinstance(statement.op, COUNTS) and _is_number(facts, value)
        old = facts.value(target, MISSING)
        return plain and (old is MISSING or isinstance(old, int | float))
    if not isinstance(value, ast.BinOp) or not isinstance(value.op, COUNTS):
        return False
    spelled = ast.unparse(target)
    sides = [ast.unparse(value.left), ast.unparse(value.right)]
    return spelled in sides and isinstance(facts.value(value, MISSING), int | float)


def _is_number(facts: ScriptFacts, node: ast.expr) -> bool:
    return isinstance(facts.value(node, MISSING), int | float)


# --- how it ran -----------------------------------------------------------------------------------------------------


def ran(facts: ScriptFacts, statement: ast.stmt) -> list[Seen]:
    """One evaluation for each traced run of a statement: of the expression in it that ran first.

    ``n += 1`` has none of its own; then the statements beside it tell.
    """
    own = [n for n in walk_here(statement) if facts.seen(n)]
    if not own:
        parent = facts.source.parents.get(statement)
        beside = [s for name in ("body", "orelse", "finalbody") for s in (getattr(parent, name, None) or [])
                  if isinstance(getattr(parent, name, None), list)]  # fmt: skip
        if not any(s is statement for s in beside):
            return []
        own = [n for s in beside if isinstance(s, ast.stmt) for n in walk_here(s) if facts.seen(n)]
    for node in own:
        runs = [s for s in facts.seen(node) if s.traced]
        if runs:
            return [s for s in runs if s.scan == runs[0].scan]
    return []


def _effect(
    facts: ScriptFacts,
    kind: str,
    node: ast.Call,
    function: Function,
    holder: ast.expr | None,
    value: ast.expr | None,
    first: Called,
    done: list[tuple[Called, list[Any]]],
) -> Effect:
    statement = facts.source.statement(node) or ast.Expr(node)
    same = [c for c, _ in done if c.scan == first.scan]
    values = tuple(v for _, vs in done for v in vs)
    eager = any(not c.traced for c in facts.calls_at(node))
    return Effect(kind, node, statement, function, holder, value, values, first.scan, first.order, len(same), eager)


def _level(call: Called) -> Level:
    return call.traced, call.scan
