"""Whose entries a vector has: the examples', or the units' (L312).

A vector is followed through what keeps its entries (comparisons, casts, slices, a scan's xs) to lengths, to a padding
mask, or to a name that can mean nothing else.
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from core.base.avals import Aval
from core.contract.fates import given_as
from core.contract.mask_names import EXAMPLES, LENGTHS, MASKS, UNITS, believed, said
from core.contract.masks import Numbers, holes, numbers, runs
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite
from core.contract.step_values import carried_in, cells_of, held, leaf_of, scans_of, written, xs_leaf
from core.contract.taken import target_of

#: Calls and methods through which an array keeps its entries.
KEEPS = frozenset(
    f"jax.numpy.{n}" for n in ("asarray", "array", "logical_not", "invert", "float32", "int32", "bool_", "squeeze",
                               "swapaxes", "moveaxis", "transpose", "logical_and", "logical_or", "astype", "ravel",
                               "less", "less_equal", "greater", "greater_equal")
)  # fmt: skip
METHODS = frozenset({"astype", "swapaxes", "transpose", "squeeze", "ravel", "any", "all", "sum", "copy"})
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
COUNTERS = frozenset({"jax.numpy.arange", "numpy.arange", "jax.lax.iota", "builtins.range", "builtins.enumerate"})
#: How many expressions are followed behind a vector.
DEPTH = 60


def shape_of(facts: ScriptFacts, node: ast.expr) -> tuple[int, ...]:
    """The shape of an expression's value; () where there is none."""
    aval = type_of(facts, node)
    return () if aval is None else aval.shape


def type_of(facts: ScriptFacts, node: ast.expr) -> Aval | None:
    """The type of an expression's last value; None for a constant, and where it has none."""
    return None if isinstance(node, ast.Constant) else facts.aval(node)


