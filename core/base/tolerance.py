"""How equal two results must be: one table, and the comparison that uses it.

Two paths to the same number round differently (a compiled loop fuses and reorders, an eager one does not), so floats
are compared with a tolerance that is stated beside every result; whole numbers and bools are exact. NaN equals NaN at
the same place, an infinity equals itself, and nothing is ever replaced by a finite number to make a comparison pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from core.base.text import fill

TEXT_EXACT = "exact"
TEXT_CLOSE = "rtol {rtol}, atol {atol}"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """``|got − want| ≤ atol + rtol·|want|``; both 0 means equal to the last bit."""

    rtol: float = 0.0
    atol: float = 0.0

    @property
    def text(self) -> str:
        """As it stands beside a result."""
        template = TEXT_CLOSE if self.rtol or self.atol else TEXT_EXACT
        return fill(template, rtol=_short(self.rtol), atol=_short(self.atol))


def _short(number: float) -> str:
    return f"{number:g}".replace("e-0", "e-")


EXACT = Tolerance()

#: By dtype. float32 is what the guides promise; the half-size ones are JAX's own test tolerances
#: (`jax.test_util`, default_tolerance); everything that is not here and no float is exact.
TOLERANCES: Mapping[str, Tolerance] = {
    "float64": Tolerance(1e-12, 1e-12),
    "float32": Tolerance(1e-5, 1e-6),
    "complex64": Tolerance(1e-5, 1e-6),
    "complex128": Tolerance(1e-12, 1e-12),
    "float16": Tolerance(1e-3, 1e-3),
    "bfloat16": Tolerance(1e-2, 1e-2),
}


def tolerance_of(*dtypes: Any) -> Tolerance:
    """The tolerance between values of these dtypes: that of the least precise."""
    return max((_one(jnp.dtype(d)) for d in dtypes), key=lambda t: (t.rtol, t.atol))


def tolerance_in(dtype: Any, computed: Iterable[str]) -> tuple[Tolerance, str]:
    """The tolerance of a leaf that a program computed: that of the least precise dtype which the program computes in.

    A float32 leaf out of bfloat16 products is as exact as they are: XLA may keep their excess precision, an eager loop
    does not. Whole numbers stay exact.

    Args:
        dtype: of the leaf.
        computed: names of the floating-point dtypes that the program computes in.

    Returns:
        the tolerance, and the dtype that made it wider than the leaf's own; "" when none did.
    """
    own = tolerance_of(dtype)
    if own == EXACT:
        return own, ""
    wider = [(tolerance_of(name), name) for name in sorted(computed)]
    least, name = max([(own, ""), *wider], key=lambda pair: (pair[0].rtol, pair[0].atol))
    return (least, name) if least != own else (own, "")


def _one(dtype: np.dtype[Any]) -> Tolerance:
    if dtype.name in TOLERANCES:
        return TOLERANCES[dtype.name]
    if jnp.issubdtype(dtype, jnp.floating):  # the 8-bit and 4-bit floats
        eps = float(jnp.finfo(dtype).eps)  # type: ignore[no-untyped-call]
        return Tolerance(eps, eps)
    return EXACT


@dataclass(frozen=True, slots=True)
class Difference:
    """How far two arrays are apart.

    Attributes:
        largest: the largest absolute difference, in the unit of the values; inf where the shapes differ, or where one
            is finite and the other is not.
        within: whether every element is within the tolerance.
        tolerance: the one that was used.
        first: index of the first element, in C order, that is not within it; None when all are or the shapes differ.
    """

    largest: float
    within: bool
    tolerance: Tolerance
    first: tuple[int, ...] | None = None


def difference(got: Any, want: Any, tolerance: Tolerance | None = None) -> Difference:
    """Compare two arrays element by element.

    Args:
        got: array-like.
        want: array-like of the same shape (nothing is broadcast).
        tolerance: by default the one of their dtypes.
    """
    a, b = np.asarray(got), np.asarray(want)
    used = tolerance if tolerance is not None else tolerance_of(a.dtype, b.dtype)
    if a.shape != b.shape:
        return Difference(np.inf, False, used)
    if a.dtype.kind == "f" and b.dtype.kind == "f":
        # Nearly always: finite, and nowhere farther apart than `atol` alone allows. A NaN or infinity fails this test.
        with np.errstate(invalid="ignore"):
            largest = float(np.abs(np.subtract(a, b, dtype=np.float64)).max(initial=0.0))
        if largest <= used.atol:
            return Difference(largest, True, used)
    same = np.asarray(a == b)
    wide_a, wide_b = _wide(a), _wide(b)
    same |= np.isnan(wide_a) & np.isnan(wide_b)
    finite = np.isfinite(wide_a) & np.isfinite(wide_b)
    apart = np.full(a.shape, np.inf)
    np.abs(np.subtract(wide_a, wide_b, out=np.zeros_like(wide_a), where=finite), out=apart, where=finite)
    apart[same] = 0.0
    close = same | (apart <= used.atol + used.rtol * np.where(finite, np.abs(wide_b), 0.0))
    if used == EXACT:
        close = same
    bad = np.argwhere(~close)
    # `len`, not `size`: where a single number without axes is off, `bad` has shape (1, 0).
    return Difference(float(apart.max(initial=0.0)), not len(bad), used, tuple(bad[0].tolist()) if len(bad) else None)


def _wide(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """In double precision, where differences of every dtype can be told."""
    return values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
