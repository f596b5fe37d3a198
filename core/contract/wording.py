"""Numbers and elements as they stand in a sentence."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from core.base.text import fill

#: Whole floats below this are written without a point or an exponent.
WHOLE = 1e10

ELEMENT = "{path} at {index}"


def show(value: Any) -> str:
    """A number in a sentence: whole ones in full, narrow floats as short as they can be told apart, others to 7 digits."""
    scalar = np.asarray(value)[()]
    if scalar.dtype.kind in "iub":
        return str(scalar)
    if scalar.dtype.kind == "c":
        return f"{complex(scalar):.7g}"
    if abs(float(scalar)) < WHOLE and float(scalar).is_integer():
        return str(int(scalar))
    if scalar.dtype == np.float64:
        return f"{float(scalar):.7g}"
    return str(scalar).removesuffix(".0")


def show_as(value: float, dtype: str) -> str:
    """A number as it stands in this dtype."""
    return show(np.asarray(value).astype(jnp.dtype(dtype)))


def element(path: str, index: tuple[int, ...]) -> str:
    """One element of a leaf: the path alone when the leaf is a single number."""
    return fill(ELEMENT, path=path, index=str(list(index))) if index else path
