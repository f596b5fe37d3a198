"""What runners return: frozen, on the host, ready to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.base.avals import LeafType


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One leaf over time: `values` has a leading axis of steps in visiting order (T for x and y, T + 1 for a carry).

    Typed PRNG keys stand there as their raw data: then `type` says so (``key<fry>``) and `values` has one axis more.
    """

    path: str
    type: LeafType
    values: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class ScanResult:
    """A scan that ran.

    Attributes:
        final: the final carry, a pytree of NumPy arrays.
        ys: the stacked outputs as `lax.scan` returns them (in the order of xs, also when reversed).
        carries: per carry leaf, T + 1 values in visiting order: position 0 is init (after promotion), p is what step
            p - 1 returned.
        xs, ys_series: per leaf, T values in visiting order.
        length: T.
        padded: the length that was compiled (>= T).
        compiled: True when this call compiled, False when the program came from the cache.
        reverse: the direction: position p visits t = T - 1 - p when set.
    """

    final: Any
    ys: Any
    carries: tuple[Series, ...]
    xs: tuple[Series, ...]
    ys_series: tuple[Series, ...]
    length: int
    padded: int
    compiled: bool
    reverse: bool = False

    @property
    def order(self) -> tuple[int, ...]:
        """The t visited at each position."""
        return tuple(range(self.length - 1, -1, -1)) if self.reverse else tuple(range(self.length))
