"""A parsed script that can say where things stand: spans, bindings, what a step returns, public names behind aliases.

Everything is found in the syntax tree, nothing is run. Spans count lines from 1 and columns from 0, in characters.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Iterator
from functools import cached_property
from types import CodeType, FrameType
from typing import Any

from jax import tree_util

from core.base.places import Span

type Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: How many names are followed from one binding to the next.
HOPS = 8
#: Name of a script in its frames: what tells the learner's frames from JAX's and ours.
FILENAME = "<script>"
#: Public modules under other names; the longest match wins.
CANONICAL = {"flax.experimental.nnx": "flax.nnx"}


class Source:
    """A script's text with its tree.

    Raises:
        SyntaxError: the text does not parse.
    """

    def __init__(self, text: str, filename: str = FILENAME) -> None:
        self.text = text
        self.filename = filename
        self.lines = text.split("\n")  # as Python counts them: `splitlines` breaks at more than line feeds
        self.tree = ast.parse(text, filename)
        self._ascii = text.isascii()  # then a byte is a character
        #: Every node as `ast.walk` gives them, but marks that Python shares between nodes (``Load``, ``Add``), and parents.
        self.all_nodes, self.parents = _walked(self.tree)
        self._kinds: dict[tuple[type[ast.AST], ...], tuple[Any, ...]] = {}
        self._bound: dict[ast.Name, ast.expr | None] = {}
        self._dotted: dict[ast.expr, str | None] = {}
        self._calls = {(n.end_lineno, n.end_col_offset): n for n in self.nodes(ast.Call)}

    def nodes[N: ast.AST](self, *kinds: type[N]) -> tuple[N, ...]:
        """Every node of these kinds, in the order of `ast.walk`."""
        found = self._kinds.get(kinds)
        if found is None:
            found = self._kinds[kinds] = tuple(n for n in self.all_nodes if isinstance(n, kinds))
        return found

    # --- spans ------------------------------------------------------------------------------------------------------

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> Span:
        """The node's place (the AST counts UTF-8 bytes, a Span characters)."""
        end_line = node.end_lineno or node.lineno
        end_col = node.end_col_offset if node.end_col_offset is not None else node.col_offset
        return Span(node.lineno, self._chars(node.lineno, node.col_offset), end_line, self._chars(end_line, end_col))

    def head(self, function: Function) -> Span:
        """The first line of a definition: ``def step(carry, x):``; a lambda as a whole when it is on one line."""
        span = self.span(function)
        end = len(self.lines[span.line - 1]) if span.end_line > span.line else span.end_col
        return Span(span.line, span.col, span.line, end)

    def _chars(self, line: int, column: int) -> int:
        if self._ascii and 0 < line <= len(self.lines):
            return min(column, len(self.lines[line - 1]))
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        return len(text.encode()[:column].decode(errors="ignore"))

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        """The node as it is written."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    # --- nodes at places --------------------------------------------------------------------------------------------

    @cached_property
    def _expressions(self) -> dict[tuple[int, int, int, int], ast.expr]:
        """Expressions by their span; of several with one span (which Python does not write) the outermost."""
        out: dict[tuple[int, int, int, int], ast.expr] = {}
        for node in self.nodes(ast.expr):
            if node.end_lineno is not None and node.end_col_offset is not None:
                span = self.span(node)
                out.setdefault((span.line, span.col, span.end_line, span.end_col), node)
        return out

    def expression(self, span: Span) -> ast.expr | None:
        """The expression that takes up exactly this span."""
        return self._expressions.get((span.line, span.col, span.end_line, span.end_col))

    def at_frame(self, frame: FrameType, lasti: int | None = None) -> Span | None:
        """Where a frame of this script is: the smallest expression or statement that its instruction belongs to."""
        code, index = frame.f_code, frame.f_lasti if lasti is None else lasti
        if code.co_filename != self.filename:
            return None
        line, end_line, column, end_column = list(code.co_positions())[index // 2]
        if line is None or end_line is None or column is None or end_column is None:
            return None
        return Span(line, self._chars(line, column), end_line, self._chars(end_line, end_column))

    def call_at(self, frame: FrameType) -> ast.Call | None:
        """The call that this frame of the script is in: two calls never end at the same place."""
        positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
        return self._calls.get((positions[1], positions[3]))

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The innermost statement around a node (itself when it is one)."""
        here: ast.AST | None = node
        while here is not None and not isinstance(here, ast.stmt):
            here = self.parents.get(here)
        return here

    # --- scopes and bindings ----------------------------------------------------------------------------------------

    def scope(self, node: ast.AST) -> ast.AST:
        """The function, or the module, that a node stands in."""
        here = self.parents.get(node)
        while here is not None and not isinstance(here, (*FUNCTIONS, ast.Module)):
            here = self.parents.get(here)
        return here if here is not None else self.tree

    def enclosing(self, node: ast.AST) -> Iterator[Function]:
        """The functions around a node, innermost first."""
        here = self.scope(node)
        while isinstance(here, FUNCTIONS):
            yield here
            here = self.scope(here)

    def within(self, scope: ast.AST) -> Iterator[ast.AST]:
        """Nodes of a scope in order of their lines, without those of the functions in it."""
        yield from self._scopes.get(scope, ())

    @cached_property
    def _scopes(self) -> dict[ast.AST, list[ast.AST]]:
        out: dict[ast.AST, list[ast.AST]] = {}
        around: dict[ast.AST, ast.AST] = {}
        for node in self.all_nodes:
            parent = self.parents.get(node)
            if parent is not None:
                scope = parent if parent not in around or isinstance(parent, FUNCTIONS) else around[parent]
                around[node] = scope
                out.setdefault(scope, []).append(node)
        for nodes in out.values():
            nodes.sort(key=lambda n: (getattr(n, "lineno", 0), getattr(n, "col_offset", 0)))
        return out

    def bound(self, name: ast.Name) -> ast.expr | None:
        """The expression last assigned to a name before it is used here; None for a parameter or what is not assigned."""
        if name not in self._bound:
            self._bound[name] = self._last_bound(name)
        return self._bound[name]

    def _last_bound(self, name: ast.Name) -> ast.expr | None:
        scope, before = self.scope(name), name.lineno
        while True:
            found = [(line, value) for line, value in self.assigned(scope, name.id) if line <= before]
            inside = self.statement(name)
            found = [(line, value) for line, value in found if inside is None or self.statement(value) is not inside]
            if found:
                return found[-1][1]
            if isinstance(scope, FUNCTIONS) and any(a.arg == name.id for a in parameters(scope)):
                return None
            if isinstance(scope, ast.Module):
                return None
            scope, before = self.scope(scope), len(self.lines)

    def assigned(self, scope: ast.AST, name: str) -> Iterator[tuple[int, ast.expr]]:
        """Line and value of each assignment to a name in a scope, in order; of an unpacking, the part it gets."""
        yield from self._assignments.get(scope, {}).get(name, ())

    @cached_property
    def _assignments(self) -> dict[ast.AST, dict[str, list[tuple[int, ast.expr]]]]:
        out: dict[ast.AST, dict[str, list[tuple[int, ast.expr]]]] = {}
        for scope, nodes in self._scopes.items():
            found = out.setdefault(scope, {})
            for node in nodes:
                if isinstance(node, ast.Assign):
                    pairs = [(target, node.value) for target in node.targets]
                elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                    pairs = [(node.target, node.value)]
                else:
                    continue
                for target, value in pairs:
                    for name, part in _unpacked(target, value):
                        found.setdefault(name, []).append((node.lineno, part))
        return out

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
            inner = child_of(self.resolve(node), key)
            if inner is None:
                return node
            node = inner
        return node

    def whole_part(self, node: ast.expr, path: tuple[Any, ...]) -> ast.expr | None:
        """As `part`, but None unless the literals reach all the way down the path."""
        for key in path:
            inner = child_of(self.resolve(node), key)
            if inner is None:
                return None
            node = inner
        return node

    # --- functions --------------------------------------------------------------------------------------------------

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """Every definition and lambda."""
        return tuple(n for n in self.all_nodes if isinstance(n, FUNCTIONS))

    def function(self, step: Any) -> Function | None:
        """The definition of a Python function object, when it is in this script."""
        code = code_of(step)
        if code is None or code.co_filename != self.filename:
            return None
        found = [n for n in self.functions if _starts(n) == code.co_firstlineno]
        if len(found) > 1:
            spans = [p for p in code.co_positions() if (None not in p and p[0] != p[1]) or (p[3] or 0) > (p[2] or 0)]
            found = [n for n in found if all(_inside(n, p) for p in spans)] or found
        return found[-1] if found else None

    def returned(self, function: Function) -> ast.expr | None:
        """What a function returns: of several, the last in the source."""
        values = self.all_returned(function)
        return values[-1] if values else None

    def all_returned(self, function: Function) -> list[ast.expr]:
        """Every expression that a function returns, in order."""
        if isinstance(function, ast.Lambda):
            return [function.body]
        return [n.value for n in self.within(function) if isinstance(n, ast.Return) and n.value is not None]

    # --- public names -----------------------------------------------------------------------------------------------

    @cached_property
    def imports(self) -> dict[str, str]:
        """What each imported name stands for: ``{"jnp": "jax.numpy", "lax": "jax.lax"}``, wherever it is imported."""
        out: dict[str, str] = {}
        for node in self.nodes(ast.Import, ast.ImportFrom):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    top = alias.name.partition(".")[0]
                    out[alias.asname or top] = alias.name if alias.asname else top
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                out |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
        return out

    def dotted(self, node: ast.expr) -> str | None:
        """The public name that an expression spells, aliases and imports followed: ``jax.numpy.zeros``; else None.

        ``scan = jax.lax.scan`` is followed too. A name that a parameter or an assignment shadows is not an import.
        """
        if node not in self._dotted:
            self._dotted[node] = self._spelled(node)
        return self._dotted[node]

    def _spelled(self, node: ast.expr) -> str | None:
        parts: list[str] = []
        for _ in range(HOPS * 4):
            if isinstance(node, ast.Attribute):
                parts.append(node.attr)
                node = node.value
            elif isinstance(node, ast.Name):
                value = self.bound(node)
                if value is None:
                    known = self.imports.get(node.id)
                    if known is None or self._is_parameter(node):
                        return None
                    return _canonical(".".join([known, *reversed(parts)]))
                node = value
            else:
                return None
        return None

    def name_of(self, public: str) -> str | None:
        """How this script spells a public name (``jax.numpy`` as ``jnp``); None when it imports nothing that leads there."""
        best: str | None = None
        for alias, known in self.imports.items():
            if public == known or public.startswith(known + "."):
                spelled = alias + public[len(known) :]
                if best is None or len(spelled) < len(best):
                    best = spelled
        return best

    def is_builtin(self, name: str) -> bool:
        """Whether a name means one of Python's own: the script binds it nowhere."""
        return hasattr(builtins, name) and name not in self._given

    @cached_property
    def _given(self) -> frozenset[str]:
        """Every name that the script binds anywhere."""
        names = set(self.imports)
        for node in self.all_nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.arg):
                names.add(node.arg)
        return frozenset(names)

    def _is_parameter(self, node: ast.Name) -> bool:
        return any(a.arg == node.id for function in self.enclosing(node) for a in parameters(function))


