"""Edits of a scan's other arguments: xs, length, unroll, reverse."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import tree_util

from core.base.avals import path_name
from core.base.violation import TextEdit
from core.contract import trees
from core.doctor.edits import Desk, Edits, Maker
from core.doctor.edits_init import leaf_changes, mended_call, on_carry, on_tree
from core.doctor.leaves import Around, CastTo, Change, Shaped, Written, constant
from core.doctor.pen import Pen

#: Positions of the arguments of `lax.scan`.
POSITION = {"init": 1, "xs": 2, "length": 3, "reverse": 4, "unroll": 5}


def _set(desk: Desk, name: str, text: str | None) -> Edits:
    node = desk.site.node if desk.site is not None else None
    if node is None or "step" not in desk.arguments:  # under `nnx.scan` these stand with the decorator
        return ()
    return tuple(desk.pen.argument(node, POSITION[name], name, text))


def _option(name: str) -> Maker:
    def set_option(desk: Desk) -> Iterator[Edits | None]:
        yield _set(desk, name, repr(desk.repair.value))

    return set_option


def length(desk: Desk) -> Iterator[Edits | None]:
    """Set `length`, or leave it to xs; a number given as xs may have been meant for it."""
    value = desk.repair.value
    yield _set(desk, "length", None if value is None else repr(value))
    xs = desk.arguments.get("xs")
    if value is not None and xs is not None:
        yield (desk.pen.replace(xs, "None"), *_set(desk, "length", desk.pen.text(xs)))
        yield (desk.pen.replace(xs, "None"), *_set(desk, "length", repr(value)))


def xs_array(desk: Desk) -> Iterator[Edits | None]:
    """One array of a list, a tuple or a range."""
    if desk.site is None:
        return
    path = desk.repair.path
    node = desk.arguments.get("xs")
    bound = None if node is None else desk.source.resolve(node)
    counted = _range_of(desk, bound)
    if bound is not None and counted is not None and path == "xs":
        yield (desk.pen.replace(bound, f"{desk.pen.jnp('arange')}({counted})"),)
    value = trees.find(desk.site.call.xs, "xs", path)
    entries = list(value) if isinstance(value, list | tuple) else []
    arrays = entries and all(hasattr(e, "dtype") for e in entries)
    templates = ["{jnp.stack}({x})", "{jnp.asarray}({x})"] if arrays else ["{jnp.asarray}({x})", "{jnp.stack}({x})"]
    for template in templates:
        yield from on_tree(desk, "xs", "xs", desk.site.call.xs, {path: Around(template)})
    if entries and isinstance(entries[0], tuple | list | dict):
        tree = desk.pen.name("jax", "tree.map")
        template = tree + "(lambda *leaves: {jnp.stack}({jnp.asarray}(leaves)), *{x})"
        yield from on_tree(desk, "xs", "xs", desk.site.call.xs, {path: Around(template)})


def _range_of(desk: Desk, node: ast.expr | None) -> str | None:
    """What stands in ``range(…)`` or ``list(range(…))``."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id == "range":
            return ", ".join(desk.pen.text(a) for a in node.args)
        if node.func.id in ("list", "tuple") and len(node.args) == 1:
            return _range_of(desk, node.args[0])
    return None


def xs_item(desk: Desk) -> Iterator[Edits | None]:
    """The only entry of a list, instead of the list."""
    if desk.site is None:
        return
    node = desk.arguments.get("xs")
    bound = None if node is None else desk.source.resolve(node)
    if desk.repair.path == "xs" and isinstance(bound, ast.List | ast.Tuple) and len(bound.elts) == 1:
        yield (desk.pen.replace(bound, desk.pen.text(bound.elts[0])),)
    yield from on_tree(desk, "xs", "xs", desk.site.call.xs, {desk.repair.path: Around("{x}[0]")})


def xs_leading(desk: Desk) -> Iterator[Edits | None]:
    """Repeat one leaf along a new leading axis; or (no path) cut every leaf to a length."""
    if desk.site is None:
        return
    xs, count = desk.site.call.xs, int(desk.repair.value)
    if desk.repair.path:
        change: Change = _Repeated(count)
        yield from on_tree(desk, "xs", "xs", xs, {desk.repair.path: change})
        return
    flat = tree_util.tree_flatten_with_path(xs)[0]
    long = {path_name("xs", p): Around(f"{{x}}[:{count}]") for p, leaf in flat if np.shape(leaf)[0] != count}
    given = desk.site.call.length
    drop = () if given is None or (type(given) is int and given == count) else _set(desk, "length", None)
    for edits in on_tree(desk, "xs", "xs", xs, long):
        yield None if edits is None else (*edits, *drop)


