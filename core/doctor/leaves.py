"""Changes of one leaf of init, xs or a returned carry, as text: on the expression that makes it, or around it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Protocol

import jax.numpy as jnp
from jax import tree_util

from core.base.avals import aval_of, path_name
from core.base.violation import TextEdit
from core.contract import trees
from core.doctor.pen import MAKERS, SHAPED, Pen

DTYPES = frozenset(
    "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64".split()
)


class Change(Protocol):
    """What becomes of a leaf."""

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """An edit of the expression that makes it, the smallest there is; None when there is none better than `text`."""

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """An expression (`text`, ready for a method behind it), changed."""


@dataclass(frozen=True, slots=True)
class CastTo:
    """Another dtype, strongly."""

    dtype: str

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """``0`` becomes ``jnp.int32(0)``, ``jnp.zeros(2, int)`` gets another dtype argument."""
        wanted = pen.dtype(self.dtype)
        if is_number(node):
            return pen.replace(node, f"{wanted}({pen.text(node)})")
        if not isinstance(node, ast.Call):
            return None
        name = pen.maker(node)
        if name in MAKERS:
            (edit,) = pen.argument(node, MAKERS[name], "dtype", wanted)
            return edit
        if name in DTYPES:
            return pen.replace(node.func, wanted)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "astype" and len(node.args) == 1:
            return pen.replace(node.args[0], wanted)
        return None

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """``x.astype(jnp.float32)``, or ``jnp.asarray(x, jnp.float32)`` of what is no array."""
        wanted = pen.dtype(self.dtype)
        return f"{text}.astype({wanted})" if hasattr(value, "astype") else f"{pen.jnp('asarray')}({text}, {wanted})"


@dataclass(frozen=True, slots=True)
class Shaped:
    """Another shape: the same numbers, repeated or rearranged."""

    shape: tuple[int, ...]

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """``jnp.zeros(4)`` becomes ``jnp.zeros((2, 4))``, ``0.0`` becomes ``jnp.zeros((2, 4))``."""
        wanted = pen.shape(self.shape)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "initialize_carry":
            given = node.args[0] if node.args else None
            if not isinstance(given, ast.Tuple) or not given.elts:
                return None
            batch = "".join(f"{n}, " for n in self.shape[:-1])
            return pen.replace(given, f"({batch}{pen.text(given.elts[-1])}{'' if batch else ','})")
        if isinstance(node, ast.Call) and pen.maker(node) in SHAPED:
            edits = pen.argument(node, 0, "shape", wanted)
            return edits[0]
        number = constant(node)
        if number is not None and not isinstance(number, bool) and self.shape:
            text = f"{pen.jnp('zeros')}({wanted})" if number == 0.0 and isinstance(number, float) else None
            return pen.replace(node, text or f"{pen.jnp('full')}({wanted}, {pen.text(node)})")
        if isinstance(node, ast.Call) and pen.maker(node) in ("array", "asarray") and node.args:
            number = constant(node.args[0])
            if number is not None and self.shape:
                dtype = next((k for k in node.keywords if k.arg == "dtype"), None)
                kind = pen.text(dtype.value) if dtype else pen.text(node.args[1]) if len(node.args) > 1 else None
                rest = "" if kind is None else f", {kind}"
                return pen.replace(node, f"{pen.jnp('full')}({wanted}, {pen.text(node.args[0])}{rest})")
        return None

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """``jnp.reshape(x, shape)`` where the size stays, else ``jnp.broadcast_to(x, shape)``."""
        aval = aval_of(value)
        size = 1
        for n in self.shape:
            size *= n
        how = "reshape" if aval is not None and aval.size == size else "broadcast_to"
        return f"{pen.jnp(how)}({text}, {pen.shape(self.shape)})"


@dataclass(frozen=True, slots=True)
class Written:
    """Another value, written out; `text` is what stands for it."""

    new: str

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """The whole expression replaced."""
        return pen.replace(node, self.new)

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """The text itself."""
        return self.new


@dataclass(frozen=True, slots=True)
class Around:
    """Any other change: a template with ``{x}`` for the expression and ``{jnp}`` for the names of jax.numpy."""

    template: str

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """None: the template goes around it."""
        return None

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """The template with the expression put in."""
        out = self.template.replace("{x}", text)
        while "{jnp." in out:
            start = out.index("{jnp.")
            end = out.index("}", start)
            out = out[:start] + pen.jnp(out[start + 5 : end]) + out[end + 1 :]
        return out


def edit_node(pen: Pen, change: Change, node: ast.expr, value: Any) -> TextEdit:
    """The change made to an expression, in it or around it."""
    inside = change.node(pen, node, value)
    if inside is not None:
        return inside
    atom, bare = pen.atom(node), pen.text(node)
    text = change.text(pen, atom, value)
    if atom != bare:  # as an argument of a call it needs no parentheses of its own
        for end in ",)":
            text = text.replace(f"({atom}{end}", f"({bare}{end}")
    return pen.replace(node, text)


def is_number(node: ast.expr) -> bool:
    """Whether the expression is a number as written."""
    return constant(node) is not None


def constant(node: ast.expr) -> Any:
    """The number that is written there; None for anything else."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        sign = -1 if isinstance(node.op, ast.USub) else 1
        node = node.operand
    if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
        return node.value if sign == 1 else -node.value
    return None


