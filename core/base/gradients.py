"""What gradients through a sequence are, as results: how much of an input is left in a later state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.base.tolerance import Difference

type Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class MemoryMap:
    """Frobenius norms of the derivatives of each state after a step with respect to each input.

    Attributes:
        kind: name of the cell.
        h: (T, T) float64: ``h[s, t]`` is ‖∂h_{s+1} / ∂x_t‖ over all H units and F features of one example: the hidden
            state that step s leaves, against the input that step t read. Exactly 0 where t > s.
        c: the same of the cell state; None for a cell without one.
        compiled: whether this call compiled.
        vanished: how many norms are not 0 but below what float64 holds (about 1e-308), and stand here as 0.
        exploded: how many are above what it holds, and stand here as infinity.
    """

    kind: str
    h: Array
    c: Array | None
    compiled: bool
    vanished: int = 0
    exploded: int = 0

    @property
    def last_h(self) -> Array:
        """(T,): ‖∂h_T / ∂x_t‖ for every t."""
        return np.asarray(self.h[-1])

    @property
    def last_c(self) -> Array | None:
        """(T,): ‖∂c_T / ∂x_t‖ for every t."""
        return None if self.c is None else np.asarray(self.c[-1])


@dataclass(frozen=True, slots=True, eq=False)
class MemoryCheck:
    """The last row of a map, worked out otherwise.

    Attributes:
        grad: reverse mode (`jax.grad`, one pass a unit) against the map's forward mode, float32.
        finite: central differences of the NumPy formulas in float64 against the map.
        step: the step of those differences.
        trajectory: each step of the trajectory that all three follow, against the NumPy formulas in float64.
        beyond: how many norms of the row are above float32's range, where `jax.grad` itself gives infinity or NaN: they
            are not part of `grad`.
    """

    grad: Difference
    finite: Difference
    step: float
    trajectory: Difference
    beyond: int = 0