class Trail:
    """Where a vector of `count` entries comes from.

    Attributes:
        lengths: the lengths that it was made from.
        leaf: the scan and the leaf of its xs that it was read from.
    """

    def __init__(self, facts: ScriptFacts, count: int) -> None:
        self._facts = facts
        self._count = count
        self.lengths: Any = None
        self.leaf: tuple[ScanSite, int] | None = None
        self._left = DEPTH
        self._cell = False

    def is_of_examples(self, node: ast.expr, meets: ast.expr, *, raised: bool) -> bool:
        """Whether each entry belongs to one example; with sizes that clash a mask is enough.

        A name is enough only where it meets what a cell holds: attention has masks of keys over ``(T, T)``.
        """
        names: list[str] = []
        cell = _of_cell(self._facts, meets, self._count)
        self._cell = cell
        found = self._follow(node, names)
        words = said(names)
        if words & UNITS and not found:
            return False
        if found and (cell or _in_step(self._facts, meets, self._count)):
            return True
        if not cell:
            return False
        if raised:
            return bool(words & EXAMPLES) or bool(words & MASKS) or self._is_bool(node)
        return bool(words & EXAMPLES) and believed(self._facts, node, meets)

    def _is_bool(self, node: ast.expr) -> bool:
        aval = type_of(self._facts, node)
        return aval is not None and aval.dtype == "bool"

    def _follow(self, node: ast.expr, names: list[str]) -> bool:
        self._left -= 1
        if self._left < 0:
            return False
        facts = self._facts
        if isinstance(node, ast.Compare):
            return self._compared(node, names)
        if isinstance(node, ast.Name):
            names.append(node.id)
            if self._of_values(node, names):
                return True
            bound = target_of(facts, node)
            if bound is not None:
                whole = self._part_of(bound[0], bound[1])
                return whole is not None and self._follow(whole, names)
            return any(self._follow(argument, names) for _, argument in given_as(facts, node))
        if isinstance(node, ast.Subscript):
            return self._of_values(node, names) or self._sliced(node, names)
        if isinstance(node, ast.Attribute):
            return self._of_values(node, names) or (node.attr == "T" and self._follow(node.value, names))
        if isinstance(node, ast.UnaryOp):
            return self._follow(node.operand, names)
        if isinstance(node, ast.BinOp):
            return any(self._follow(side, names) for side in (node.left, node.right) if not _constant(side))
        if isinstance(node, ast.Call):
            return self._called(node, names)
        return False

    def _part_of(self, target: ast.Name, value: ast.expr) -> ast.expr | None:
        """What an assignment gives a name: of an unpacking, its part where that is written out."""
        around = self._facts.source.parents.get(target)
        if not isinstance(around, ast.Tuple | ast.List):
            return value
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(around.elts):
            return value.elts[around.elts.index(target)]
        return None

    def _called(self, node: ast.Call, names: list[str]) -> bool:
        facts = self._facts
        name = next((c.name for c in facts.calls_at(node) if c.name), None) or facts.source.dotted(node.func)
        if name in KEEPS:
            return any(self._follow(a, names) for a in node.args if not _constant(a) and not isinstance(a, ast.Starred))
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            return self._follow(node.func.value, names)
        return False

    def _compared(self, node: ast.Compare, names: list[str]) -> bool:
        """``t < lengths``, ``arange(T)[:, None] < lengths``; ``lengths > 0``: of lengths, if it is an order."""
        if len(node.ops) != 1:
            return False
        sides = (node.left, node.comparators[0])
        for side, other in (sides, sides[::-1]):
            array = self._vector(side)
            said = _words(side) & LENGTHS
            if array is None or not isinstance(node.ops[0], ORDERED):
                continue
            if said or self._is_lengths(array) or (self._cell and self._counts(other) and not _words(side) & UNITS):
                self.lengths = array
                return True
        return any(self._follow(side, names) for side in sides if not _constant(side))

    def _vector(self, node: ast.expr) -> Any:
        """The whole numbers behind one side of a comparison, one for each of the `count`: ``lengths[:, None]``."""
        while isinstance(node, ast.Subscript) and _adds_axes(node.slice):
            node = node.value
        aval = type_of(self._facts, node)
        if aval is None or aval.shape != (self._count,) or np.dtype(aval.dtype).kind not in "iu":
            return None
        return self._facts.value(node)

    def _is_lengths(self, array: Any) -> bool:
        return any(run.lengths is array for run in runs(self._facts))

    def _counts(self, node: ast.expr) -> bool:
        """Whether an expression counts steps: `arange`, a loop's or a scan's own counter."""
        facts = self._facts
        while isinstance(node, ast.Subscript) and _adds_axes(node.slice):
            node = node.value
        if isinstance(node, ast.Call):
            name = next((c.name for c in facts.calls_at(node) if c.name), None) or facts.source.dotted(node.func)
            return name in COUNTERS
        if not isinstance(node, ast.Name):
            return False
        value = facts.value(node)
        found = leaf_of(facts, value)
        if found is not None:
            array = numbers(xs_leaf(*found))
            return array is not None and array.ndim == 1 and bool((array == np.arange(len(array))).all())
        bound = target_of(facts, node)
        if bound is not None:
            return isinstance(bound[1], ast.Call | ast.Subscript) and self._counts(bound[1])
        return any(
            isinstance(n, ast.For) and any(isinstance(t, ast.Name) and t.id == node.id for t in ast.walk(n.target))
            and isinstance(n.iter, ast.Call) and (facts.source.dotted(n.iter.func) or ast.unparse(n.iter.func)) in
            ("range", "enumerate", *COUNTERS)
            for n in facts.nodes(ast.For)
        )  # fmt: skip

    def _of_values(self, node: ast.expr, names: list[str]) -> bool:
        """A leaf of a scan's xs: is the sequence of it a padding mask, or where does it come from?"""
        facts = self._facts
        found = leaf_of(facts, facts.value(node))
        if found is None:
            return False
        self.leaf = found
        array = numbers(xs_leaf(*found))
        if _pads(array, 0, self._count):
            return True
        whole = written(facts, *found)
        return whole is not None and self._follow_mask(whole, 0, names)

    def _sliced(self, node: ast.Subscript, names: list[str]) -> bool:
        """``mask[:, t]`` of ``(B, T)``, ``mask[t]`` of ``(T, B)``: the entries that are left must be the examples'."""
        if _adds_axes(node.slice):
            return self._follow(node.value, names)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        fixed = [i for i, part in enumerate(parts) if not isinstance(part, ast.Slice)]
        if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
            return self._follow(node.value, [*names])
        return len(fixed) == 1 and self._follow_mask(node.value, fixed[0], names)

    def _follow_mask(self, node: ast.expr, axis: int, names: list[str]) -> bool:
        """A mask of two axes of which `axis` is taken away, which must then be the axis of the steps."""
        facts = self._facts
        dims = shape_of(facts, node)
        if len(dims) != 2 or axis > 1 or dims[1 - axis] != self._count:
            return False
        if _pads(numbers(facts.value(node)), axis, self._count):
            return True
        return self._follow(node, names) and not isinstance(node, ast.Subscript)


