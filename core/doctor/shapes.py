"""Shapes beside the lines: what each line assigns, returns or receives, from the values that its expressions had."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.avals import aval_of
from core.contract.script_record import ScriptRecord
from core.contract.source import FUNCTIONS, Function, parameters
from core.contract.subject import MISSING
from core.doctor.locate import type_text

#: Containers of more leaves than this are not shown.
LEAVES = 12


@dataclass(frozen=True, slots=True)
class Beside:
    """A name (empty for a returned value) and its type, as shown beside a line."""

    name: str
    type: str


def shapes_by_line(record: ScriptRecord) -> dict[int, tuple[Beside, ...]]:
    """Per line, in order. Of a line that ran several times the last recorded values; numbers and text are left out.

    To be asked for when the script has ended: it is worked out once for each record.
    """
    return record.once(_shapes)


def _shapes(record: ScriptRecord) -> dict[int, tuple[Beside, ...]]:
    values = {seen.node: seen.value for seen in record.seen}
    out: dict[int, dict[str, str]] = {}
    for node in record.source.nodes(ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, *FUNCTIONS):
        for line, name, value in _shown(node, values, record):
            if _has_array(value):
                out.setdefault(line, {})[name] = type_text(value)
    return {
        line: tuple(Beside(name, kind) for name, kind in sorted(found.items(), key=lambda i: i[0] == ""))
        for line, found in sorted(out.items())
    }


def _shown(node: ast.AST, values: dict[ast.expr, Any], record: ScriptRecord) -> Iterator[tuple[int, str, Any]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _bound(target, _value(node.value, values))
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
        yield from _bound(node.target, _value(node.value, values))
    elif isinstance(node, ast.Return) and node.value is not None:
        yield node.value.lineno, "", _value(node.value, values)
    elif isinstance(node, FUNCTIONS):
        yield from _received(node, values, record)


def _bound(target: ast.expr, value: Any) -> Iterator[tuple[int, str, Any]]:
    if isinstance(target, ast.Name):
        if not target.id.startswith("_"):
            yield target.lineno, target.id, value
        return
    parts = target.elts if isinstance(target, ast.Tuple | ast.List) else []
    plain = isinstance(value, tuple | list) and not any(isinstance(e, ast.Starred) for e in parts)
    if plain and len(parts) == len(value):
        for part, inner in zip(parts, value, strict=True):
            yield from _bound(part, inner)


def _received(function: Function, values: dict[ast.expr, Any], record: ScriptRecord) -> Iterator[tuple[int, str, Any]]:
    """What a function was given: the values its parameters' names had first."""
    names = {a.arg: a.lineno for a in parameters(function)}
    firsts: dict[str, Any] = {}
    for node in record.source.within(function):
        used = isinstance(node, ast.Name) and node.id in names and node in values
        if isinstance(node, ast.Name) and used and record.source.bound(node) is None:
            firsts.setdefault(node.id, values[node])
    for name in names:
        if name in firsts and not name.startswith("_"):
            yield names[name], name, firsts[name]


def _value(node: ast.expr, values: dict[ast.expr, Any]) -> Any:
    """An expression's value; of a tuple, a list or a dict that is written out, its parts'."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Tuple | ast.List):
        parts = [_value(e, values) for e in node.elts]
        if any(p is MISSING for p in parts):
            return MISSING
        return tuple(parts) if isinstance(node, ast.Tuple) else parts
    if isinstance(node, ast.Dict) and all(isinstance(k, ast.Constant) for k in node.keys):
        keys = [k.value for k in node.keys if isinstance(k, ast.Constant)]
        inner = [_value(v, values) for v in node.values]
        return MISSING if any(p is MISSING for p in inner) else dict(zip(keys, inner, strict=True))
    return values.get(node, MISSING)


def _has_array(value: Any) -> bool:
    if value is MISSING or isinstance(value, str | bytes | type):
        return False
    if isinstance(value, jax.core.Tracer | jax.Array):
        return True
    leaves = tree_util.tree_leaves(value)
    arrays = [leaf for leaf in leaves if isinstance(leaf, jax.Array | jax.core.Tracer | np.ndarray | np.generic)]
    return 0 < len(leaves) <= LEAVES and bool(arrays) and all(aval_of(leaf) is not None for leaf in leaves)
