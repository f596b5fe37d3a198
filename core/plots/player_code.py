"""The code that the scan player shows: the Python loop that a scan stands for, and which name plays which role.

The loop is real code, not an illustration: the tests run it and compare it with `lax.scan`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Phase = Literal["init", "for", "step", "append", "done"]
#: What a pytree is, as far as the loop must be written differently for it: nothing, one array, or more.
Tree = Literal["none", "array", "tree"]

_INIT = {
    "array": ("carry, ys = jnp.asarray(init), []",),
    "tree": ("carry, ys = jax.tree.map(jnp.asarray, init), []",),
    "none": ("carry, ys = init, []",),
}
_FOR_FORWARD = {
    "array": ("for x in xs:",),
    "tree": ("for t in range({length}):", "    x = jax.tree.map(lambda leaf: leaf[t], xs)"),
    "none": ("for _ in range({length}):",),
}
_FOR_REVERSE = {
    "array": ("for x in xs[::-1]:",),
    "tree": ("for t in reversed(range({length})):", "    x = jax.tree.map(lambda leaf: leaf[t], xs)"),
    "none": ("for _ in range({length}):",),
}
_STEP = {
    "array": ("    carry, y = step(carry, x)",),
    "tree": ("    carry, y = step(carry, x)",),
    "none": ("    carry, y = step(carry, None)",),
}
_APPEND = ("    ys.append(y)",)
_DONE_FORWARD = {
    "array": ("final, ys = carry, jnp.stack(ys)",),
    "tree": ("final = carry", "ys = jax.tree.map(lambda *y: jnp.stack(y), *ys)"),
    "none": ("final, ys = carry, None",),
}
_DONE_REVERSE = {
    "array": ("final, ys = carry, jnp.stack(ys[::-1])",),
    "tree": ("final = carry", "ys = jax.tree.map(lambda *y: jnp.stack(y), *ys[::-1])"),
    "none": ("final, ys = carry, None",),
}
#: There is nothing to stack when no step ran.
_DONE_EMPTY = ("final = carry",)

#: Names that the loop above gives a role.
LOOP_NAMES = {"init": "carry", "carry": "carry", "final": "carry", "x": "x", "xs": "x", "y": "y", "ys": "y"}


@dataclass(frozen=True, slots=True)
class LoopLine:
    """One line of the loop and the moment of a scan at which it is the current one."""

    text: str
    phase: Phase


def loop_lines(*, carry: Tree, xs: Tree, ys: Tree, length: int, reverse: bool = False) -> tuple[LoopLine, ...]:
    """`lax.scan(step, init, xs)` written as a Python loop; in scope it needs jax, jnp, step, init and xs."""
    head = (_FOR_REVERSE if reverse else _FOR_FORWARD)[xs]
    done = (_DONE_REVERSE if reverse else _DONE_FORWARD)[ys] if length else _DONE_EMPTY
    parts: tuple[tuple[Phase, tuple[str, ...]], ...] = (
        ("init", _INIT[carry]),
        ("for", head),
        ("step", _STEP[xs]),
        ("append", _APPEND),
        ("done", done),
    )
    return tuple(LoopLine(text.format(length=length), phase) for phase, lines in parts for text in lines)


@dataclass(frozen=True, slots=True)
class CodeRoles:
    """Roles of the names in a step's source.

    Attributes:
        names: name -> ``carry``, ``x`` or ``y``, wherever it stands.
        marks: (0-based line, 0-based column in characters, role) of single places where a name plays another role:
            in ``return carry, carry`` the second one is y.
    """

    names: dict[str, str]
    marks: tuple[tuple[int, int, str], ...]


def code_roles(source: str) -> CodeRoles:
    """Who is carry, x and y in `def step(carry, x): …; return carry, y`; empty for code that cannot be read."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return CodeRoles({}, ())
    step = next((node for node in tree.body if isinstance(node, ast.FunctionDef)), None)
    if step is None:
        return CodeRoles({}, ())
    names: dict[str, str] = {}
    for argument, role in zip(step.args.posonlyargs + step.args.args, ("carry", "x"), strict=False):
        names[argument.arg] = role
    _unpacked(step, names)
    marks: list[tuple[int, int, str]] = []
    lines = source.splitlines()
    for returned in _returned_pairs(step):
        for name in _names(returned.elts[0]):
            names.setdefault(name.id, "carry")
        outputs = [name for name in _names(returned.elts[1]) if names.setdefault(name.id, "y") != "y"]
        marks.extend((name.lineno - 1, _column(lines[name.lineno - 1], name.col_offset), "y") for name in outputs)
    return CodeRoles(names, tuple(marks))


def _unpacked(step: ast.FunctionDef, names: dict[str, str]) -> None:
    """`c, h = carry` makes c and h carry too."""
    for node in ast.walk(step):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id in names:
            for target in node.targets:
                for name in _names(target):
                    names.setdefault(name.id, names[node.value.id])


def _returned_pairs(step: ast.FunctionDef) -> Iterator[ast.Tuple]:
    for node in ast.walk(step):
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 2:
            yield node.value


def _names(node: ast.expr) -> Iterator[ast.Name]:
    """The names that *are* the value, alone or as parts of a tuple, list or dict; not names inside a computation."""
    if isinstance(node, ast.Name):
        yield node
    elif isinstance(node, (ast.Tuple, ast.List)):
        for part in node.elts:
            yield from _names(part)
    elif isinstance(node, ast.Dict):
        for part in node.values:
            yield from _names(part)


def _column(line: str, utf8_offset: int) -> int:
    """Python's AST counts UTF-8 bytes; the browser counts characters."""
    return len(line.encode()[:utf8_offset].decode(errors="ignore"))
