"""A print of a traced value as `jax.debug.print`: the same line at every step, with numbers in it."""

from __future__ import annotations

import ast
import string
from dataclasses import dataclass, field

from core.base.violation import TextEdit
from core.contract.p_text import Ink
from core.contract.p_traced import tracers_in
from core.contract.subject import MISSING

PRINT = "jax.debug.print"


@dataclass(slots=True, eq=False)
class Line:
    """A format with the values that go into it.

    Attributes:
        parts: pieces of the format: text as it stands (braces not doubled yet), or a field.
        values: by name, the expression of each field.
        fixed: expressions that are known while tracing and are written in by an f-string.
    """

    parts: list[tuple[str, str]] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    fixed: bool = False


def print_around(ink: Ink, node: ast.AST) -> list[TextEdit]:
    """The print that an expression stands in, as ``jax.debug.print``."""
    here: ast.AST | None = node
    while here is not None and not isinstance(here, ast.stmt):
        if isinstance(here, ast.Call) and isinstance(here.func, ast.Name) and here.func.id == "print":
            return debug_print(ink, here)
        here = ink.source.parents.get(here)
    return []


def debug_print(ink: Ink, call: ast.Call, *, ordered: bool = True) -> list[TextEdit]:
    """``print("c", c)`` as ``jax.debug.print("c {c}", c=c)``; nothing for a print into a file, or of ``*args``."""
    options = {k.arg: k.value for k in call.keywords}
    if set(options) - {"sep", "flush", "end"} or any(isinstance(a, ast.Starred) for a in call.args):
        return []
    between = options.get("sep", ast.Constant(" "))
    if not isinstance(between, ast.Constant) or not isinstance(between.value, str | None):
        return []
    line = Line()
    for i, arg in enumerate(call.args):
        if i:
            line.parts.append(("text", " " if between.value is None else str(between.value)))
        if not _add(ink, line, arg):
            return []
    if not line.values:
        return []
    fields = "".join(f", {name}={text}" for name, text in line.values.items())
    order = ", ordered=True" if ordered else ""
    return [ink.put(call, f"{ink.name(PRINT)}({_quoted(line)}{fields}{order})")]


def _add(ink: Ink, line: Line, node: ast.expr) -> bool:
    """One argument of a print; False for what cannot be written as a format."""
    if isinstance(node, ast.Constant):
        line.parts.append(("text", str(node.value)))
        return True
    if isinstance(node, ast.JoinedStr):
        return all(_piece(ink, line, piece) for piece in node.values)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _formatted(ink, line, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
        return _percent(ink, line, node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _add(ink, line, node.left) and _add(ink, line, node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr"):
        return len(node.args) == 1 and _add(ink, line, node.args[0])
    _value(ink, line, node, "")
    return True


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _value(ink: Ink, line: Line, node: ast.expr, spec: str) -> None:
    """A field: traced values go in at every step, what is known while tracing is written into the format."""
    value = ink.facts.value(node, MISSING)
    if value is not MISSING and not tracers_in(value) and not _traced_parts(ink, node):
        line.fixed = True
        line.parts.append(("fixed", f"{ink.argument(node)}{spec}"))
        return
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else "value"
    text = ink.argument(node)
    wanted = name
    number = 1
    while line.values.get(name, text) != text or name in ("fmt", "ordered", "partitioned"):
        number += 1
        name = f"{wanted}{number}"
    line.values[name] = text
    line.parts.append(("field", f"{name}{spec}"))


def _traced_parts(ink: Ink, node: ast.expr) -> bool:
    return isinstance(node, ast.Tuple | ast.List | ast.Dict) and any(
        tracers_in(ink.facts.value(n, MISSING)) for n in ast.walk(node) if isinstance(n, ast.expr)
    )


def _piece(ink: Ink, line: Line, piece: ast.expr) -> bool:
    if isinstance(piece, ast.Constant):
        line.parts.append(("text", str(piece.value)))
        return True
    if not isinstance(piece, ast.FormattedValue):
        return False
    spec = ""
    if piece.format_spec is not None:
        inner = piece.format_spec
        if not isinstance(inner, ast.JoinedStr) or not all(isinstance(v, ast.Constant) for v in inner.values):
            return False
        spec = ":" + "".join(str(v.value) for v in inner.values if isinstance(v, ast.Constant))
    _value(ink, line, piece.value, spec)
    return True


def _formatted(ink: Ink, line: Line, node: ast.Call) -> bool:
    """``"c = {:.2f}".format(c)``."""
    text = node.func.value if isinstance(node.func, ast.Attribute) else node.func
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return False
    named = {k.arg: k.value for k in node.keywords}
    count = 0
    for literal, name, spec, _ in string.Formatter().parse(text.value):
        line.parts.append(("text", literal))
        if name is None:
            continue
        if name == "":
            name, count = str(count), count + 1
        value = named.get(name)
        if name.isdecimal() and int(name) < len(node.args):
            value = node.args[int(name)]
        if value is None or (spec and "{" in spec):
            return False
        _value(ink, line, value, f":{spec}" if spec else "")
    return True


def _percent(ink: Ink, line: Line, node: ast.BinOp) -> bool:
    """``"c = %.2f" % c``."""
    text = str(node.left.value) if isinstance(node.left, ast.Constant) else ""
    given = list(node.right.elts) if isinstance(node.right, ast.Tuple) else [node.right]
    at = 0
    while at < len(text):
        if text[at] != "%":
            end = text.find("%", at)
            end = len(text) if end < 0 else end
            line.parts.append(("text", text[at:end]))
            at = end
            continue
        if text[at : at + 2] == "%%":
            line.parts.append(("text", "%"))
            at += 2
            continue
        end = at + 1
        while end < len(text) and not text[end].isalpha():
            end += 1
        if end >= len(text) or not given:
            return False
        kind, width = text[end], text[at + 1 : end]
        if kind not in "sdifgeFGEr" or "(" in width:
            return False
        spec = "" if kind in "sr" or (kind in "di" and not width) else f":{width}{'d' if kind == 'i' else kind}"
        _value(ink, line, given.pop(0), spec)
        at = end + 1
    return not given


def _quoted(line: Line) -> str:
    """The format as a literal; an f-string where something in it is known while tracing."""
    text = ""
    for kind, piece in line.parts:
        escaped = repr("'" + piece)[2:-1] if "'" not in piece else repr('"' + piece)[2:-1]
        if kind == "text":
            braces = escaped.replace("{", "{{").replace("}", "}}")
            text += braces.replace("{{", "{{{{").replace("}}", "}}}}") if line.fixed else braces
        elif kind == "field":
            text += f"{{{{{piece}}}}}" if line.fixed else f"{{{piece}}}"
        else:
            text += f"{{{piece}}}"
    mark = '"' if '"' not in text else "'" if "'" not in text else '"""'
    return f"{'f' if line.fixed else ''}{mark}{text}{mark}"
