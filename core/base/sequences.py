"""What a layer over sequences takes and gives: frozen, on the host, in visiting order, ready to draw."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

type Array = np.ndarray[Any, Any]


class Masking(enum.StrEnum):
    """How a layer is told which steps are padding."""

    #: It is not: every step counts.
    NONE = "none"
    #: ``nnx.RNN(cell)(x, seq_lengths=lengths)``: every step is computed, the carry after the last valid one is returned.
    LENGTHS = "lengths"
    #: A scan whose step keeps the carry where the mask says so: holes may be anywhere.
    MASK = "mask"


class Slip(enum.StrEnum):
    """A mistake made on purpose."""

    #: The (B,) mask of a step meets the (B, H) carry without ``[:, None]``: L312.
    FEATURE_MASK = "feature_mask"
    #: The cell is built inside the step: L313.
    BUILT_IN_STEP = "built_in_step"
    #: ``carry, ys = rnn(x)`` without ``return_carry``: L319.
    UNPACKED = "unpacked"
    #: A mask with holes is summed into ``seq_lengths``: L321.
    SUMMED_MASK = "summed_mask"


@dataclass(frozen=True, slots=True, eq=False)
class Direction:
    """One direction of a layer that ran. Every leading axis is the position p in visiting order, never padded.

    Attributes:
        carries: per part of the carry (T + 1, B, H): position 0 is init, p is what step p − 1 left.
        outputs: (T, B, H).
        gates: by name (T, B, H), what comes out of each gate's curve.
        order: (T, B) int: the t of the data that is read at a position. With ``reverse`` and lengths each example has
            its own: its valid steps from the last to the first, then its padding.
        valid: (T, B) bool: whether that position is part of the sequence, as lengths or mask say (all where neither
            was given). It says nothing about what the layer did with it.
        final: per part (B, H): the carry that is returned.
    """

    carries: tuple[Array, ...]
    outputs: Array
    gates: Mapping[str, Array]
    order: Array
    valid: Array
    final: tuple[Array, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SequenceResult:
    """A layer that ran.

    Attributes:
        kind: name of the cell.
        forward: the only direction, or the forward one; also a reversed one.
        backward: of a bidirectional layer.
        outputs: (T, B, H), of a bidirectional layer (T, B, 2 H): as the layer returns them, but time-first.
        padded: the length that was compiled.
        compiled: whether this call compiled anything.
        reverse: the forward direction runs from the end.
        keep_order: whether `outputs` are in the order of the inputs although it does.
    """

    kind: str
    forward: Direction
    backward: Direction | None
    outputs: Array
    padded: int
    compiled: bool
    reverse: bool = False
    keep_order: bool = False

    @property
    def length(self) -> int:
        """T as the layer read it."""
        return len(self.outputs)

    @property
    def directions(self) -> tuple[Direction, ...]:
        """Both, or the one."""
        return (self.forward,) if self.backward is None else (self.forward, self.backward)
