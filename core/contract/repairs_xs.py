"""Repairs of the rules about what xs holds, and of several init leaves at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.avals import path_name
from core.base.text import fill
from core.contract import repairs, trees
from core.contract.facts import ScanFacts
from core.contract.rule import Repair
from core.contract.subject import ScanCall
from core.contract.trace import same_structure

TITLE_INIT_DTYPES = "Make init strongly typed: {leaves}"
TITLE_INIT_LEAF = "{path} {dtype}"
TITLE_XS_STACK = "Make {path} one array of {count} steps"
TITLE_XS_ITEM = "Scan over the one array in {path}"
TITLE_XS_AXES = "Move time to the front of xs: {before} becomes {after}"


def init_dtypes(dtypes: dict[str, str]) -> Repair:
    """Give several init leaves their dtypes (by carry path), strongly."""

    def apply(call: ScanCall) -> ScanCall | None:
        for path, dtype in dtypes.items():
            mended = repairs.init_dtype(path, dtype).apply(call)
            if not isinstance(mended, ScanCall):
                return None
            call = mended
        return call

    leaves = ", ".join(fill(TITLE_INIT_LEAF, path=p, dtype=d) for p, d in dtypes.items())
    return Repair("init_dtypes", fill(TITLE_INIT_DTYPES, leaves=leaves), apply, "", dict(dtypes))


# --- lists ----------------------------------------------------------------------------------------------------------


def stacked(rows: Any) -> Any:
    """A list of steps as one value per leaf with a leading axis: what `lax.scan` walks along.

    Args:
        rows: a list or tuple with one entry for each step; each entry a number, a list of numbers (a row), an array,
            or a pytree of these. Plain Python numbers keep JAX's default dtypes (int32, float32).

    Raises:
        ValueError: the entries have different structures or shapes.
        TypeError: an entry is no number and no array.
        OverflowError: a number does not fit in 32 bits.
    """
    entries = [as_row(row) for row in rows]
    if not all(same_structure(entries[0], entry) for entry in entries):
        raise ValueError("the entries have different structures")
    return tree_util.tree_map(lambda *leaves: _stack(leaves), *entries)


def _stack(leaves: tuple[Any, ...]) -> Any:
    if all(isinstance(leaf, np.ndarray | np.generic | int | float | complex) for leaf in leaves):
        array = np.stack([np.asarray(leaf) for leaf in leaves])
        narrow = array.astype(jax.dtypes.canonicalize_dtype(array.dtype))
        if not (narrow == array).all() and (array.dtype.kind in "iu" or not np.isfinite(narrow).all()):
            raise OverflowError("a number does not fit in 32 bits")
        return jnp.asarray(narrow)
    return jnp.stack([jnp.asarray(leaf) for leaf in leaves])


def as_row(entry: Any) -> Any:
    """One entry of a list, its inner lists of numbers made arrays."""
    if isinstance(entry, list | tuple) and only_numbers(entry):
        return stacked(entry)
    if isinstance(entry, list | tuple) and entry:
        node = trees.node_of(entry)
        return node.rebuild({key: as_row(child) for key, child in node.children.items()})
    if isinstance(entry, dict):
        return {key: as_row(child) for key, child in entry.items()}
    return entry


def only_numbers(tree: Any) -> bool:
    """Whether a list or tuple (of lists, …) holds nothing but numbers without axes, and at least one of them."""
    if not isinstance(tree, list | tuple):
        return is_scalar(tree)
    return bool(tree) and all(only_numbers(child) for child in tree)


def is_scalar(value: Any) -> bool:
    """A Python number, or an array without axes (NumPy's scalars and PRNG keys too)."""
    if isinstance(value, bool | int | float | complex):
        return True
    return hasattr(value, "dtype") and getattr(value, "shape", None) == ()


def xs_stack(path: str, count: int) -> Repair:
    """Make one array (or one per leaf) of the list in xs at `path`, an entry for each step."""

    def change(rows: Any) -> Any:
        return stacked(rows)

    return _xs_node("xs_array", fill(TITLE_XS_STACK, path=path, count=count), path, change)


def xs_item(path: str) -> Repair:
    """Take the only entry of the list in xs at `path` for the sequence itself."""
    return _xs_node("xs_item", fill(TITLE_XS_ITEM, path=path), path, lambda rows: rows[0])


def _xs_node(kind: str, title: str, path: str, change: Callable[[Any], Any]) -> Repair:
    def apply(call: ScanCall) -> ScanCall | None:
        try:
            return replace(call, xs=trees.at(call.xs, "xs", path, change))
        except (TypeError, ValueError, OverflowError):
            return None

    return Repair(kind, title, apply, path)


# --- axes -----------------------------------------------------------------------------------------------------------


def letters_of(call: ScanCall) -> dict[str, str]:
    """The declared axis letters of each xs leaf, where there are as many as the leaf has axes.

    A leaf's own path wins over ``xs``, which speaks for all leaves of that rank.
    """
    out = {}
    for path, leaf in tree_util.tree_flatten_with_path(call.xs)[0]:
        name = path_name("xs", path)
        letters = call.axes.get(name, call.axes.get("xs", ""))
        if letters and len(letters) == np.ndim(leaf):
            out[name] = letters
    return out


def time_first(letters: str) -> str:
    """The letters with T moved to the front: ``BTF`` becomes ``TBF``."""
    return "T" + letters.replace("T", "", 1)


def xs_axes(axes: dict[str, str]) -> Repair:
    """Move the T axis of each of these xs leaves to the front (letters as they are, by path), and init along with it.

    An init leaf that was as long as T along its first axis, each row the same, becomes as long as B; a `length` that
    was the old leading axis goes. Nothing is invented: any other init is left as it is.
    """

    def apply(call: ScanCall) -> ScanCall | None:
        flat, tree = tree_util.tree_flatten_with_path(call.xs)
        paths = [path_name("xs", p) for p, _ in flat]
        moved = [
            jnp.moveaxis(jnp.asarray(leaf), axes[name].index("T"), 0) if name in axes else leaf
            for name, (_, leaf) in zip(paths, flat, strict=True)
        ]
        if not all(name in paths for name in axes):
            return None
        declared = {k: v for k, v in call.axes.items() if k != "xs"} | {k: time_first(v) for k, v in axes.items()}
        call = replace(call, xs=tree_util.tree_unflatten(tree, moved), axes=declared, length=None)
        batch, length = _sizes(moved[paths.index(next(iter(axes)))], time_first(next(iter(axes.values()))))
        if batch is None or ScanFacts(call).jax is None:
            return call
        return replace(call, init=tree_util.tree_map(lambda leaf: _rows_for(leaf, length, batch), call.init))

    before, after = next(iter(axes.values())), time_first(next(iter(axes.values())))
    return Repair("xs_axes", fill(TITLE_XS_AXES, before=before, after=after), apply, next(iter(axes)), after)


def _sizes(leaf: Any, letters: str) -> tuple[int | None, int]:
    """B (None when there is no such letter) and T of a leaf with these letters."""
    shape = np.shape(leaf)
    return (shape[letters.index("B")] if "B" in letters else None), shape[0]


def _rows_for(leaf: Any, length: int, batch: int) -> Any:
    """The init leaf with `batch` rows for `length` equal ones; as it is where its rows differ or are not as many."""
    shape = np.shape(leaf)
    if not shape or shape[0] != length or not length:
        return leaf
    array = np.asarray(leaf)
    if not (array == array[:1]).all():
        return leaf
    return jnp.broadcast_to(jnp.asarray(array[:1]), (batch, *shape[1:]))