# --- trees ----------------------------------------------------------------------------------------------------------


def rebuilt(pen: Pen, text: str, tree: Any, root: str, changes: dict[str, Change]) -> str | None:
    """An expression for the tree that `text` (a name, or as short) stands for, with some of its leaves changed.

    ``(init[0].astype(jnp.float32), init[1])``; None for containers that have no short way of being rebuilt.
    """
    if root in changes:
        return changes[root].text(pen, text, tree)
    if not any(path.startswith(root) for path in changes):
        return text
    node = trees.node_of(tree)
    parts: dict[Any, str] = {}
    for key, child in node.children.items():
        path = path_name(root, (key,))
        if any(p == path or p.startswith((path + "[", path + ".")) for p in changes):
            inner = rebuilt(pen, text + access(key), child, path, changes)
            if inner is None:
                return None
            parts[key] = inner
    return _container(tree, text, node.children, parts)


def access(key: Any) -> str:
    """How a child is reached in Python: ``[0]``, ``['a']``, ``.a``."""
    return tree_util.keystr((key,))


def _container(tree: Any, text: str, children: dict[Any, Any], parts: dict[Any, str]) -> str | None:
    if type(tree) in (tuple, list):
        inner = [parts.get(key, text + access(key)) for key in children]
        if isinstance(tree, list):
            return f"[{', '.join(inner)}]"
        return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
    if type(tree) is dict:
        return f"{{**{text}, {', '.join(f'{key.key!r}: {new}' for key, new in parts.items())}}}"
    if isinstance(tree, tuple) and hasattr(tree, "_replace"):
        return f"{text}._replace({', '.join(f'{key.name}={new}' for key, new in parts.items())})"
    return None


def written(pen: Pen, tree: Any, before: Any, node: ast.expr | None) -> str | None:
    """A new tree as text: what it has of `before` by the expressions in `node`, the rest written out."""
    if node is not None and tree is before:
        return pen.text(node)
    inner = trees.node_of(tree)
    if inner.kind is None or not inner.children:
        return _leaf(pen, tree)
    old = trees.node_of(before).children
    values = list(old.items())
    parts: list[str] = []
    for number, (key, child) in enumerate(inner.children.items()):
        match = old.get(key)
        was = values[number] if match is None and number < len(values) and type(tree) is not dict else (key, match)
        part = None if node is None else _child(pen, node, was[0])
        text = written(pen, child, was[1], part)
        if text is None:
            return None
        parts.append(text)
    if type(tree) is tuple:
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if type(tree) is list:
        return f"[{', '.join(parts)}]"
    if type(tree) is dict:
        return "{" + ", ".join(f"{key.key!r}: {text}" for key, text in zip(inner.children, parts, strict=True)) + "}"
    return None


def _child(pen: Pen, node: ast.expr, key: Any) -> ast.expr | None:
    return pen.source.whole_part(node, (key,))


def _leaf(pen: Pen, value: Any) -> str | None:
    if value is None:
        return "None"
    aval = aval_of(value)
    if aval is None or aval.dtype not in DTYPES | {"bool"}:
        return None
    if aval.shape == () and not isinstance(value, bool | int | float):
        number = jnp.asarray(value).item()
        if aval.dtype in ("float32", "bool"):
            return f"{pen.jnp('array')}({number!r})"
        return f"{pen.dtype(aval.dtype)}({number!r})"
    return pen.array(value)