def _of_cell(facts: ScriptFacts, node: ast.expr, count: int) -> bool:
    """Whether an expression is in the step of a scan over a cell of that batch, or reads what a cell, or a layer, holds."""
    if scans_of(facts, node) & facts.once(cells_of).get(count, set()):
        return True
    values = facts.once(held)
    return any(
        id(seen.value) in values for part in ast.walk(node) if isinstance(part, ast.expr) for seen in facts.seen(part)
    )


def _in_step(facts: ScriptFacts, node: ast.expr, count: int) -> bool:
    """Whether an expression is in the step of a scan that carries an array of so many rows, one for each example."""
    sites = [facts.scans[i] for i in scans_of(facts, node) if i is not None]
    for site in sites:
        types = [t.aval for t in site.facts.carry_in if t.aval is not None]
        if any(len(a.shape) == 2 and a.shape[0] == count for a in types) and not _in_columns(facts, site, count):
            return True
    return False


def _in_columns(facts: ScriptFacts, site: ScanSite, count: int) -> bool:
    """Whether a scan keeps its examples along the last axis: ``W @ h``, or inputs of ``(F, B)``."""
    inputs = [t.aval.shape for t in site.facts.xs_types if t.aval is not None and len(t.aval.shape) == 3]
    if any(shape[1] == count != shape[2] for shape in inputs):
        return False
    if any(shape[2] == count != shape[1] for shape in inputs):
        return True
    carried = facts.once(carried_in)
    for node in facts.nodes(ast.BinOp):
        if isinstance(node.op, ast.MatMult) and site.index in scans_of(facts, node):
            left, right = ({id(s.value) for s in facts.seen(side)} & carried for side in (node.left, node.right))
            if right and not left:
                return True
    return False


def _constant(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant)


def _words(node: ast.expr) -> set[str]:
    names = [
        n.id if isinstance(n, ast.Name) else n.attr for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute)
    ]
    return said(names)


def _adds_axes(index: ast.expr) -> bool:
    """``[:, None]``, ``[None]``, ``[None, :]``: nothing is picked out."""
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    return all(
        (isinstance(p, ast.Slice) and p.lower is p.upper is p.step is None)
        or (isinstance(p, ast.Constant) and p.value in (None, Ellipsis))
        or (isinstance(p, ast.Attribute) and p.attr == "newaxis")
        for p in parts
    )


def _pads(array: Numbers | None, axis: int, count: int) -> bool:
    """Whether an array says, along `axis`, which steps of `count` sequences are padding at their ends."""
    if array is None or array.ndim != 2 or array.shape[1 - axis] != count or not np.isin(array, (0, 1)).all():
        return False
    rows = np.moveaxis(array.astype(bool), axis, 1)
    return bool(rows[:, 0].all()) and not rows.all() and not holes(rows, 1)
