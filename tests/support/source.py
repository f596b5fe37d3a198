"""Where things stand in a script's source: spans of calls and their arguments, of bindings, of what a step returns."""

from __future__ import annotations

import ast
import functools
import inspect
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any

from jax import tree_util

from core.base.places import Span

type Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: How many names are followed from one binding to the next.
HOPS = 8


class Source:
    """A parsed script that can say where an expression stands."""

    def __init__(self, text: str, filename: str) -> None:
        self.filename = filename
        self.lines = text.splitlines()
        self.tree = ast.parse(text, filename)
        self.parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        self._calls = {(n.end_lineno, n.end_col_offset): n for n in ast.walk(self.tree) if isinstance(n, ast.Call)}

    def span(self, node: ast.expr | ast.stmt) -> Span:
        """Lines from 1, columns from 0 in characters (the AST counts UTF-8 bytes)."""
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = self._chars(node.lineno, node.col_offset)
        return Span(node.lineno, start, node.end_lineno, self._chars(node.end_lineno, node.end_col_offset))

    def _chars(self, line: int, column: int) -> int:
        return len(self.lines[line - 1].encode()[:column].decode())

    def call_at(self, frame: FrameType) -> ast.Call | None:
        """The call that this frame of the script is in: two calls never end at the same place."""
        positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        return self._calls.get((positions[1], positions[3]))

    # --- bindings ---------------------------------------------------------------------------------------------------

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, or the module, that a node stands in."""
        here = self.parents.get(node)
        while here is not None and not isinstance(here, (*FUNCTIONS, ast.Module)):
            here = self.parents.get(here)
        return here if here is not None else self.tree

    def bound(self, name: ast.Name) -> ast.expr | None:
        """The expression last assigned to a name before its use here; None for a parameter or an unassigned name."""
        scope, before = self.scope(name), name.lineno
        while True:
            found = [(line, value) for line, value in self._assigned(scope, name.id) if line <= before]
            if found:
                return found[-1][1]
            if isinstance(scope, FUNCTIONS) and any(a.arg == name.id for a in _parameters(scope)):
                return None
            if isinstance(scope, ast.Module):
                return None
            scope, before = self.scope(scope), len(self.lines)

    def _assigned(self, scope: ast.AST, name: str) -> Iterator[tuple[int, ast.expr]]:
        for node in self._within(scope):
            if isinstance(node, ast.Assign):
                pairs = [(target, node.value) for target in node.targets]
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                pairs = [(node.target, node.value)]
            else:
                continue
            for target, value in pairs:
                yield from ((node.lineno, v) for n, v in _unpacked(target, value) if n == name)

    def _within(self, scope: ast.AST) -> Iterator[ast.AST]:
        """Nodes of a scope in order of their lines, without those of the functions in it."""
        nodes = [n for n in ast.walk(scope) if n is not scope and self.scope(n) is scope]
        yield from sorted(nodes, key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))

    def resolve(self, node: ast.expr) -> ast.expr:
        """What a name stands for, through one binding after another; the node itself when it is no name."""
        for _ in range(HOPS):
            value = self.bound(node) if isinstance(node, ast.Name) else None
            if value is None:
                return node
            node = value
        return node

    def part(self, node: ast.expr, path: tuple[Any, ...]) -> ast.expr:
        """The expression at a pytree path inside this one, as deep as literals say."""
        for key in path:
            inner = _child(self.resolve(node), key)
            if inner is None:
                return node
            node = inner
        return node

    # --- functions --------------------------------------------------------------------------------------------------

    def function(self, step: Any) -> Function | None:
        """The definition of a step, when it is in this script."""
        code = _code(step)
        if code is None or code.co_filename != self.filename:
            return None
        found = [n for n in ast.walk(self.tree) if isinstance(n, FUNCTIONS) and _starts(n) == code.co_firstlineno]
        if len(found) > 1:
            spans = [p for p in code.co_positions() if (None not in p and p[0] != p[1]) or (p[3] or 0) > (p[2] or 0)]
            found = [n for n in found if all(_inside(n, p) for p in spans)] or found
        return found[-1] if found else None

    def returned(self, function: Function) -> ast.expr | None:
        """What a function returns: of several, the last in the source."""
        if isinstance(function, ast.Lambda):
            return function.body
        values = [n.value for n in self._within(function) if isinstance(n, ast.Return) and n.value is not None]
        return values[-1] if values else None


def _code(step: Any) -> CodeType | None:
    while isinstance(step, functools.partial):
        step = step.func
    step = inspect.unwrap(step) if callable(step) else step
    if inspect.ismethod(step):
        step = step.__func__
    if not inspect.isfunction(step) and callable(step):
        call = type(step).__call__
        step = getattr(call, "__wrapped__", call)
    return getattr(step, "__code__", None)


def _starts(node: Function) -> int:
    decorators = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def _inside(node: Function, position: tuple[Any, ...]) -> bool:
    line, end_line, col, end_col = position
    if None in position:
        return True
    starts, ends = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return starts <= (line, col) and (end_line, end_col) <= ends


def _parameters(function: Function) -> list[ast.arg]:
    a = function.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg))]


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Each name of a target with what it gets: its part of a tuple of the same length, else the whole value."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
        for i, part in enumerate(target.elts):
            yield from _unpacked(part, value.elts[i] if same else value)  # type: ignore[attr-defined]


def _child(node: ast.expr, key: Any) -> ast.expr | None:
    """The part of a literal, or of a call with keywords, that one pytree key names."""
    if isinstance(key, tree_util.SequenceKey) and isinstance(node, ast.Tuple | ast.List):
        plain = not any(isinstance(e, ast.Starred) for e in node.elts)
        return node.elts[key.idx] if plain and key.idx < len(node.elts) else None
    name = key.key if isinstance(key, tree_util.DictKey) else getattr(key, "name", None)
    if isinstance(node, ast.Dict):
        keys = [k.value if isinstance(k, ast.Constant) else None for k in node.keys]
        return node.values[keys.index(name)] if name in keys else None
    if isinstance(node, ast.Call):
        return next((k.value for k in node.keywords if k.arg is not None and k.arg == name), None)
    return None