#: Nodes that the parser makes once and hangs under many parents: they stand nowhere.
_SHARED = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)


def _walked(tree: ast.AST) -> tuple[tuple[ast.AST, ...], dict[ast.AST, ast.AST]]:
    """The nodes of a tree, level by level, and the parent of each."""
    nodes: list[ast.AST] = [tree]
    parents: dict[ast.AST, ast.AST] = {}
    for node in nodes:  # it grows meanwhile
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, _SHARED):
                parents[child] = node
                nodes.append(child)
    return tuple(nodes), parents


def code_of(step: Any) -> CodeType | None:
    """The code object of a function, partial, method, callable object or wrapped function; None for what has none."""
    while isinstance(step, functools.partial):
        step = step.func
    step = inspect.unwrap(step) if callable(step) else step
    if inspect.ismethod(step):
        step = step.__func__
    if not inspect.isfunction(step) and callable(step):
        call = type(step).__call__
        step = getattr(call, "__wrapped__", call)
    return getattr(step, "__code__", None)


def parameters(function: Function) -> list[ast.arg]:
    """All parameters of a function."""
    a = function.args
    return [*a.posonlyargs, *a.args, *filter(None, (a.vararg,)), *a.kwonlyargs, *filter(None, (a.kwarg,))]


def child_of(node: ast.expr, key: Any) -> ast.expr | None:
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


def _canonical(name: str) -> str:
    for other, public in CANONICAL.items():
        if name == other or name.startswith(other + "."):
            return public + name[len(other) :]
    return name


def _starts(node: Function) -> int:
    decorators = getattr(node, "decorator_list", [])
    return int(min([node.lineno, *(d.lineno for d in decorators)]))


def _inside(node: Function, position: tuple[Any, ...]) -> bool:
    line, end_line, col, end_col = position
    if None in position:
        return True
    starts, ends = (node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset)
    return bool(starts <= (line, col) and (end_line, end_col) <= ends)


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Each name of a target with what it gets: its part of a tuple of the same length, else the whole value."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple | ast.List):
        literal = value if isinstance(value, ast.Tuple | ast.List) else None
        same = literal is not None and len(literal.elts) == len(target.elts)
        for i, part in enumerate(target.elts):
            yield from _unpacked(part, literal.elts[i] if same and literal is not None else value)
