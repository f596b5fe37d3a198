"""Two ways of running a layer over sequences, compared: what is apart, by how much, and where first."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.base.sequences import Direction
from core.base.tolerance import Difference, Tolerance, difference

type Array = np.ndarray[Any, Any]


class CheckName(enum.StrEnum):
    """What is checked, in the order it is shown."""

    #: `nnx.RNN` or `nnx.Bidirectional` itself, called without jit: outputs, and the carry it returns.
    LAYER = "layer"
    #: `lax.scan` with the mask as one would write it, without jit: what stands there for `nnx.RNN`.
    SCAN = "scan"
    #: The cell of Flax in a Python loop, one step after the other.
    LOOP = "loop"
    #: The NumPy formulas in a loop, one step after the other.
    FORMULAS = "formulas"
    #: The carry that is returned is the one after the last valid step.
    END = "end"
    #: Each example with nothing but its valid steps, and no other in the batch: the same outputs and final carry.
    ALONE = "alone"
    #: Large numbers in the padding leave valid outputs and final carry as they are.
    LARGE = "large"
    #: NaN in the padding does.
    NAN = "nan"

    @property
    def about_padding(self) -> bool:
        """Whether it says what padding does: then a difference is no error of the program but what the layer does."""
        return self in _ABOUT_PADDING


#: Beyond a tolerance by so many times the rounding of float32 and no more: two right ways may be. Each of them is off
#: by its own rounding, in another order of the same sums.
_TIMES_ROUNDING: Final = 4.0

_ABOUT_PADDING: Final = frozenset({CheckName.END, CheckName.ALONE, CheckName.LARGE, CheckName.NAN})


@dataclass(frozen=True, slots=True)
class Place:
    """Where two ways part.

    Attributes:
        leaf: ``carry[0]`` or ``carry`` (a carry over time), ``ys`` (the outputs), ``final[0]`` or ``final``.
        t: of the data: the step that gave this output or left this carry, −1 for init; None of a final carry.
        example: index in the batch.
        unit: index of the hidden unit (of a bidirectional layer's merged outputs: below 2 H).
        backward: whether it belongs to the backward direction.
        got, want: the two values, as ``repr`` has them.
    """

    leaf: str
    t: int | None
    example: int
    unit: int
    backward: bool
    got: str
    want: str


@dataclass(frozen=True, slots=True)
class SequenceCheck:
    """One check of a layer that ran.

    Attributes:
        name: which.
        agrees: whether everything is within its tolerance; None where the check cannot be made.
        steps: how many steps of each direction it covers.
        largest: the largest absolute difference; inf where one value is finite and the other is not.
        equal: whether all values are the same to the last bit.
        tolerance: the widest that any leaf has by its dtypes.
        first: where it is first beyond the tolerance; None when it never is (or where shapes differ).
        reason: why it cannot be made, in words; "" where it is.
        rounding: where ways of computing do not agree: how far the formulas in float32 are from the same in float64,
            at any step. It says what rounding alone does to these numbers (large inputs, a layer that is chaotic); the
            tolerance stays what it is.
    """

    name: CheckName
    agrees: bool | None
    steps: int = 0
    largest: float = 0.0
    equal: bool = True
    tolerance: Tolerance | None = None
    first: Place | None = None
    reason: str = ""
    rounding: float | None = None

    @property
    def only_rounding(self) -> bool:
        """Whether it is beyond the tolerance, but not farther than float32 itself is from float64 on these numbers."""
        return self.rounding is not None and np.isfinite(self.largest) and is_rounding(self.largest, self.rounding)


def is_rounding(largest: float, rounding: float) -> bool:
    """Whether a difference is of the size of the rounding of float32, as measured against float64."""
    return largest <= _TIMES_ROUNDING * rounding


@dataclass(frozen=True, slots=True, eq=False)
class Leaf:
    """One pair of arrays, and how to tell a place in them.

    Attributes:
        path: name of the leaf.
        got, want: (N, B, H) over time, or (B, H) of a final carry.
        times: (N, B) int: the t at each row; None of a final carry.
        backward: of the backward direction.
    """

    path: str
    got: Array
    want: Array
    times: Array | None = None
    backward: bool = False


def compare(name: CheckName, leaves: Iterable[Leaf], steps: int) -> SequenceCheck:
    """All leaves compared: the first that is beyond its tolerance, the earliest row of it, names the place."""
    every = [(leaf, difference(leaf.got, leaf.want)) for leaf in leaves]
    bad = [(leaf, apart) for leaf, apart in every if not apart.within]
    widest = max((apart.tolerance for _, apart in every), key=lambda t: (t.rtol, t.atol), default=None)
    # Of leaves over time, the one that parts earliest; a final carry only where nothing else does.
    bad.sort(key=lambda one: one[1].first[0] if one[0].times is not None and one[1].first else np.inf)
    return SequenceCheck(
        name=name,
        agrees=not bad,
        steps=steps,
        largest=max((apart.largest for _, apart in every), default=0.0),
        equal=all(apart.largest == 0.0 for _, apart in every),
        tolerance=widest,
        first=_place(*bad[0]) if bad else None,
    )


def _place(leaf: Leaf, apart: Difference) -> Place | None:
    if apart.first is None:
        return None
    *row, example, unit = apart.first
    t = None if leaf.times is None else int(leaf.times[row[0], example])
    got, want = (repr(values[apart.first].item()) for values in (leaf.got, leaf.want))
    return Place(leaf.path, t, example, unit, leaf.backward, got, want)


def part_name(root: str, index: int, count: int) -> str:
    """``carry`` of one part, ``carry[0]`` of several."""
    return root if count == 1 else f"{root}[{index}]"


def times_of(direction: Direction) -> Array:
    """(T + 1, B): the t that left each carry; −1 for init."""
    before = np.full((1, direction.order.shape[1]), -1)
    return np.concatenate([before, direction.order])


def final_leaves(direction: Direction, want: Iterable[Array], backward: bool) -> list[Leaf]:
    """The parts of a final carry against others."""
    count = len(direction.final)
    pairs = zip(direction.final, want, strict=True)
    return [Leaf(part_name("final", i, count), got, other, None, backward) for i, (got, other) in enumerate(pairs)]
