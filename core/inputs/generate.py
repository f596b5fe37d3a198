"""Sequences made by a formula, so that a long or wide one needs no typing. Seeded: a link gives the same numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from core.base.avals import abstract
from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.parse import UnreadableError, numpy_dtype

type Formula = Callable[[np.ndarray[Any, Any], np.ndarray[Any, Any]], np.ndarray[Any, Any]]

#: Steps of one period of the sine.
PERIOD = 16
DOES_NOT_FIT = "A {name} of this length does not fit {dtype}: it reaches {value}. Take another dtype or a shorter one."


@dataclass(frozen=True, slots=True)
class Generator:
    """One formula: its id, the words on its label, and x as a function of t and of the column j (feature or example)."""

    id: str
    label: str
    formula: str


#: Columns differ, so that mixed-up axes show in the numbers.
GENERATORS = (
    Generator("ramp", "ramp", "x[t, j] = t + 1 + 10·j"),
    Generator("ones", "ones", "x[t, j] = 1"),
    Generator("sine", "sine", "x[t, j] = sin(2π·t/16 + j·π/4)"),
    Generator("impulse", "impulse", "x[t, j] = 1 at t = j, else 0"),
    Generator("alternating", "alternating", "x[t, j] = (−1)^(t + j)"),
    Generator("noise", "seeded noise", "x[t, j] drawn from a standard normal distribution, by the seed"),
)

_FORMULAS: dict[str, Formula] = {
    "ramp": lambda t, j: t + 1.0 + 10.0 * j,
    "ones": lambda t, j: np.ones_like(t + j, dtype=float),
    "sine": lambda t, j: np.sin(2 * math.pi * t / PERIOD + j * math.pi / 4),
    "impulse": lambda t, j: (t == j).astype(float),
    "alternating": lambda t, j: 1.0 - 2.0 * ((t + j) % 2),
}


def generate(
    name: str, length: int, columns: tuple[int, ...], dtype: str, seed: int = 0
) -> np.ndarray[Any, Any] | jax.ShapeDtypeStruct:
    """The sequence of shape ``(length, *columns)``, time first.

    Over the limit of elements nothing is allocated: the abstract shape comes back instead, for rule X601 to speak of.

    Args:
        name: id of a generator.
        length: T, at least 0.
        columns: sizes of the axes after time; their elements are counted by j in C order.
        dtype: one of `parse.DTYPES`. A bool is "greater than 0"; a whole number is rounded, noise three times as wide.
        seed: of the noise.

    Raises:
        UnreadableError: the values do not fit the dtype.
    """
    shape = (length, *columns)
    kind = numpy_dtype(dtype)
    if math.prod(shape) > LIMITS["elements"].value:
        return abstract(shape, kind)
    if name == "noise":
        # Drawn step by step, so that a longer sequence begins with the shorter one.
        values = np.random.default_rng(seed).standard_normal(shape)
    else:
        t = np.arange(length)[:, None]
        j = np.arange(math.prod(columns))[None, :]
        values = _FORMULAS[name](t, j).reshape(shape)
    return _cast(values, kind, name, dtype)


def _cast(values: np.ndarray[Any, Any], kind: np.dtype[Any], name: str, dtype: str) -> np.ndarray[Any, Any]:
    if kind.kind == "b":
        return values > 0
    if kind.kind == "i":
        whole = np.rint(values * (3 if name == "noise" else 1))
        info = np.iinfo(kind)
        if whole.size and (whole.max() > info.max or whole.min() < info.min):
            raise UnreadableError(fill(DOES_NOT_FIT, name=name, dtype=dtype, value=int(np.abs(whole).max())))
        return whole.astype(kind)
    return values.astype(kind)
