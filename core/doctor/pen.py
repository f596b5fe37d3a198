"""Writes small pieces of a learner's program: expressions wrapped, arguments set, in the names the script imports.

Everything here makes `TextEdit`s on the smallest expression; whether an edit is any good is found out by running the
edited script (see `fixes`), never by its looks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

import jax.numpy as jnp
import numpy as np

from core.base.places import Span
from core.base.violation import TextEdit
from core.contract.source import Function, Source

#: Expressions that take an attribute or a call behind them as they stand.
ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.List, ast.Dict, ast.Set, ast.ListComp, ast.JoinedStr)
#: Position of the dtype argument of what makes arrays.
MAKERS = {
    "zeros": 1, "ones": 1, "empty": 1, "full": 2, "array": 1, "asarray": 1, "zeros_like": 1, "ones_like": 1,
    "full_like": 2, "arange": 3, "eye": 3, "linspace": 5,
}  # fmt: skip
#: Those whose first argument is a shape.
SHAPED = frozenset({"zeros", "ones", "empty", "full"})
MODULES = ("jax.numpy", "numpy")
#: Arrays of at most this many elements are written out.
WRITTEN = 16


class Pen:
    """Edits one source. `imports` collects what the edits need and the script does not import."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.imports: dict[str, str] = {}

    # --- names ------------------------------------------------------------------------------------------------------

    def name(self, module: str, function: str) -> str:
        """A public function as this script would write it; its module is imported if it is not yet."""
        whole = self.source.name_of(f"{module}.{function}")
        if whole is not None:
            return whole
        alias = {"jax.numpy": "jnp", "flax.nnx": "nnx"}.get(module, module)
        self.imports[module] = f"import {module} as {alias}" if alias != module else f"import {module}"
        return f"{alias}.{function}"

    def jnp(self, function: str) -> str:
        """A name of `jax.numpy`."""
        return self.name("jax.numpy", function)

    def dtype(self, name: str) -> str:
        """A dtype by its name: ``jnp.float32``."""
        return self.jnp("bool_" if name == "bool" else name)

    def free(self, function: ast.AST, *wanted: str) -> list[str]:
        """Names like these that nothing in a function is called yet."""
        used = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
        used |= {a.arg for a in ast.walk(function) if isinstance(a, ast.arg)}
        out = []
        for name in wanted:
            while name in used:
                name += "_"
            used.add(name)
            out.append(name)
        return out

    # --- text -------------------------------------------------------------------------------------------------------

    def text(self, node: ast.expr) -> str:
        """The expression as it is written, in parentheses where commas would otherwise spill."""
        text = self.source.text_of(node)
        bare = isinstance(node, ast.Tuple) and not text.startswith("(")
        return f"({text})" if bare or isinstance(node, ast.NamedExpr | ast.Yield | ast.Lambda) else text

    def atom(self, node: ast.expr) -> str:
        """The expression, ready for a ``.method`` behind it."""
        text = self.text(node)
        plain = isinstance(node, ATOMS) or (text.startswith("(") and isinstance(node, ast.Tuple))
        return text if plain else f"({text})"

    def replace(self, node: ast.expr | ast.stmt | ast.keyword, text: str) -> TextEdit:
        """Put this text in the place of a node."""
        return TextEdit(self.source.span(node), text)

    def shape(self, shape: Iterable[int]) -> str:
        """A shape: ``(2, 4)``, ``(4,)``."""
        return repr(tuple(int(n) for n in shape))

    # --- calls ------------------------------------------------------------------------------------------------------

    def maker(self, node: ast.expr) -> str | None:
        """The function's name when the expression makes an array by jax.numpy or numpy (``zeros``); else None."""
        if not isinstance(node, ast.Call) or any(isinstance(a, ast.Starred) for a in node.args):
            return None
        module, _, name = (self.source.dotted(node.func) or "").rpartition(".")
        return name if module in MODULES else None

    def argument(self, call: ast.Call, position: int | None, keyword: str, text: str | None) -> list[TextEdit]:
        """Set one argument of a call, by position where it stands there, else by keyword; None takes it away.

        A positional argument before others cannot be taken away: it becomes None.
        """
        given = next((k for k in call.keywords if k.arg == keyword), None)
        if given is not None:
            if text is not None:
                return [self.replace(given.value, text)]
            return [TextEdit(self._with_comma(call, given), "")]
        if position is not None and position < len(call.args):
            if text is None and position == len(call.args) - 1 and not call.keywords and position > 0:
                return [TextEdit(self._with_comma(call, call.args[position]), "")]
            return [self.replace(call.args[position], "None" if text is None else text)]
        return [] if text is None else [self.append(call, f"{keyword}={text}")]

    def append(self, call: ast.Call, text: str) -> TextEdit:
        """One more argument at the end of a call."""
        inner: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        end = self.source.span(call)
        if not inner:
            close = Span(end.end_line, end.end_col - 1, end.end_line, end.end_col - 1)
            return TextEdit(close, text)
        last = max((self.source.span(n) for n in inner), key=lambda s: (s.end_line, s.end_col))
        return TextEdit(Span(last.end_line, last.end_col, last.end_line, last.end_col), f", {text}")

    def _with_comma(self, call: ast.Call, part: ast.expr | ast.keyword) -> Span:
        """The span of an argument with the comma before it (or, of the first one, behind it)."""
        span = self.source.span(part)
        inner: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        before = [self.source.span(n) for n in inner if n is not part]
        ends = [s for s in before if (s.end_line, s.end_col) <= (span.line, span.col)]
        if ends:
            last = max(ends, key=lambda s: (s.end_line, s.end_col))
            return Span(last.end_line, last.end_col, span.end_line, span.end_col)
        starts = [s for s in before if (s.line, s.col) >= (span.end_line, span.end_col)]
        if starts:
            first = min(starts, key=lambda s: (s.line, s.col))
            return Span(span.line, span.col, first.line, first.col)
        return span

    # --- values -----------------------------------------------------------------------------------------------------

    def array(self, value: Any) -> str | None:
        """An array of few numbers, or of one number repeated, written out; None for any other."""
        if isinstance(value, bool | int | float) or value is None:
            return repr(value)
        try:
            host = np.asarray(value)
            dtype = jnp.dtype(value.dtype)
        except (TypeError, AttributeError, ValueError):
            return None
        if host.dtype.kind not in "biuf" and dtype.name != "bfloat16":
            return None
        host = host.astype(np.float64) if dtype.name == "bfloat16" else host
        if host.size and (host == host.flat[0]).all():
            number = host.flat[0].item()
            default = {float: "float32"}.get(type(number))
            kind = "" if dtype.name == default else f", {self.dtype(dtype.name)}"
            if number in (0, 1) and not isinstance(number, bool):
                return f"{self.jnp('zeros' if number == 0 else 'ones')}({self.shape(host.shape)}{kind})"
            return f"{self.jnp('full')}({self.shape(host.shape)}, {number!r}{kind})"
        if host.size > WRITTEN or not np.isfinite(host).all():
            return None
        return f"{self.jnp('array')}({host.tolist()!r}, {self.dtype(dtype.name)})"

    def zeros(self, shape: tuple[int, ...], dtype: str) -> str:
        """Zeros of this type."""
        kind = "" if dtype == "float32" else f", {self.dtype(dtype)}"
        return f"{self.jnp('zeros')}({self.shape(shape)}{kind})"


