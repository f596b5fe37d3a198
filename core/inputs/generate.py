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
    """One formula: its id, the words on its label, x as a function of t and of the column j, and of t alone.

    Attributes:
        formula: with columns (features, examples, or both, counted by j in C order).
        plain: for a sequence of numbers.
        seeded: whether the seed matters.
    """

    id: str
    label: str
    formula: str
    plain: str
    seeded: bool = False


_NOISE = "{x} drawn from a standard normal distribution, by the seed"
#: How x is written by the axes that there are, and what j counts where there are two more than time.
_X = {(): "x[t]", ("batch",): "x[t, j]", ("features",): "x[t, j]", ("batch", "features"): "x[t, b, f]"}
_X_BATCH_FIRST = {("batch",): "x[j, t]", ("batch", "features"): "x[b, t, f]"}
COUNTS = "{formula}, with j = {features}·b + f"
#: Columns differ, so that mixed-up axes show in the numbers.
GENERATORS = (
    Generator("ramp", "ramp", "{x} = t + 1 + 10·j", "{x} = t + 1"),
    Generator("ones", "ones", "{x} = 1", "{x} = 1"),
    Generator("sine", "sine", "{x} = sin(2π·t/16 + j·π/4)", "{x} = sin(2π·t/16)"),
    Generator("impulse", "impulse", "{x} = 1 at t = j, else 0", "{x} = 1 at t = 0, else 0"),
    Generator("alternating", "alternating", "{x} = (−1)^(t + j)", "{x} = (−1)^t"),
    Generator("noise", "seeded noise", _NOISE, _NOISE, seeded=True),
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


def generator_of(name: str) -> Generator:
    """The generator with this id.

    Raises:
        KeyError: there is none.
    """
    for generator in GENERATORS:
        if generator.id == name:
            return generator
    raise KeyError(name)


def formula_of(name: str, batch: int, features: int, *, batch_first: bool = False) -> str:
    """The formula as it holds for these axes: j counts the columns, over examples and features in C order."""
    generator = generator_of(name)
    axes = tuple(axis for axis, size in (("batch", batch), ("features", features)) if size)
    x = (_X_BATCH_FIRST if batch_first and batch else _X)[axes]
    text = fill(generator.formula if axes else generator.plain, x=x)
    return fill(COUNTS, formula=text, features=features) if len(axes) == 2 and "j" in text else text


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
