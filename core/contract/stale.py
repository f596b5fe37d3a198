"""Values that a cached trace keeps: what a function read when it was traced, and what that name stood for at a later call.

`jax.jit` keeps a function's program by the types of its arguments, `lax.scan` keeps its step's; a name that the
function reads from outside is a constant of that program. Found here: a call that was not traced anew (none of the
function's expressions was evaluated in it), although a name that its trace read had been bound to another value.
"""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.avals import aval_of
from core.contract.jitted import wraps_jitted
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScanSite
from core.contract.source import FUNCTIONS, Function, parameters
from core.contract.subject import MISSING
from core.contract.trace import same_structure

#: What ``name op= value`` does.
OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
}


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """One call that a cached program may answer: of a jitted function, or of a scan over a step.

    Attributes:
        start, end: running numbers between which its Python ran, if it did.
        key: of what JAX keeps the program by, as far as it matters here.
        node: the call.
        called: its record, of a jitted function; None for a scan.
        scan: the scan; None for a jitted function.
    """

    start: int
    end: int
    key: Any
    node: ast.Call
    called: Called | None = None
    scan: ScanSite | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Stale:
    """A call that computed with a value that was not there any more.

    Attributes:
        function: that reads it.
        read: the expression in it: a name, an item or an attribute of something outside.
        old, new: its value when the function was traced, and at the call.
        bound: the statement that gave the new value.
        use: the call.
    """

    function: Function
    read: ast.expr
    old: Any
    new: Any
    bound: ast.stmt
    use: Use


@dataclass(frozen=True, slots=True, eq=False)
class _Binding:
    """A statement that binds what is read, at a running number; `value` is MISSING where it is not known."""

    order: float
    value: Any
    statement: ast.stmt


def stale(facts: ScriptFacts) -> Iterator[Stale]:
    """The last stale call for each expression that a traced function reads from outside."""
    for function in facts.traced_functions:
        uses = list(_uses(facts, function))
        if len(uses) < 2:
            continue
        for read in _reads(facts, function):
            found = list(_of(facts, function, read, uses))
            yield from found[-1:]


def _of(facts: ScriptFacts, function: Function, read: ast.expr, uses: list[Use]) -> Iterator[Stale]:
    traced = [seen for seen in facts.seen(read) if seen.traced]
    bindings: list[_Binding] | None = None
    kept: dict[Any, Any] = {}
    for use in uses:
        fresh = [seen.value for seen in traced if use.start < seen.order < use.end]
        if fresh:
            kept[use.key] = fresh[-1]
            continue
        if use.key not in kept or not _differ(kept[use.key], _cell(read, use)):
            continue
        bindings = _bindings(facts, function, read) if bindings is None else bindings
        before = [b for b in bindings if b.order < use.start]
        if before and before[-1].value is not MISSING and _differ(kept[use.key], before[-1].value):
            yield Stale(function, read, kept[use.key], before[-1].value, before[-1].statement, use)


def _cell(read: ast.expr, use: Use) -> Any:
    """What the very function that was called has for a name of a function around it; MISSING for any other read.

    A factory makes many functions of one definition: what it bound for the others is nothing to this one.
    """
    func = use.called.func if use.called is not None else use.scan.call.step if use.scan is not None else None
    inner = inspect.unwrap(func) if callable(func) else None
    free = getattr(getattr(inner, "__code__", None), "co_freevars", ())
    if not isinstance(read, ast.Name) or read.id not in free:
        return MISSING
    try:
        return inner.__closure__[free.index(read.id)].cell_contents  # type: ignore[union-attr]
    except ValueError:
        return MISSING


# --- calls ----------------------------------------------------------------------------------------------------------


def _uses(facts: ScriptFacts, function: Function) -> Iterator[Use]:
    """The calls of a function that went well and that JAX may have answered from what it kept, in order."""
    found: list[Use] = []
    for call in facts.record.calls:
        if call.traced or call.result is MISSING or not wraps_jitted(call.func):
            continue
        if facts.source.function(call.func) is function:
            starts = [s.order for s in facts.seen(call.node.func) if s.order < call.order]
            if starts:
                found.append(Use(starts[-1], call.order, _key((call.args, dict(call.kwargs))), call.node, called=call))
    for site in facts.scans:
        if site.step is function and not site.traced and site.result is not None and site.node is not None:
            ends = [c.order for c in facts.calls_at(site.node) if c.order > site.order]
            if ends:
                key = ("scan", id(site.call.step), _key((site.call.init, site.call.xs, site.call.length)))
                found.append(Use(site.order, ends[0], key, site.node, scan=site))
    yield from sorted(found, key=lambda use: use.start)


