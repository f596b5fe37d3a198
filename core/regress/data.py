"""Numbers for cases: those of a person replaced by seeded ones of the same shape and dtype, and values at the boundaries."""

from __future__ import annotations

import re
from typing import Any, Final

import jax.numpy as jnp
import numpy as np

from core.base.text import fill
from core.inputs.parse import format_leaf, format_sequence, numpy_dtype

#: As people write it on a page.
ZEROS = "zeros({shape})"

#: Numbers that a case writes out at most, and steps of it then.
WRITTEN, STEPS = 4_000, 16
_MINUS_ZERO: Final = re.compile(r"-0(?![\d.])")

type Array = np.ndarray[Any, Any]


def seeded(shape: tuple[int, ...], dtype: str, seed: int) -> Array:
    """Normal numbers with three decimals; of whole numbers −3 to 3, of bools 0 or 1. The same for a seed everywhere."""
    rng = np.random.default_rng(seed)
    kind = numpy_dtype(dtype)
    if kind.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if kind.kind in "iu":
        return np.asarray(rng.integers(0 if kind.kind == "u" else -3, 4, shape)).astype(kind)
    return np.asarray(np.round(rng.standard_normal(shape), 3)).astype(kind)


def boundary(shape: tuple[int, ...], dtype: str) -> Array:
    """Values at which arithmetic changes, one after the other in C order.

    Of floats: both zeros, both ones, eps, the smallest normal number, and ±10,000, where every curve of a gate is flat.
    The largest number is not among them: a sum that overflows says nothing but the order in which it was added up. Of
    whole numbers: 0, ±1, and both ends. Of bools: both.
    """
    kind = numpy_dtype(dtype)
    values: list[Any]
    if kind.kind == "b":
        values = [False, True]
    elif kind.kind in "iu":
        values = [0, 1, -1, np.iinfo(kind).max, np.iinfo(kind).min]
    else:
        info: Any = jnp.finfo(kind)  # type: ignore[no-untyped-call]
        values = [0.0, -0.0, 1.0, -1.0, float(info.eps), float(info.smallest_normal), 1e4, -1e4]
    return np.resize(np.asarray(values, np.float64 if kind.kind not in "biu" else None), shape).astype(kind)


def rows_text(values: Any) -> str:
    """A sequence as it is typed: its first axis is the one of the steps."""
    array = np.asarray(values)
    return _nothing(array) or _signed(format_sequence(array))


def leaf_text(values: Any) -> str:
    """One value as it is typed, with all its axes."""
    array = np.asarray(values)
    return _nothing(array) or _signed(format_leaf(array))


def _signed(text: str) -> str:
    """A minus zero as a float: without its point it would be read as the whole number 0, which has no sign."""
    return _MINUS_ZERO.sub("-0.0", text)


def _nothing(array: Array) -> str:
    """``zeros(5, 3)`` for an array of zeros with axes, or of no elements; "" for any other."""
    if array.ndim == 0 or np.any(array) or np.signbit(array.astype(np.float64)).any():
        return ""
    return fill(ZEROS, shape=", ".join(map(str, array.shape)))


def other_sizes(taken: tuple[int, ...], wanted: int) -> tuple[int, ...]:
    """So many sizes that differ from each other and from those that are taken."""
    found: list[int] = []
    for size in (5, 3, 2, 7, 4, 6, 9, 8):
        if size not in taken and len(found) < wanted:
            found.append(size)
    return tuple(found)
