"""One point of a layer that ran: the step that made it, taken apart in NumPy, and whether it gives what is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.base.sequences import SequenceResult
from core.base.tolerance import Difference
from core.contract.subject import SequenceTrial
from core.runners.cell_formulas import KINDS, CellKind, FormulaStep, GateWeights, formula_step
from core.runners.cells import Gate, StepNumbers, apart
from core.runners.layers import parameters
from core.runners.sequence_read import gather, held, told

type Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Point(StepNumbers):
    """The step of one example that made a carry: every array (1, H), worked out by the formulas in float32.

    Attributes:
        t: of the data that the step read.
        kept: (1, H) bool: where the new carry counts. All, but for a layer with a mask: where it is False the carry
            stays what it was, and `after` is what the cell would have made of it.
        shown: gates, output and carry against those of the result, within the tolerance of their dtype or not.
    """

    t: int
    kept: Array
    shown: Difference


def point(trial: SequenceTrial, result: SequenceResult, example: int, position: int, side: int = 0) -> Point:
    """The step that made the carry at a position.

    Args:
        trial: what was run.
        result: what `run_sequence` gave for it.
        example: index in the batch.
        position: of the carry, from 1 to T; step `position` − 1 made it. (0 is init: no step made that.)
        side: 0, or 1 for the backward direction.

    Raises:
        IndexError: no such example, position or direction.
    """
    direction, weights = result.directions[side], parameters(trial)[side]
    if not 1 <= position <= result.length:
        raise IndexError(position)
    kind, at = KINDS[result.kind], position - 1
    read = told(trial)
    x = gather(read.inputs, direction.order)[at, example][None]
    before = tuple(part[at, example][None] for part in direction.carries)
    step = formula_step(kind, weights, before, x)
    keep = held(trial, read, direction.order)
    kept = np.broadcast_to(True if keep is None else keep[at], direction.outputs.shape[1:])[example][None]
    made = tuple(np.where(kept, new, old) for new, old in zip(step.carry, before, strict=True))
    got = [part[position, example][None] for part in direction.carries]
    got += [direction.outputs[at, example][None], *(direction.gates[name][at, example][None] for name in step.gates)]
    return Point(
        kind=kind,
        inputs=x,
        before=before,
        after=step.carry,
        output=step.output,
        gates=_gates(kind, weights, before[-1], x, step),
        t=int(direction.order[at, example]),
        kept=kept,
        shown=apart(got, [*made, step.output, *step.gates.values()]),
    )


def _gates(kind: CellKind, weights: dict[str, GateWeights], h: Array, x: Array, step: FormulaStep) -> tuple[Gate, ...]:
    """Each gate's shares and sum. In a GRU's n the share of h is first multiplied by r."""
    wide, row = h.astype(np.float32), x.astype(np.float32)
    gates = []
    with np.errstate(over="ignore", invalid="ignore"):
        for spec in kind.gates:
            w = weights[spec.name]
            from_x, from_h = row @ w.kernel_x, wide @ w.kernel_h
            counted = step.gates["r"] * from_h if kind.name == "GRUCell" and spec.name == "n" else from_h
            pre = from_x + counted + w.bias
            gates.append(Gate(spec.name, spec.curve, from_x, from_h, w.bias, pre, step.gates[spec.name]))
    return tuple(gates)