def _key(given: Any) -> Any:
    leaves, tree = tree_util.tree_flatten(given)
    return tree, tuple(str(aval_of(v)) if aval_of(v) is not None else repr(v) for v in leaves)


# --- reads ----------------------------------------------------------------------------------------------------------


def _reads(facts: ScriptFacts, function: Function) -> Iterator[ast.expr]:
    """The names that a function reads from outside, and items and attributes of such names; each once, by its text."""
    done: set[str] = set()
    for node in ast.walk(function):
        if not isinstance(node, ast.Name | ast.Attribute | ast.Subscript) or not isinstance(node.ctx, ast.Load):
            continue
        root: ast.expr = node
        while isinstance(root, ast.Attribute | ast.Subscript):
            root = root.value
        plain = isinstance(node, ast.Name | ast.Attribute) or isinstance(node.slice, ast.Constant)
        if not isinstance(root, ast.Name) or not plain or root.id in facts.source.imports:
            continue
        text = ast.unparse(node)
        if text not in done and _outside(facts, function, root, anywhere=isinstance(node, ast.Name)):
            done.add(text)
            yield node


def _outside(facts: ScriptFacts, function: Function, name: ast.Name, *, anywhere: bool) -> bool:
    """Whether a name in a function is bound outside of it: anywhere, or by the module itself."""
    scope = facts.source.scope(name)
    while isinstance(scope, FUNCTIONS):
        declared = any(
            isinstance(n, ast.Global | ast.Nonlocal) and name.id in n.names for n in facts.source.within(scope)
        )
        if not declared and (any(a.arg == name.id for a in parameters(scope)) or _stores(facts, scope, name.id)):
            return False
        if scope is function and anywhere:
            return True
        scope = facts.source.scope(scope)
    return not anywhere


def _stores(facts: ScriptFacts, scope: ast.AST, name: str) -> bool:
    nodes = facts.source.within(scope)
    return any(isinstance(n, ast.Name) and n.id == name and not isinstance(n.ctx, ast.Load) for n in nodes)


# --- bindings -------------------------------------------------------------------------------------------------------


def _bindings(facts: ScriptFacts, function: Function, read: ast.expr) -> list[_Binding]:
    """Each time that what is read was bound outside the function, in order."""
    text, out = ast.unparse(read), list[_Binding]()
    inside = set(ast.walk(function))
    for node in ast.walk(facts.source.tree):
        if node in inside:
            continue
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                out += _assigned(facts, node, target, node.value, text)
        elif isinstance(node, ast.AugAssign) and ast.unparse(node.target) == text:
            out += _times(facts, node, node.value, lambda _: MISSING)
        elif isinstance(node, ast.For) and ast.unparse(node.target) == text:
            out += _looped(facts, node)
    out.sort(key=lambda b: b.order)
    return _added_up(facts, out, read)


def _assigned(
    facts: ScriptFacts, statement: ast.stmt, target: ast.expr, value: ast.expr, text: str
) -> Iterator[_Binding]:
    if ast.unparse(target) == text:
        yield from _times(facts, statement, value, lambda seen: seen)
    elif isinstance(target, ast.Tuple | ast.List):
        for i, part in enumerate(target.elts):
            if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
                yield from _assigned(facts, statement, part, value.elts[i], text)
            elif ast.unparse(part) == text:
                yield from _times(facts, statement, value, lambda _: MISSING)


def _times(facts: ScriptFacts, statement: ast.stmt, value: ast.expr, of: Callable[[Any], Any]) -> Iterator[_Binding]:
    """One binding for each evaluation of a value; of a constant, one where the statement stands."""
    for seen in facts.seen(value):
        yield _Binding(seen.order, of(seen.value), statement)
    if not facts.seen(value) and not _in_a_loop(facts, statement):
        order = _position(facts, statement)
        if order is not None:
            known = value.value if isinstance(value, ast.Constant) else _literal(value)
            yield _Binding(order, of(known), statement)


