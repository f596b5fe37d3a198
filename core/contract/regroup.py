"""Is an operation associative on given numbers? Combined in both groupings, in double precision, and compared.

`jax.lax.associative_scan` may combine neighbours in any grouping. Whether two groupings agree is found by doing it:
(a ∘ b) ∘ c beside a ∘ (b ∘ c) for the learner's own elements. Rounding is no fault of the operation: floats are widened
to float64 first, and what is then left is compared with the tolerance of the dtype that the operation works in,
relative to the largest number on the way (a sum that cancels is as exact as its terms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.limits import LIMITS
from core.base.tolerance import EXACT, tolerance_of

type Combine = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """Two groupings that give different numbers.

    Attributes:
        first: index of the first of the three neighbours.
        left, right: (a ∘ b) ∘ c and a ∘ (b ∘ c), at the element where they are furthest apart.
    """

    first: int
    left: float
    right: float


def groupings_apart(combine: Combine, elements: Any, axis: int) -> Apart | None:
    """Three neighbours whose two groupings differ by more than rounding; None when there are none, or fewer than three.

    Args:
        combine: as `lax.associative_scan` takes it, applied to slices along `axis`.
        elements: pytree of arrays with values.
        axis: the axis that they are combined along.
    """
    leaves, tree = tree_util.tree_flatten(elements)
    count = int(np.shape(leaves[0])[axis]) if leaves else 0
    if count < 3:
        return None
    with jax.enable_x64(True):
        wide = tree_util.tree_unflatten(tree, [_wide(leaf) for leaf in leaves])
        # Op by op: JAX keeps what it compiled for each, a program of its own would be compiled at every check.
        a, b, c = (_cut(wide, axis, i, count - 2 + i) for i in range(3))
        ab, bc = combine(a, b), combine(b, c)
        left, right = combine(ab, c), combine(a, bc)
        met = [np.asarray(leaf) for leaf in tree_util.tree_leaves((a, b, c, ab, bc, left, right))]
        pairs = zip(tree_util.tree_leaves(left), tree_util.tree_leaves(right), strict=True)
        scale = max((_largest(leaf) for leaf in met), default=0.0)
        found = [_apart(np.asarray(x), np.asarray(y), scale, axis) for x, y in pairs]
    return next((one for one in found if one is not None), None)


def left_to_right(combine: Combine, elements: Any, axis: int = 0, *, reverse: bool = False) -> Any:
    """The prefixes combined one by one: what `lax.associative_scan` gives of an operation that is associative."""
    count = np.shape(tree_util.tree_leaves(elements)[0])[axis]
    order = range(count - 1, -1, -1) if reverse else range(count)
    out: list[Any] = []
    for i in order:
        here = _cut(elements, axis, i, i + 1)
        out.append(here if not out else combine(out[-1], here))
    parts = out[::-1] if reverse else out
    return tree_util.tree_map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves], axis), *parts)


def off(combine: Combine, elements: Any, axis: int = 0, *, reverse: bool = False) -> float:
    """The largest difference between `lax.associative_scan` and `left_to_right`, in the unit of the values.

    Over the ``LIMITS["check_steps"]`` elements that are combined first: what comes later cannot change those.
    """
    count, most = int(np.shape(tree_util.tree_leaves(elements)[0])[axis]), LIMITS["check_steps"].value
    if count > most:
        elements = _cut(elements, axis, *((count - most, count) if reverse else (0, most)))
    got = tree_util.tree_leaves(lax.associative_scan(combine, elements, reverse=reverse, axis=axis))
    want = tree_util.tree_leaves(left_to_right(combine, elements, axis, reverse=reverse))
    apart = [np.abs(_double(g) - _double(w)) for g, w in zip(got, want, strict=True)]
    return float(max((float(one.max(initial=0.0)) for one in apart), default=0.0))


def _cut(tree: Any, axis: int, start: int, stop: int) -> Any:
    """A part along an axis, cut on the host: JAX would compile each cut."""
    return tree_util.tree_map(
        lambda leaf: jnp.asarray(np.asarray(leaf)[(slice(None),) * axis + (slice(start, stop),)]), tree
    )


def _wide(leaf: Any) -> Any:
    array = np.asarray(leaf)
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array.astype(np.float64)
    return array.astype(np.complex128) if jnp.issubdtype(array.dtype, jnp.complexfloating) else array


def _double(leaf: Any) -> Any:
    array = np.asarray(leaf)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


def _largest(array: Any) -> float:
    wide = np.abs(_double(array))
    finite = wide[np.isfinite(wide)]
    return float(finite.max(initial=0.0))


def _apart(left: Any, right: Any, scale: float, axis: int) -> Apart | None:
    if left.shape != right.shape:
        return None
    tolerance = tolerance_of(left.dtype, right.dtype)
    one, two = _double(left), _double(right)
    # Where a grouping overflows, the numbers are at fault and not the operation.
    known = np.isfinite(one) & np.isfinite(two)
    distance = np.where(known, np.abs(np.where(known, one, 0) - np.where(known, two, 0)), 0.0)
    allowed = 0.0 if tolerance == EXACT else tolerance.atol + tolerance.rtol * max(scale, 1.0)
    if not distance.size or distance.max() <= allowed:
        return None
    at = np.unravel_index(int(np.argmax(distance)), distance.shape)
    return Apart(int(at[axis]), float(np.real(one[at])), float(np.real(two[at])))
