"""One example of a layer as the gradient programs take it: its cell, parameters, visited inputs, carry, and which steps count.

Gradient programs are compiled at the exact length (padding turns some products into NaN gradients) and are kept in a
store of their own, so that a length slider on one page does not push out what the other pages run.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from core.base.limits import LIMITS
from core.base.sequences import Masking
from core.base.text import fill
from core.contract.subject import SequenceTrial
from core.runners.cache import Programs, on_clear
from core.runners.cell_formulas import KINDS, CellKind
from core.runners.layers import CellParts, cells_of

type Array = np.ndarray[Any, Any]

TWO_DIRECTIONS = "A bidirectional layer has two chains of carries, and each has a map of its own: choose one direction."
ON_PURPOSE = "The map is that of a layer without a mistake made on purpose: take {slip} back."
LEFT_OVER = "The map starts from an init that no input of this sequence has changed: choose zeros or typed numbers."
BAD_LENGTH = "The length of example {example} is {length}: the map needs a whole number from 1 to {steps}."
BAD_COUNT = "There are {got} lengths: the map needs one for each of the {want} examples that the layer reads."
BAD_MASK = "The mask has the shape {got}: the map needs {want}."
TOO_MUCH = (
    "This map takes {work} billion multiplications (T² × F × H² × the gates), and the limit is {limit}: "
    "a shorter sequence or a smaller hidden size has one."
)
NO_STEPS = "There are no steps, so there is nothing to take a derivative of."

#: The store of everything that is differentiated.
GRADIENT_PROGRAMS: Final = Programs(LIMITS["gradient_programs"].value)
on_clear(GRADIENT_PROGRAMS.clear)


class NoMapError(ValueError):
    """This trial has no map; the message says why, in words for a page."""


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """What the programs take.

    Attributes:
        cell: its parts, with the changes of `trial.weights` made.
        carry: parts of init, each (H,) float32.
        xs: (T, F) in visiting order, float32.
        valid: (T,) bool in visiting order: steps that may change the carry.
    """

    cell: CellParts
    carry: tuple[Array, ...]
    xs: Array
    valid: Array

    @property
    def kind(self) -> CellKind:
        """Of the cell."""
        return self.cell.kind

    @property
    def length(self) -> int:
        """T."""
        return len(self.xs)

    @property
    def hidden(self) -> int:
        """H."""
        return len(self.carry[0])

    @property
    def size(self) -> tuple[str, int, int]:
        """What tells one program from another, beside the types: the cell's name, F, H."""
        return self.kind.name, int(self.xs.shape[1]), self.hidden

    @property
    def bare(self) -> CellParts:
        """The cell's structure alone: what a program that is kept may hold on to."""
        return replace(self.cell, leaves=())


def packed(kind: CellKind, parts: tuple[Any, ...]) -> Any:
    """The carry as a cell of this kind takes it: the pair, or the one part."""
    return parts if kind.pair else parts[0]


def example_of(trial: SequenceTrial, example: int) -> Example:
    """One example of a trial, in visiting order.

    `reverse` visits the valid steps from the last to the first, as ``nnx.RNN`` does. With lengths, the steps beyond an
    example's own are treated as masked: the layer computes them, but returns the carry from before them.

    Args:
        trial: a layer in one direction; data that the layer misreads are taken as it reads them.
        example: along the axis that the layer takes for the batch.

    Raises:
        NoMapError: it is bidirectional, has slips, starts from a left-over carry, has no steps, has lengths or a mask
            that do not fit, or is over the limit ``map_work``.
        IndexError: there is no such example.
    """
    if trial.bidirectional:
        raise NoMapError(fill(TWO_DIRECTIONS))
    if trial.slips:
        raise NoMapError(fill(ON_PURPOSE, slip=min(trial.slips).value))
    if trial.previous is not None:
        raise NoMapError(fill(LEFT_OVER))
    xs = np.asarray(trial.read[:, example], np.float32)
    if not len(xs):
        raise NoMapError(fill(NO_STEPS))
    kind = KINDS[trial.kind]
    work, limit = map_work(kind, len(xs), xs.shape[1], trial.hidden_features), LIMITS["map_work"].value
    if work > limit:
        raise NoMapError(fill(TOO_MUCH, work=round(work / 1e9), limit=round(limit / 1e9)))
    valid = _valid(trial, example, len(xs))
    if trial.reverse:
        order = _reversed_order(trial, valid)
        xs, valid = xs[order], valid[order]
    hidden = trial.hidden_features
    carry = tuple(
        np.zeros(hidden, np.float32) if trial.init is None else np.asarray(trial.init[i][example], np.float32)
        for i in range(len(kind.parts))
    )
    return Example(cells_of(trial)[0], carry, xs, valid)


def map_work(kind: CellKind, length: int, features: int, hidden: int) -> int:
    """How many multiplications a map takes: T·F tangents through the recurrent kernels of every gate, T times."""
    return length * length * features * hidden * hidden * len(kind.gates)


def _valid(trial: SequenceTrial, example: int, steps: int) -> Array:
    if trial.masking is Masking.LENGTHS and trial.lengths is not None:
        if len(trial.lengths) != trial.read.shape[1]:
            raise NoMapError(fill(BAD_COUNT, got=len(trial.lengths), want=trial.read.shape[1]))
        length = trial.lengths[example]
        if isinstance(length, bool) or not isinstance(length, int | np.integer) or not 1 <= length <= steps:
            raise NoMapError(fill(BAD_LENGTH, example=example, length=length, steps=steps))
        return np.arange(steps) < int(length)
    if trial.masking is Masking.MASK and trial.mask is not None:
        mask = np.asarray(trial.mask)
        mask = mask.T if trial.misread else mask
        want = trial.read.shape[1::-1]
        if mask.shape != want:
            raise NoMapError(fill(BAD_MASK, got=mask.shape, want=want))
        return np.asarray(mask[example], bool)
    return np.ones(steps, bool)


def _reversed_order(trial: SequenceTrial, valid: Array) -> Array:
    """The t at each position: with lengths the valid steps from the last to the first, then the padding."""
    steps = len(valid)
    if trial.masking is not Masking.LENGTHS:
        return np.arange(steps)[::-1]
    count = int(valid.sum())
    return np.concatenate([np.arange(count)[::-1], np.arange(count, steps)])