def body_indent(source: Source, function: Function, node: ast.AST) -> str:
    """The indentation of the statement that a node is in."""
    statement = source.statement(node)
    line = source.lines[(statement.lineno if statement is not None else function.lineno) - 1]
    return line[: len(line) - len(line.lstrip())]


# --- edits of a text ------------------------------------------------------------------------------------------------


def offsets(text: str) -> list[int]:
    """Where each line begins, in characters; one more for the end."""
    out = [0]
    for line in text.split("\n"):
        out.append(out[-1] + len(line) + 1)
    return out


def position(starts: list[int], line: int, col: int) -> int:
    """The character that a line (from 1) and a column are at."""
    return starts[min(line - 1, len(starts) - 1)] + col


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str | None:
    """The text with all edits made; None when two of them overlap."""
    starts = offsets(text)
    spots = []
    for number, edit in enumerate(edits):
        begin = position(starts, edit.span.line, edit.span.col)
        end = position(starts, edit.span.end_line, edit.span.end_col)
        spots.append((begin, end, number, edit.text))
    spots.sort()
    out, at = [], 0
    for begin, end, _, new in spots:
        if begin < at:
            return None
        out += [text[at:begin], new]
        at = end
    return "".join([*out, text[at:]])


def merged(text: str, edits: tuple[TextEdit, ...]) -> TextEdit | None:
    """Several edits as the one that does the same; None when they overlap or there is none."""
    if not edits:
        return None
    if len(edits) == 1:
        return edits[0]
    first = min((e.span for e in edits), key=lambda s: (s.line, s.col))
    last = max((e.span for e in edits), key=lambda s: (s.end_line, s.end_col))
    whole = Span(first.line, first.col, last.end_line, last.end_col)
    new = apply_edits(text, edits)
    if new is None:
        return None
    starts = offsets(text)
    begin = position(starts, whole.line, whole.col)
    tail = len(text) - position(starts, whole.end_line, whole.end_col)
    return TextEdit(whole, new[begin : len(new) - tail])
