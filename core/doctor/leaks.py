"""Tracers that outlived their traces: what of a script still holds one when it has ended, and what put it there."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Mapping
from typing import Any

import jax
import numpy as np
from flax import nnx

from core.base.limits import LIMITS
from core.contract.script_record import Leak, ScriptRecord, Seen
from core.contract.source import FUNCTIONS, Source

#: How deep containers are searched, and how many objects in all.
DEPTH, OBJECTS = 4, LIMITS["objects"].value
#: What leads nowhere, and is most of what there is.
PLAIN = (jax.Array, np.ndarray, str, int, float, type(None), types.BuiltinFunctionType)
#: Methods that put their argument into the container they are called on.
STORES = frozenset("append add insert extend update setdefault appendleft".split())


def leaks_of(record: ScriptRecord) -> tuple[Leak, ...]:
    """Every tracer that the script's global names still lead to. To be asked for outside of all traces but the run's own."""
    out = []
    seen: set[int] = set()
    for root, value in record.names.items():
        for path, tracer, holder, name in _tracers(value, root, root, None, 0, seen):
            if record.abstract and _alive(record, tracer):
                continue
            stored = _stored(record, tracer, holder, name)
            out.append(
                Leak(
                    path,
                    root,
                    tracer,
                    holder,
                    stored,
                    record.source.span(stored) if isinstance(stored, ast.expr | ast.stmt) else None,
                    next((s for s in record.seen if s.value is tracer), None),
                    _used(record, tracer),
                )
            )
    return tuple(out)


def _alive(record: ScriptRecord, tracer: Any) -> bool:
    """Of an abstract run: whether the tracer belongs to the outer trace, where every value is one."""
    born = next((s for s in record.seen if s.value is tracer), None)
    return born is None or not born.traced


def _tracers(
    value: Any, path: str, name: str, holder: Any, depth: int, done: set[int]
) -> Iterator[tuple[str, Any, Any, str]]:
    """Path, tracer, container and the name it is bound to, for each tracer below a value."""
    if isinstance(value, jax.core.Tracer):
        yield path, value, holder, name
        return
    if isinstance(value, PLAIN) or depth > DEPTH or id(value) in done or len(done) > OBJECTS:
        return
    children = list(_children(value, path, name))
    if children:
        done.add(id(value))
    for child_path, child, child_name in children:
        inside = holder if isinstance(value, types.FunctionType | tuple) else value
        yield from _tracers(child, child_path, child_name, inside, depth + 1, done)


def _children(value: Any, path: str, name: str) -> Iterator[tuple[str, Any, str]]:
    if isinstance(value, Mapping):
        yield from ((f"{path}[{k!r}]", v, name) for k, v in list(value.items()))
    elif isinstance(value, list | tuple):
        yield from ((f"{path}[{i}]", v, name) for i, v in enumerate(value))
    elif isinstance(value, set | frozenset):
        yield from ((path, v, name) for v in value)
    elif isinstance(value, types.FunctionType):
        names = value.__code__.co_freevars
        for free, cell in zip(names, value.__closure__ or (), strict=False):
            try:
                yield free, cell.cell_contents, free
            except ValueError:
                continue
    elif isinstance(value, nnx.Variable):
        yield path, value.get_raw_value(), name
    elif isinstance(value, nnx.Module) or type(value).__module__ == "__main__":
        yield from ((f"{path}.{k}", v, name) for k, v in list(getattr(value, "__dict__", {}).items()))


def _used(record: ScriptRecord, tracer: Any) -> Seen | None:
    """The first expression outside every trace that gave the dead tracer."""
    return next((s for s in record.seen if s.value is tracer and s.scan is None and not s.traced), None)


def _stored(record: ScriptRecord, tracer: Any, holder: Any, name: str) -> ast.AST | None:
    """The expression or statement that stored it: a call of the container's method, or an assignment."""
    source = record.source
    if holder is None:
        return _rebound(source, name)
    for call in record.calls:
        method = call.node.func.attr if isinstance(call.node.func, ast.Attribute) else ""
        if call.receiver is holder and method in STORES and _holds((call.args, call.kwargs), tracer):
            return call.node
    values = {id(s.node): s.value for s in record.seen}
    for node in source.nodes(ast.stmt):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        for target in targets:
            if isinstance(target, ast.Subscript | ast.Attribute) and _is_holder(values.get(id(target.value)), holder):
                return node
    return None


def _is_holder(value: Any, holder: Any) -> bool:
    return value is holder or getattr(value, "__dict__", None) is holder


def _rebound(source: Source, name: str) -> ast.AST | None:
    """The assignment in a function that declares the name global or nonlocal."""
    for node in source.nodes(ast.stmt):
        if isinstance(node, ast.Global | ast.Nonlocal) and name in node.names:
            scope = source.scope(node)
            if isinstance(scope, FUNCTIONS):
                found: list[ast.AST] = [value for _, value in source.assigned(scope, name)]
                found += [n for n in source.within(scope) if isinstance(n, ast.AugAssign) and _names(n.target, name)]
                if found:
                    return source.statement(found[-1])
    return None


def _names(target: ast.expr, name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _holds(args: Any, tracer: Any) -> bool:
    return any(leaf is tracer for leaf in jax.tree_util.tree_leaves(args))