@dataclass(frozen=True, slots=True)
class _Repeated:
    """``jnp.full(n, 2.0)`` of a number, ``jnp.broadcast_to(x, (n, …))`` of an array."""

    count: int

    def node(self, pen: Pen, node: ast.expr, value: Any) -> TextEdit | None:
        """A number as written."""
        if constant(node) is None:
            return None
        return pen.replace(node, f"{pen.jnp('full')}({self.count}, {pen.text(node)})")

    def text(self, pen: Pen, text: str, value: Any) -> str:
        """An array."""
        shape = (self.count, *np.shape(value))
        return f"{pen.jnp('broadcast_to')}({text}, {pen.shape(shape)})"


def xs_axes(desk: Desk) -> Iterator[Edits | None]:
    """Move the time axis of xs to the front, and init with it where the repair does."""
    mended = mended_call(desk)
    if mended is None or desk.site is None:
        return
    call = desk.site.call
    changes: dict[str, Change] = {}
    pairs = zip(tree_util.tree_flatten_with_path(call.xs)[0], tree_util.tree_leaves(mended.xs), strict=True)
    for (path, old), new in pairs:
        axis = _moved_axis(old, new)
        if axis is not None:
            how = "{jnp.swapaxes}({x}, 0, 1)" if axis == 1 else f"{{jnp.moveaxis}}({{x}}, {axis}, 0)"
            changes[path_name("xs", path)] = Around(how)
    if not changes:
        return
    drop = _set(desk, "length", None) if call.length is not None and mended.length is None else ()
    init = leaf_changes(call.init, mended.init, "carry")
    starts: list[Edits | None] = list(on_carry(desk, init)) if init else [()]
    for edits in on_tree(desk, "xs", "xs", call.xs, changes):
        for start in starts:
            yield None if edits is None or start is None else (*edits, *start, *drop)


def _moved_axis(old: Any, new: Any) -> int | None:
    """Which axis of the old leaf stands first in the new one; None when none was moved."""
    if old is new:
        return None
    before, after = np.asarray(old), np.asarray(new)
    for axis in range(1, before.ndim):
        moved = np.moveaxis(before, axis, 0)
        if moved.shape == after.shape and np.array_equal(moved, after, equal_nan=before.dtype.kind == "f"):
            return axis
    return None


def xs_like_mended(desk: Desk) -> Iterator[Edits | None]:
    """Change leaves of xs by dtype or shape as the repair does on the call."""
    mended = mended_call(desk)
    if mended is None or desk.site is None:
        return
    changes = leaf_changes(desk.site.call.xs, mended.xs, "xs")
    if changes:
        yield from on_tree(desk, "xs", "xs", desk.site.call.xs, changes)


def xs_dtype(desk: Desk) -> Iterator[Edits | None]:
    """Give a leaf of xs another dtype."""
    if desk.site is not None:
        change: Change = CastTo(str(desk.repair.value))
        yield from on_tree(desk, "xs", "xs", desk.site.call.xs, {desk.repair.path: change})


def xs_shape(desk: Desk) -> Iterator[Edits | None]:
    """Give a leaf of xs another shape."""
    if desk.site is not None:
        change: Change = Shaped(tuple(desk.repair.value))
        yield from on_tree(desk, "xs", "xs", desk.site.call.xs, {desk.repair.path: change})


def xs_value(desk: Desk) -> Iterator[Edits | None]:
    """Replace a leaf of xs by a value that can be written out."""
    text = desk.pen.array(desk.repair.value)
    if desk.site is not None and text is not None:
        change: Change = Written(text)
        yield from on_tree(desk, "xs", "xs", desk.site.call.xs, {desk.repair.path: change})


MAKERS: dict[str, tuple[Maker, ...]] = {
    "length": (length,),
    "unroll": (_option("unroll"),),
    "reverse": (_option("reverse"),),
    "xs_array": (xs_array,),
    "xs_item": (xs_item,),
    "xs_leading": (xs_leading,),
    "xs_axes": (xs_axes,),
    "xs_dtype": (xs_dtype,),
    "xs_shape": (xs_shape,),
    "xs_value": (xs_value,),
}
