"""The data of the Sequence page: a batch made by a formula or typed, and what stands in its padding.

Each formula is one line of NumPy, and that very line is in the program that the page shows (`sequence_source`): what is
shown is what is run. Everything is worked out in double precision and then rounded to float32 once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.parse import Numbers, UnreadableError, parse_sequence, to_array
from core.inputs.sequence_fields import BTF, IMPULSE, KEPT, NAN, NOISE, RAMP, REPEAT, SINE, ZEROS

type Array = np.ndarray[Any, Any]
type Sizes = tuple[int, int, int]

#: Steps of one period of the sine.
PERIOD: Final = 16

FORMULAS: Final[Mapping[str, str]] = {
    SINE: "x[b, t, f] = sin(2π·t/16 + (F·b + f)·π/4)",
    RAMP: "x[b, t, f] = 0.1·(t + 1) + 0.5·b − 0.25·f",
    IMPULSE: "x[b, t, f] = 1 at t = 0, else 0",
    NOISE: "x[b, t, f] drawn from a standard normal distribution, by the seed",
}
NO_NUMBERS = "There are no numbers here: nested lists of shape ({axes}), or a line for each step of one example."
WRONG_AXES = "The numbers have {got} axes: a batch has three, ({axes}), or two, a line for each step of one example."


def make(source: str, sizes: Sizes, axes: str, seed: int) -> Array:
    """Data made by a formula, float64.

    Args:
        source: one of `FORMULAS`.
        sizes: (B, T, F).
        axes: ``BTF`` or ``TBF``, the order of the axes that the data get.
        seed: of the noise.
    """
    return _MAKE[source](sizes, axes, seed)


def shape_of(sizes: Sizes, axes: str) -> Sizes:
    """(B, T, F), or (T, B, F)."""
    batch, length, features = sizes
    return (batch, length, features) if axes == BTF else (length, batch, features)


def noise(sizes: Sizes, axes: str, seed: int) -> Array:
    """Drawn step by step, so that a longer sequence begins with the shorter one."""
    batch, length, features = sizes
    values = np.random.default_rng(seed).standard_normal((length, batch, features))
    return values if axes != BTF else values.swapaxes(0, 1)


def _grid(sizes: Sizes, axes: str) -> tuple[Array, Array, Array]:
    """The indices b, t, f as arrays that broadcast to the data."""
    shape = shape_of(sizes, axes)
    first, second, f = np.ogrid[: shape[0], : shape[1], : shape[2]]
    return (first, second, f) if axes == BTF else (second, first, f)


def _sine(sizes: Sizes, axes: str, _: int) -> Array:
    b, t, f = _grid(sizes, axes)
    return np.asarray(np.sin(2 * np.pi * t / PERIOD + (sizes[2] * b + f) * np.pi / 4))


def _ramp(sizes: Sizes, axes: str, _: int) -> Array:
    b, t, f = _grid(sizes, axes)
    return np.asarray(0.1 * (t + 1) + 0.5 * b - 0.25 * f)


def _impulse(sizes: Sizes, axes: str, _: int) -> Array:
    values = np.zeros(shape_of(sizes, axes))
    values[(slice(None), slice(1)) if axes == BTF else slice(1)] = 1.0
    return values


_MAKE: Final[Mapping[str, Callable[[Sizes, str, int], Array]]] = {
    SINE: _sine,
    RAMP: _ramp,
    IMPULSE: _impulse,
    NOISE: noise,
}


def padded(data: Array, valid: Array, axes: str, filler: str, seed: int) -> Array:
    """The data with something else in the steps that are padding; a copy.

    Args:
        data: (B, T, F) or (T, B, F), as `axes` says.
        valid: (B, T) bool, the steps that are real.
        axes: order of the axes of `data`.
        filler: ``zeros``, ``nan``, ``noise``, ``repeat last`` (the last real step before it; where none was, the step
            at t = 0 stays as it is), or ``as it is``.
        seed: of the noise.
    """
    if filler == KEPT or not data.size:
        return data.copy()
    if filler == REPEAT:
        last = np.maximum.accumulate(np.where(valid, np.arange(valid.shape[1]), 0), axis=1)
        index = last if axes == BTF else last.T
        return np.take_along_axis(data, index[..., None], axis=axes.index("T"))
    batch, length = valid.shape
    other = noise((batch, length, data.shape[2]), axes, seed) if filler == NOISE else np.float64(_FILLED[filler])
    real = valid if axes == BTF else valid.T
    return np.where(real[..., None], data, other)


_FILLED: Final[Mapping[str, float]] = {ZEROS: 0.0, NAN: np.nan}


def read_batch(text: str, axes: str) -> Numbers:
    """Typed data: nested lists with three axes, in the order of `axes`; rows are the steps of one example.

    Raises:
        UnreadableError: with the place.
    """
    numbers = parse_sequence(text)
    if numbers.shape == (0,):
        raise UnreadableError(fill(NO_NUMBERS, axes=", ".join(axes)))
    if not 1 <= len(numbers.shape) <= 3:
        raise UnreadableError(fill(WRONG_AXES, got=len(numbers.shape), axes=", ".join(axes)))
    return numbers


def typed_shape(numbers: Numbers, axes: str) -> Sizes:
    """The shape of the data that typed numbers stand for, in the order of `axes`."""
    if len(numbers.shape) == 3:
        return numbers.shape[0], numbers.shape[1], numbers.shape[2]
    length, features = (*numbers.shape, 1)[:2]
    return shape_of((1, length, features), axes)


def typed_array(numbers: Numbers, axes: str) -> Array | None:
    """The typed data; None where there are more than any array may have.

    Raises:
        UnreadableError: a number has no value in float32.
    """
    if numbers.size > LIMITS["elements"].value:
        return None
    return to_array(numbers, "float32").reshape(typed_shape(numbers, axes))
