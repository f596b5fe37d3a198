"""What padding does to a layer: whether it moves the valid part, and which carry is returned.

None of this compares two ways of computing. It changes what stands in the padding, or takes it away, and looks whether
the part that counts stays the same. Where masking is on it must; where it is off, the difference is what the mistake costs.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from core.base.sequences import Direction, Masking, SequenceResult
from core.base.tolerance import Difference
from core.contract.subject import SequenceTrial
from core.runners.cells import apart
from core.runners.sequence import run_sequence, run_steps, starts_of
from core.runners.sequence_compare import CheckName, Leaf, SequenceCheck, compare, final_leaves
from core.runners.sequence_read import gather, masking_of, told

type Array = np.ndarray[Any, Any]
type Parts = tuple[Array, ...]

NO_PADDING = "There is no padding: every step of every example is valid."
NOTHING_VALID = "No example has a valid step."

#: What is put into the padding: far from any sensible input, and still finite in half precision.
LARGE = 1_000.0


def padding_checks(trial: SequenceTrial, result: SequenceResult) -> tuple[SequenceCheck, ...]:
    """The checks END, ALONE, LARGE and NAN. Raises nothing for a trial that ran."""
    padded = not all(direction.valid.all() for direction in result.directions)
    changed = [
        _replaced(name, trial, result, value) if padded else SequenceCheck(name, None, reason=NO_PADDING)
        for name, value in ((CheckName.LARGE, LARGE), (CheckName.NAN, np.nan))
    ]
    return _end(result), _alone(trial, result), *changed


def without_masking(trial: SequenceTrial, result: SequenceResult) -> tuple[tuple[Parts, ...] | None, Difference | None]:
    """The final carry of each direction when the layer is told nothing of padding, and how far the real one is from it."""
    if masking_of(trial) is Masking.NONE:
        return None, None
    plain = run_sequence(replace(trial, masking=Masking.NONE, slips=frozenset()))
    finals = tuple(direction.final for direction in plain.directions)
    return finals, apart([d.final for d in result.directions], list(finals))


def _end(result: SequenceResult) -> SequenceCheck:
    """The returned carry against the one after the last valid step: init where an example has none."""
    leaves: list[Leaf] = []
    for index, direction in enumerate(result.directions):
        length = len(direction.valid)
        # Position of the carry after the last valid step; 0 is init.
        last = np.where(direction.valid, np.arange(1, length + 1)[:, None], 0).max(axis=0, initial=0)
        want = [part[last, np.arange(part.shape[1])] for part in direction.carries]
        leaves += final_leaves(direction, want, bool(index))
    return compare(CheckName.END, leaves, result.length)


def _alone(trial: SequenceTrial, result: SequenceResult) -> SequenceCheck:
    """Each example with its valid steps and nothing else, whatever the layer was told.

    Every row of the batch is that example: the program is the very one that ran, so that not even rounding differs, and
    no other example is near.
    """
    read = told(trial)
    starts = starts_of(trial, read.batch)
    leaves: list[Leaf] = []
    for index, (direction, start) in enumerate(zip(result.directions, starts, strict=True)):
        x = gather(read.inputs, direction.order)
        shape = direction.carries[0].shape[1:]
        outputs = np.array(direction.outputs)
        finals = [np.array(part) for part in direction.final]
        for example in range(read.batch):
            valid = direction.valid[:, example]
            own = tuple(np.repeat(np.broadcast_to(p, shape)[example][None], shape[0], axis=0) for p in start)
            steps = np.repeat(x[valid, example][:, None], shape[0], axis=1)
            carries, ys = run_steps(trial, index, own, steps)
            outputs[valid, example] = ys[:, example]
            for part, alone in zip(finals, carries, strict=True):
                part[example] = alone[-1, example]
        leaves.append(Leaf("ys", direction.outputs, outputs, direction.order, bool(index)))
        leaves += final_leaves(direction, finals, bool(index))
    return compare(CheckName.ALONE, leaves, result.length)


def _replaced(name: CheckName, trial: SequenceTrial, result: SequenceResult, value: float) -> SequenceCheck:
    """The same layer with other numbers in the padding: valid outputs and final carry of both."""
    padding = ~_valid_by_axes(trial, result)
    inputs = np.array(trial.inputs)
    inputs[padding] = value
    other = run_sequence(replace(trial, inputs=inputs))
    leaves: list[Leaf] = []
    for index, (direction, moved) in enumerate(zip(result.directions, other.directions, strict=True)):
        leaves.append(_valid_outputs(direction, moved, bool(index)))
        leaves += final_leaves(direction, moved.final, bool(index))
    return compare(name, leaves, result.length)


def _valid_outputs(direction: Direction, moved: Direction, backward: bool) -> Leaf:
    """Outputs of valid steps; those of padding count for nothing and are taken from the same run twice."""
    want = np.where(direction.valid[:, :, None], moved.outputs, direction.outputs)
    return Leaf("ys", direction.outputs, want, direction.order, backward)


def _valid_by_axes(trial: SequenceTrial, result: SequenceResult) -> Array:
    """Where the data are valid, in the axes of `trial.inputs`."""
    direction = result.forward
    read: Array = np.ones(direction.valid.shape, bool)
    read[direction.order, np.arange(read.shape[1])] = direction.valid
    if trial.read.shape[1] == 1:  # repeated for several rows: a step is padding where it is for each of them
        read = read.any(axis=1, keepdims=True)
    return read if trial.time_major else read.swapaxes(0, 1)
