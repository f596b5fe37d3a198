"""The parts of the transformer that every rule of the language uses: places, refusals, and reports to the probe."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from RestrictedPython.transformer import RestrictingNodeTransformer

from core.base.places import Span
from core.sandbox.refusals import Refusal
from core.sandbox.words import STRING_TYPES

#: What an assignment binds: a name, the names of a pattern, or nothing that can be shown.
type Target = str | tuple[Target, ...] | None


@dataclass(frozen=True, slots=True)
class Shown:
    """What an editor shows beside a line: the value of expression `number`, under the names it is bound to."""

    line: int
    number: int
    names: Target


class Reporting(RestrictingNodeTransformer):
    """A transformer that takes refusals down and numbers the expressions that report."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__([], [], {})
        self.lines = lines
        self.refusals: list[Refusal] = []
        self.spans: list[Span] = []
        self.shown: list[Shown] = []
        self._classes: list[str] = []
        self._quiet = 0

    def error(self, node: ast.AST, info: str) -> None:
        """Take a refusal down (the base class calls it too)."""
        self.refusals.append(Refusal(self.span(node), info))

    def warn(self, node: ast.AST, info: str) -> None:
        """The base class warns of unknown statements before it refuses them: the refusal is enough."""

    def span(self, node: ast.AST) -> Span:
        """The node's place in characters (the AST counts UTF-8 bytes)."""
        start = getattr(node, "lineno", 1)
        end = getattr(node, "end_lineno", None) or start
        col = self._chars(start, getattr(node, "col_offset", 0))
        return Span(start, col, end, self._chars(end, getattr(node, "end_col_offset", None) or 0))

    def _chars(self, line: int, offset: int) -> int:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))

    def _mangled(self, name: str) -> str:
        """A private name of a class as the compiler spells it: attributes become text here, which it leaves alone."""
        if not self._classes or not name.startswith("__") or name.endswith("__"):
            return name
        owner = self._classes[-1].lstrip("_")
        return f"_{owner}{name}" if owner else name

    def _call(self, guard: str, where: ast.AST, *args: ast.expr) -> ast.expr:
        place = _place(where)
        for arg in args:
            if "lineno" not in arg.__dict__:
                locate(arg, where)
        return ast.Call(ast.Name(guard, ast.Load(), **place), list(args), [], **place)

    def _report(self, node: ast.AST, out: ast.expr) -> ast.expr:
        if self._quiet:
            return out
        self.spans.append(self.span(node))
        return self._call("_probe_", node, ast.Constant(len(self.spans) - 1), out)

    def _shown(self, statement: ast.stmt, node: ast.expr, names: Target) -> ast.expr:
        """The visited value of a statement, reporting even when it is a display, and shown beside the line."""
        value: ast.expr = self.visit(node)
        number = number_of(value)
        if number is None:
            value = self._report(node, value)
            number = len(self.spans) - 1
        self.shown.append(Shown(statement.lineno, number, names))
        return value


def names_of(target: ast.expr) -> Target:
    """The names that an assignment's target binds."""
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Tuple | ast.List) and not any(isinstance(e, ast.Starred) for e in target.elts):
        return tuple(names_of(e) for e in target.elts)
    return ast.unparse(target) if isinstance(target, ast.Attribute) else None


def header_of(node: ast.FunctionDef) -> ast.AST:
    """The head of a definition as one place: from its `def` to the end of its last argument."""
    arguments = [part for part in ast.walk(node.args) if isinstance(part, ast.arg)]
    last = max(arguments, key=lambda a: (a.end_lineno or 0, a.end_col_offset or 0))
    head = ast.copy_location(ast.Constant(None), node)
    head.end_lineno, head.end_col_offset = last.end_lineno, last.end_col_offset
    return head


def number_of(value: ast.expr) -> int | None:
    """The number under which an expression reports already."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "_probe_":
        number = value.args[0]
        return number.value if isinstance(number, ast.Constant) and isinstance(number.value, int) else None
    return None


def evaluated(node: ast.expr) -> Iterator[ast.AST]:
    """The parts of an annotation, without the strings of ``Literal[…]`` and ``Annotated[…]``."""
    if isinstance(node, ast.Subscript):
        name = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", None)
        if name in STRING_TYPES:
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            kept = parts[:1] if name == "Annotated" else []
            for part in (node.value, *kept):
                yield from evaluated(part)
            return
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield from evaluated(child)


def locate[N: ast.AST](node: N, where: ast.AST) -> N:
    """Give a new node, and what is new inside it, the place of an old one."""
    place = _place(where)
    todo: list[ast.AST] = [node]
    while todo:
        part = todo.pop()
        here = part.__dict__
        if "lineno" not in here and "lineno" in part._attributes:
            here.update(place)
        elif part is not node and "lineno" in here:
            continue
        todo.extend(ast.iter_child_nodes(part))
    return node


def _place(where: ast.AST) -> dict[str, int]:
    here = where.__dict__
    return {k: here[k] for k in ("lineno", "col_offset", "end_lineno", "end_col_offset") if k in here}


def stored_names(tree: ast.Module) -> set[str]:
    """Every name that a script binds in any way."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
    return found
