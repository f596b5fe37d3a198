"""What the gradient of a scan is, as a result: leaf by leaf, with what of it is not finite and how it was checked."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.base.avals import LeafType
from core.base.tolerance import Difference

type Array = np.ndarray[Any, Any]


class Target(enum.StrEnum):
    """The scalar that is differentiated: a sum over all floating-point leaves."""

    #: Of the final carry.
    FINAL = "final"
    #: Of the stacked outputs.
    YS = "ys"


@dataclass(frozen=True, slots=True, eq=False)
class LeafGradient:
    """The gradient with respect to one leaf of init or xs.

    Attributes:
        role: ``init`` or ``xs``.
        type: the leaf, under the path ``init…`` or ``xs…``.
        values: shaped like the leaf, xs in their own order, of the leaf's dtype; None where the leaf has no gradient
            (whole numbers, bools, keys).
    """

    role: str
    type: LeafType
    values: Array | None

    @property
    def wild(self) -> int:
        """How many of its numbers are NaN or infinite."""
        return 0 if self.values is None else int((~np.isfinite(self.values.astype(np.float64))).sum())


@dataclass(frozen=True, slots=True)
class WildGradient:
    """A number of a gradient that is NaN or infinite.

    Attributes:
        path: of its leaf, ``init[0]`` or ``xs``.
        t: the step that read it; None in init.
        index: within init's leaf, or within that one x.
        value: NaN or ±infinity.
    """

    path: str
    t: int | None
    index: tuple[int, ...]
    value: float


@dataclass(frozen=True, slots=True, eq=False)
class ScanGradient:
    """The gradient of a scan.

    Attributes:
        target: what was differentiated.
        value: that number.
        leaves: all of init, then all of xs.
        first: the first number that is not finite in the order in which the backward pass works, from the last step
            visited to the first, and then init; None when all are finite.
        length: T.
        compiled: whether this call compiled.
    """

    target: Target
    value: float
    leaves: tuple[LeafGradient, ...]
    first: WildGradient | None
    length: int
    compiled: bool

    @property
    def wild(self) -> int:
        """How many numbers of the gradient are NaN or infinite."""
        return sum(leaf.wild for leaf in self.leaves)

    @property
    def behind_a_value(self) -> bool:
        """Whether the value is finite and the gradient is not: rule N502."""
        return bool(np.isfinite(self.value)) and self.wild > 0

    @property
    def without(self) -> tuple[str, ...]:
        """Paths of the leaves that have no gradient."""
        return tuple(leaf.type.path for leaf in self.leaves if leaf.values is None)


@dataclass(frozen=True, slots=True, eq=False)
class ScanGradientCheck:
    """Some numbers of a gradient beside central differences of the step in float64.

    Attributes:
        difference: the gradient against them.
        step: of the differences.
        compared: how many numbers were compared.
        bends: how many more were looked at where the step has a corner or an edge (slopes to the left and to the right
            differ): there is no derivative to compare with, and whatever the gradient says is a choice.
        total: how many numbers the gradient has.
    """

    difference: Difference
    step: float
    compared: int
    bends: int
    total: int
