"""What JAX makes of a `length` or an `unroll`: an ordinary count, one that it bends, or none."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np


class Kind(enum.Enum):
    """How a value stands to a whole number of at least 0."""

    #: A whole number >= 0, as it should be.
    WHOLE = enum.auto()
    #: ``3.0``: another type, the same number.
    SAME = enum.auto()
    #: ``3.5``, ``'3'``, ``True``: `int()` makes another thing of it, silently.
    BENT = enum.auto()
    #: ``-1``.
    NEGATIVE = enum.auto()
    #: ``int()`` raises.
    NONE = enum.auto()
    #: A traced value: no number yet.
    ABSTRACT = enum.auto()


@dataclass(frozen=True, slots=True)
class Count:
    """A value read as a count; `steps` is what `int()` makes of it, None when it raises or is traced."""

    kind: Kind
    steps: int | None = None


def count_of(value: Any) -> Count:
    """Read a `length` as `lax.scan` does: by `int()`."""
    if isinstance(value, jax.core.Tracer):
        return Count(Kind.ABSTRACT)
    try:
        steps = int(value)
    except Exception:  # noqa: BLE001  # any object may stand here, and raise anything
        return Count(Kind.NONE)
    if steps < 0:
        return Count(Kind.NEGATIVE, steps)
    if is_int(value):
        return Count(Kind.WHOLE, steps)
    return Count(Kind.SAME if is_number(value) and value == steps else Kind.BENT, steps)


def is_int(value: Any) -> bool:
    """A Python int (no bool), a NumPy integer, or an integer array without axes."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return bool(jax.numpy.issubdtype(dtype, np.integer)) and getattr(value, "shape", None) == ()
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """A real number of any type but bool, or an array without axes that holds one."""
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        real = jax.numpy.issubdtype(dtype, np.integer) or jax.numpy.issubdtype(dtype, np.floating)
        return bool(real) and getattr(value, "shape", None) == ()
    return isinstance(value, int | float) and not isinstance(value, bool)
