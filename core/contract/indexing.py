"""Indices of a script against the axes that they are used on: those that are known numbers, and how each use is written.

Python's slices stop at the end by definition and are no matter of this module. A `mode=` that is written out says what
is meant outside, and whatever stands in a `where` (or a branch) may be thrown away: both are left alone.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from core.base.avals import aval_of
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called
from core.contract.source import FUNCTIONS
from core.contract.subject import MISSING


class Kind(enum.Enum):
    """What JAX does with an index that lies outside."""

    CLAMPED = "the nearest one that is there is read"
    FILLED = "NaN, or the smallest int, is read"
    DROPPED = "nothing is written"
    MOVED = "a window is moved until it fits"


@dataclass(frozen=True, slots=True)
class Outside:
    """One index out of bounds.

    Attributes:
        node: the expression that uses it.
        kind: what becomes of it.
        index, size, window: the index as it was given (or, traced, counted from the front), the length of its axis, and
            how many entries are taken from there on.
        count: how many indices of this use lie outside.
        step: the t at which it is used first; None outside scans.
    """

    node: ast.expr
    kind: Kind
    index: int
    size: int
    window: int = 1
    count: int = 1
    step: int | None = None


FILLING = frozenset({"jax.numpy.take", "Array.take", "jax.numpy.take_along_axis"})
#: Windows of `jax.lax`: positions of the starts, of the sizes (or of the update, negative), of the axis.
WINDOWS = frozenset(
    f"jax.lax.dynamic_{name}"
    for name in ("slice", "slice_in_dim", "index_in_dim", "update_slice", "update_slice_in_dim", "update_index_in_dim")
)
#: Calls that choose: what is read in one of their arguments may be thrown away.
CHOICES = frozenset(
    "jax.numpy.where jax.numpy.select jax.numpy.piecewise jax.numpy.nan_to_num jax.lax.select jax.lax.select_n jax.lax.cond "
    "jax.lax.switch".split()
)
#: Evaluations that are recorded of one expression.
RECORDED = 8


def kind_of(facts: ScriptFacts, node: ast.expr) -> Kind | None:
    """What becomes of an index outside in this expression; None where it uses none, or says itself what is meant."""
    if isinstance(node, ast.Subscript):
        at = isinstance(node.value, ast.Attribute) and node.value.attr == "at"
        return Kind.CLAMPED if isinstance(node.ctx, ast.Load) and not at else None
    if not isinstance(node, ast.Call) or any(k.arg in ("mode", None) for k in node.keywords):
        return None
    if at_of(node) is not None and isinstance(node.func, ast.Attribute):
        return Kind.CLAMPED if node.func.attr == "get" else Kind.DROPPED
    names = {call.name for call in facts.calls_at(node)} | {facts.source.dotted(node.func)}
    if names & FILLING:
        return Kind.FILLED if len(node.args) < (4 if "Array.take" not in names else 3) else None
    return Kind.MOVED if names & WINDOWS else None


def at_of(node: ast.expr) -> ast.Subscript | None:
    """The ``x.at[i]`` of ``x.at[i].set(v)``."""
    inner = node.func.value if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else None
    if isinstance(inner, ast.Subscript) and isinstance(inner.value, ast.Attribute) and inner.value.attr == "at":
        return inner
    return None


def uses(facts: ScriptFacts) -> list[tuple[ast.expr, Kind]]:
    """Every expression of the script that uses indices and may use them unseen: not chosen away, nor a sentinel."""
    out = []
    for node in facts.nodes(ast.Subscript, ast.Call):
        kind = kind_of(facts, node)
        if kind is None or (kind is not Kind.DROPPED and chosen_away(facts, node)):
            continue
        if kind is Kind.DROPPED and _sentinel(facts, node):
            continue
        out.append((node, kind))
    return out


def _sentinel(facts: ScriptFacts, node: ast.expr) -> bool:
    """Whether the index of a write is chosen by the script: an index outside is a known way to drop a write."""
    at = at_of(node)
    parts = [] if at is None else at.slice.elts if isinstance(at.slice, ast.Tuple) else [at.slice]
    return any(
        isinstance(inner, ast.Call) and facts.source.dotted(inner.func) in CHOICES
        for part in parts
        for inner in ast.walk(facts.source.resolve(part))
    )


def chosen_away(facts: ScriptFacts, node: ast.expr, hops: int = 4) -> bool:
    """Whether a value is used only where something chooses: in a `where`, a branch, or times a truth value."""
    here: ast.AST = node
    while not isinstance(here, ast.stmt):
        parent = facts.source.parents.get(here)
        if parent is None:
            return False
        if isinstance(parent, ast.IfExp | ast.BoolOp):
            return True
        if isinstance(parent, ast.Call) and here is not parent.func and facts.source.dotted(parent.func) in CHOICES:
            return True
        if isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult | ast.BitAnd):
            other = parent.right if here is parent.left else parent.left
            aval = facts.aval(other)
            if aval is not None and aval.dtype == "bool":
                return True
        here = parent
    if (
        not isinstance(here, ast.Assign)
        or len(here.targets) != 1
        or not isinstance(here.targets[0], ast.Name)
        or not hops
    ):
        return False
    name, scope = here.targets[0].id, facts.source.scope(here)
    loads = [n for n in ast.walk(scope) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]
    later = [n for n in loads if n.lineno > here.lineno]
    return bool(later) and all(chosen_away(facts, n, hops - 1) for n in later)


# --- indices that are known -----------------------------------------------------------------------------------------


def known_outside(facts: ScriptFacts, node: ast.expr, kind: Kind) -> Outside | None:
    """The first index out of bounds in the evaluations of an expression, where array and index were known."""
    found = None
    if kind is Kind.FILLED or kind is Kind.MOVED:
        for call in facts.calls_at(node):
            found = found or (_taken(node, call) if kind is Kind.FILLED else _moved(node, call))
        return found
    item = node if isinstance(node, ast.Subscript) else at_of(node)
    if item is None:
        return None
    base = item.value.value if item is not node and isinstance(item.value, ast.Attribute) else item.value
    for seen in facts.seen(item):
        array = before(facts, base, seen.order)
        if isinstance(array, jax.Array):
            found = found or _item(facts, node, kind, item.slice, array, seen.order)
    if found is None and len(facts.seen(item)) >= RECORDED:
        array = facts.value(base, None)
        found = _last_of_a_loop(facts, node, kind, item.slice, array) if isinstance(array, jax.Array) else None
    return found


def before(facts: ScriptFacts, node: ast.expr, order: int) -> Any:
    """The value that an expression had last before a running number."""
    if isinstance(node, ast.Constant):
        return node.value
    earlier = [seen.value for seen in facts.seen(node) if seen.order < order]
    return earlier[-1] if earlier else MISSING


def _item(
    facts: ScriptFacts, node: ast.expr, kind: Kind, index: ast.expr, array: jax.Array, order: int
) -> Outside | None:
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    values = [MISSING if isinstance(p, ast.Slice) else before(facts, p, order) for p in parts]
    if len(parts) == 1 and isinstance(values[0], tuple):
        values = list(values[0])
    taken = sum(_axes_of(value) for value in values if value is not Ellipsis)
    axis = 0
    for value in values:
        if value is Ellipsis:
            axis += array.ndim - taken
            continue
        if axis < array.ndim and _axes_of(value) == 1:
            wrong = _outside(value, array.shape[axis])
            if wrong is not None:
                return Outside(node, kind, wrong[0], array.shape[axis], count=wrong[1])
        axis += _axes_of(value)
    return None


def _axes_of(value: Any) -> int:
    """How many axes an index takes up: a truth value or None none, a mask as many as it has, all others one."""
    if value is None or isinstance(value, bool):
        return 0
    if hasattr(value, "dtype") and str(value.dtype) == "bool":
        return len(value.shape)
    return 1


def _outside(value: Any, size: int, window: int = 1) -> tuple[int, int] | None:
    """The first index in a value that lies outside of an axis, and how many do; negative ones count from the end."""
    if isinstance(value, bool | slice | str) or value is MISSING or isinstance(value, jax.core.Tracer):
        return None
    aval = aval_of(value)
    if aval is None or isinstance(value, jax.ShapeDtypeStruct) or not aval.dtype.startswith(("int", "uint")):
        return None
    numbers = np.asarray(value).astype(np.int64).ravel()
    wrong = numbers[(numbers < -size) | (numbers > size - window) | ((numbers < 0) & (numbers + size > size - window))]
    return (int(wrong[0]), len(wrong)) if len(wrong) else None


def _last_of_a_loop(
    facts: ScriptFacts, node: ast.expr, kind: Kind, index: ast.expr, array: jax.Array
) -> Outside | None:
    """``for i in range(n): x[i]``: of a loop that is longer than what is recorded, its last index."""
    loop = facts.source.parents.get(facts.source.statement(node) or node)
    if not isinstance(index, ast.Name) or not isinstance(loop, ast.For) or ast.unparse(loop.target) != index.id:
        return None
    values = facts.value(loop.iter, None)
    ends = any(isinstance(n, ast.Break | ast.Continue | ast.Return) for n in ast.walk(loop))
    if not isinstance(values, range) or ends:
        return None
    wrong = [i for i in values if not -array.shape[0] <= i < array.shape[0]] if array.ndim else []
    return Outside(node, kind, wrong[0], array.shape[0], count=len(wrong)) if wrong else None


def _taken(node: ast.expr, call: Called) -> Outside | None:
    method = call.receiver is not None and call.name == "Array.take"
    array = call.receiver if method else call.argument(0, "a" if call.name == "jax.numpy.take" else "arr", None)
    index = call.argument(0 if method else 1, "indices", MISSING)
    axis = call.argument(1 if method else 2, "axis", None if call.name != "jax.numpy.take_along_axis" else -1)
    aval = aval_of(array)
    if aval is None or not isinstance(axis, int | None):
        return None
    size = aval.size if axis is None else aval.shape[axis]
    wrong = _outside(index, size)
    return None if wrong is None else Outside(node, Kind.FILLED, wrong[0], size, count=wrong[1])


def _moved(node: ast.expr, call: Called) -> Outside | None:
    name = (call.name or "").removeprefix("jax.lax.dynamic_")
    aval, update = aval_of(call.argument(0, "operand", None)), name.startswith("update")
    if aval is None:
        return None
    given = (
        call.argument(2, "start_indices" if not name.endswith("dim") else "start_index", MISSING) if update else None
    )
    if not update:
        given = call.argument(1, "start_indices" if name == "slice" else "start_index", MISSING)
    given = call.kwargs.get("index", given)
    sizes = aval_of(call.argument(1, "update", None)) if update else None
    if name in ("slice", "update_slice"):
        shape = sizes.shape if sizes is not None else call.argument(2, "slice_sizes", ())
        starts = list(given) if isinstance(given, list | tuple) else []
        windows = zip(starts, aval.shape, shape if isinstance(shape, list | tuple) else (), strict=False)
    else:
        axis = call.argument(2 if name == "index_in_dim" else 3, "axis", 0)
        if not isinstance(axis, int) or not aval.shape:
            return None
        width = 1
        if name == "slice_in_dim":
            width = call.argument(2, "slice_size", 1)
        elif name == "update_slice_in_dim" and sizes is not None and sizes.shape:
            width = sizes.shape[axis]
        windows = zip([given], [aval.shape[axis]], [width], strict=True)
    for start, size, width in windows:
        wrong = _outside(start, size, width if isinstance(width, int) else 1)
        if wrong is not None:
            kind = Kind.CLAMPED if name == "index_in_dim" else Kind.MOVED
            return Outside(node, kind, wrong[0], size, width, wrong[1])
    return None


def traced_uses(facts: ScriptFacts, found: list[tuple[ast.expr, Kind]]) -> Iterator[ast.expr]:
    """Those uses that were evaluated under a trace, with some index in them that had no value then."""
    for node, _ in found:
        item = node if isinstance(node, ast.Subscript) else at_of(node)
        inside = [n for n in ast.walk(item if item is not None else node) if isinstance(n, ast.expr)]
        scope = facts.source.scope(node)
        if isinstance(scope, FUNCTIONS) and any(s.traced for n in inside for s in facts.seen(n)[:1]):
            yield node
