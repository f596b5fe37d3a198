"""Edits of init: where a leaf was bound, where it is put into the tree, or around the scan's argument."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from jax import tree_util

from core.base.avals import aval_of, path_name
from core.contract import trees
from core.contract.subject import ScanCall
from core.contract.trace import same_structure
from core.doctor.edits import Desk, Edits, Maker
from core.doctor.leaves import CastTo, Change, Shaped, Written, edit_node, rebuilt, written


def keys_of(tree: Any, root: str, path: str) -> tuple[Any, ...] | None:
    """The keys that lead to a node named by its path; None when there is no such node."""
    if path == root:
        return ()
    for key, child in trees.node_of(tree).children.items():
        here = path_name(root, (key,))
        if path == here or path.startswith((here + "[", here + ".")):
            inner = keys_of(child, here, path)
            return None if inner is None else (key, *inner)
    return None


def on_tree(desk: Desk, role: str, root: str, tree: Any, changes: Mapping[str, Change]) -> Iterator[Edits | None]:
    """Change leaves of the tree that a scan's argument is (`role` init or xs).

    First where each was bound, then where it stands in the tree, then the argument rebuilt around them.
    """
    argument = desk.arguments.get(role)
    if argument is None:
        return
    source, pen = desk.source, desk.pen
    keys = {path: keys_of(tree, root, path) for path in changes}
    if any(k is None for k in keys.values()):
        return
    bound = source.resolve(argument)
    parts = {path: source.whole_part(bound, k or ()) for path, k in keys.items()}
    if all(part is not None for part in parts.values()):
        for look in (source.resolve, lambda node: node):
            yield tuple(
                edit_node(pen, changes[path], look(part), trees.find(tree, root, path))
                for path, part in parts.items()
                if part is not None
            )
    text = pen.atom(argument)
    if isinstance(argument, ast.Name | ast.Attribute | ast.Subscript) or set(changes) == {root}:
        new = rebuilt(pen, text, tree, root, dict(changes))
        yield None if new is None else (pen.replace(argument, new),)


def on_carry(desk: Desk, changes: Mapping[str, Change]) -> Iterator[Edits | None]:
    """Change leaves of a scan's init; of a cell outside scans, its whole carry at the finding's place."""
    if desk.site is not None:
        yield from on_tree(desk, "init", "carry", desk.site.call.init, changes)
        return
    node = desk.node
    if node is None or len(changes) != 1:
        return
    (change,) = changes.values()
    yield from on_node(desk, node, change)


def on_node(desk: Desk, node: ast.expr, change: Change) -> Iterator[Edits | None]:
    """Change an expression: where it was bound, else where it is used."""
    seen = [s.value for s in desk.record.seen if s.node is node]
    value = seen[0] if seen else None
    bound = desk.source.resolve(node)
    if bound is not node:
        yield (edit_node(desk.pen, change, bound, value),)
    yield (edit_node(desk.pen, change, node, value),)


# --- by kind --------------------------------------------------------------------------------------------------------


def init_dtype(desk: Desk) -> Iterator[Edits | None]:
    """Make a leaf of init another dtype."""
    yield from on_carry(desk, {desk.repair.path: CastTo(str(desk.repair.value))})


def init_dtypes(desk: Desk) -> Iterator[Edits | None]:
    """Make several leaves of init other dtypes."""
    yield from on_carry(desk, {path: CastTo(dtype) for path, dtype in dict(desk.repair.value).items()})


def init_shape(desk: Desk) -> Iterator[Edits | None]:
    """Give a leaf of init another shape."""
    yield from on_carry(desk, {desk.repair.path: Shaped(tuple(desk.repair.value))})


def init_value(desk: Desk) -> Iterator[Edits | None]:
    """Replace a node of init by what the repair makes of it, written out."""
    mended = mended_call(desk)
    argument = desk.arguments.get("init")
    if mended is None or desk.site is None or argument is None:
        return
    path, init = desk.repair.path, desk.site.call.init
    before, after = trees.find(init, "carry", path), trees.find(mended.init, "carry", path)
    bound = desk.source.resolve(argument)
    node = desk.source.whole_part(bound, keys_of(init, "carry", path) or ())
    literal = None if node is None else desk.source.resolve(node)
    text = written(desk.pen, after, before, literal)
    if text is not None:
        yield from on_tree(desk, "init", "carry", init, {path: Written(text)})


def init_like_mended(desk: Desk) -> Iterator[Edits | None]:
    """Change every leaf of init as the repair itself does on the call: by shape and dtype, where only those differ."""
    mended = mended_call(desk)
    if mended is None or desk.site is None:
        return
    changes = leaf_changes(desk.site.call.init, mended.init, "carry")
    if changes:
        yield from on_carry(desk, changes)


def mended_call(desk: Desk) -> ScanCall | None:
    """The scan's call with the repair applied, as the engine would."""
    if desk.site is None:
        return None
    mended = desk.repair.apply(desk.site.call)
    return mended if isinstance(mended, ScanCall) else None


def leaf_changes(before: Any, after: Any, root: str) -> dict[str, Change] | None:
    """Changes that turn each leaf of one tree into that of the other, where they differ in shape or in dtype alone."""
    if not same_structure(before, after):
        return None
    out: dict[str, Change] = {}
    pairs = zip(tree_util.tree_flatten_with_path(before)[0], tree_util.tree_leaves(after), strict=True)
    for (path, old), new in pairs:
        a, b = aval_of(old), aval_of(new)
        if a is None or b is None or old is new:
            continue
        if a.shape != b.shape:
            out[path_name(root, path)] = Shaped(b.shape)
        elif a.dtype != b.dtype:
            out[path_name(root, path)] = CastTo(b.dtype)
    return out


MAKERS: dict[str, tuple[Maker, ...]] = {
    "init_dtype": (init_dtype,),
    "init_dtypes": (init_dtypes,),
    "init_shape": (init_shape,),
    "init_value": (init_value,),
}