def _literal(node: ast.expr) -> Any:
    """A number or text as written (a list or dict is an object of its own, which may change: not known)."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return MISSING
    return value if isinstance(value, int | float | complex | str | tuple) else MISSING


def _items(node: ast.expr) -> list[Any]:
    """What a loop goes over, where that is a display of plain values."""
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return []
    return list(value) if isinstance(value, list | tuple) else []


def _in_a_loop(facts: ScriptFacts, node: ast.AST) -> bool:
    here = facts.source.parents.get(node)
    while here is not None and not isinstance(here, (*FUNCTIONS, ast.Module)):
        if isinstance(here, ast.For | ast.While):
            return True
        here = facts.source.parents.get(here)
    return False


def _position(facts: ScriptFacts, statement: ast.stmt) -> float | None:
    """When a statement of a scope that runs from top to bottom was carried out: behind all that stands before it there."""
    scope = facts.source.scope(statement)
    before = [n for n in facts.source.within(scope) if isinstance(n, ast.expr) and n.lineno < statement.lineno]
    orders = [seen.order for node in before for seen in facts.seen(node)]
    return max(orders) + 0.5 if orders else 0.0


def _looped(facts: ScriptFacts, loop: ast.For) -> Iterator[_Binding]:
    """``for name in values``: one binding for each round, told by what its body evaluates first."""
    values = facts.value(loop.iter, MISSING)
    values = _items(loop.iter) if values is MISSING else values
    items = list(values) if isinstance(values, list | tuple | range) else []
    items = list(values) if isinstance(values, np.ndarray | jax.Array) and np.ndim(values) else items
    first = next((n for n in _in_order(loop.body) if facts.seen(n)), None)
    if first is None:
        return
    for item, seen in zip(items, facts.seen(first), strict=False):
        yield _Binding(seen.order - 0.5, item, loop)


def _in_order(body: list[ast.stmt]) -> Iterator[ast.expr]:
    """The expressions of some statements in the order in which Python finishes them."""
    for statement in body:
        yield from _inner_first(statement)


def _inner_first(node: ast.AST) -> Iterator[ast.expr]:
    if isinstance(node, FUNCTIONS):
        return
    for child in ast.iter_child_nodes(node):
        yield from _inner_first(child)
    if isinstance(node, ast.expr):
        yield node


def _added_up(facts: ScriptFacts, bindings: list[_Binding], read: ast.expr) -> list[_Binding]:
    """``name op= value`` worked out from what the name was before."""
    out: list[_Binding] = []
    for one in bindings:
        value = one.value
        if value is MISSING and isinstance(one.statement, ast.AugAssign) and out and out[-1].value is not MISSING:
            value = _operated(facts, one.statement, out[-1].value)
        out.append(_Binding(one.order, value, one.statement))
    last = out[-1] if out else None
    if last is not None and last.value is MISSING and isinstance(read, ast.Name):
        final = facts.names.get(read.id, MISSING)
        out[-1] = _Binding(last.order, final, last.statement)
    return out


def _operated(facts: ScriptFacts, statement: ast.AugAssign, before: Any) -> Any:
    other = facts.value(statement.value, MISSING)
    work = OPERATORS.get(type(statement.op))
    numbers = all(isinstance(v, int | float | complex | np.ndarray | jax.Array) for v in (before, other))
    return work(before, other) if work is not None and numbers else MISSING


def _differ(one: Any, other: Any) -> bool:
    """Whether two values are different ones; arrays and numbers by what they hold."""
    if one is other:
        return False
    if not same_structure(one, other):
        return True
    pairs = zip(tree_util.tree_leaves(one), tree_util.tree_leaves(other), strict=True)
    return any(_leaf_differs(a, b) for a, b in pairs)


def _leaf_differs(one: Any, other: Any) -> bool:
    if isinstance(one, jax.core.Tracer) or isinstance(other, jax.core.Tracer):
        return False
    if aval_of(one) is not None and aval_of(other) is not None:
        concrete = not isinstance(one, jax.ShapeDtypeStruct) and not isinstance(other, jax.ShapeDtypeStruct)
        return concrete and not np.array_equal(np.asarray(one), np.asarray(other), equal_nan=_floats(one, other))
    return one is not other and one != other


def _floats(*values: Any) -> bool:
    return all(np.asarray(v).dtype.kind in "fc" for v in values)
