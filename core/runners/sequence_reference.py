"""A layer over sequences beside other ways of working it out: those that check the numbers, those that show the padding.

`against_numpy` comes with every result: each step by the formulas, from the carry before it, all at once. The others
come after the plot: `nnx.RNN` itself, a Python loop over the cell, the formulas in a loop of their own (which
adds up its own rounding, as the layer does), and what becomes of the result when the padding changes.

No check widens a tolerance. But float32 itself is no better than these numbers let it be: with inputs of 30 a sum is
rounded by more than the tolerance, and where recurrent weights are scaled until the layer is chaotic, two right ways
part after some steps. So a difference beyond the tolerance is shown beside the distance of the formulas in float32
from the same formulas in float64, which is the rounding of these very numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final

import jax
import numpy as np

from core.base.limits import LIMITS
from core.base.sequences import Direction, Masking, SequenceResult
from core.base.tolerance import Difference
from core.contract.subject import SequenceTrial
from core.runners.cache import PROGRAMS
from core.runners.cell_formulas import KINDS, CellKind, FormulaStep, GateWeights, formula_step
from core.runners.cells import apart, parts_of
from core.runners.layers import CellParts, cells_of, parameters
from core.runners.room import keep_room
from core.runners.sequence import call_compiled, carry_of, starts_of
from core.runners.sequence_compare import (
    CheckName,
    Leaf,
    SequenceCheck,
    compare,
    final_leaves,
    part_name,
    times_of,
)
from core.runners.sequence_padding import NO_PADDING, padding_checks, without_masking
from core.runners.sequence_read import Told, gather, held, masking_of, selected, told

type Array = np.ndarray[Any, Any]
type Parts = tuple[Array, ...]
type Step = Callable[[Parts, Array], tuple[Parts, Array]]

#: Steps of the loop unless all are asked for.
CHECK_STEPS: Final = LIMITS["check_steps"].value

NO_FREE_MASK = "nnx.RNN takes lengths only: it has no argument for a mask with holes."
MASK_ONLY = "The layer runs without a mask: nnx.RNN itself is the reference."

__all__ = [
    "CHECK_STEPS",
    "MASK_ONLY",
    "NO_FREE_MASK",
    "NO_PADDING",
    "CheckName",
    "SequenceCheck",
    "SequenceChecks",
    "against_numpy",
    "numpy_rounding",
    "sequence_checks",
]


@dataclass(frozen=True, slots=True, eq=False)
class SequenceChecks:
    """All that is checked after the plot.

    Attributes:
        checks: one of every name, in their order.
        length: T.
        steps: how many steps of each direction the loop ran; the other checks cover all.
        unmasked: final carry of each direction, its parts (B, H), of the same layer told nothing of padding; None where
            it is told nothing anyway.
        moved: how far the final carry is from that one; None where `unmasked` is.
    """

    checks: tuple[SequenceCheck, ...]
    length: int
    steps: int
    unmasked: tuple[Parts, ...] | None = None
    moved: Difference | None = None

    def __getitem__(self, name: CheckName) -> SequenceCheck:
        """The check of this name."""
        return next(check for check in self.checks if check.name is name)

    @property
    def ok(self) -> bool:
        """Whether every other way of computing agrees, or is apart by rounding only (`SequenceCheck.only_rounding`).

        What padding does to the result is no part of it.
        """
        computing = (check for check in self.checks if not check.name.about_padding)
        return all(check.agrees is not False or check.only_rounding for check in computing)

    @property
    def complete(self) -> bool:
        """Whether the loop ran every step."""
        return self.steps == self.length


def against_numpy(trial: SequenceTrial, result: SequenceResult) -> Difference:
    """Every step, gate, output and carry of a result against the NumPy formulas, each step from the carry before it.

    Also that it starts from init, returns the carry it should, and merges its directions as it should.

    Args:
        trial: what was run.
        result: what `run_sequence` gave for it.

    Returns:
        the leaf that is out of tolerance, else the one that is farthest. `numpy_rounding` says how much of it can be
        rounding.
    """
    read = told(trial)
    got: list[Any] = []
    want: list[Any] = []
    stepped = _stepped(trial, read, result, np.float32)
    starts = starts_of(trial, read.batch)
    for direction, step, start in zip(result.directions, stepped, starts, strict=True):
        first = tuple(np.broadcast_to(part, direction.carries[0].shape[1:]) for part in start)
        got += [*(part[0] for part in direction.carries), *(part[1:] for part in direction.carries)]
        want += [*first, *_after(trial, read, direction, step.carry)]
        got += [direction.outputs, *(direction.gates[name] for name in step.gates)]
        want += [step.output, *step.gates.values()]
        got += direction.final
        want += _returned(trial, read, direction)
    got.append(result.outputs)
    want.append(_merged(result))
    return apart(got, want)


def numpy_rounding(trial: SequenceTrial, result: SequenceResult) -> float:
    """How far the formulas in float32 are from the same in float64, over all steps, gates and carries of a result.

    What `against_numpy` finds is rounding where it is of this size (`core.runners.sequence_compare.is_rounding`): large
    inputs make large sums, and float32 keeps seven digits of them.

    Args:
        trial: what was run.
        result: what `run_sequence` gave for it.
    """
    read = told(trial)
    narrow, wide = (_stepped(trial, read, result, dtype) for dtype in (np.float32, np.float64))
    return max(
        _farthest(a, b)
        for one, other in zip(narrow, wide, strict=True)
        for a, b in zip((*one.carry, *one.gates.values()), (*other.carry, *other.gates.values()), strict=True)
    )


def _stepped(trial: SequenceTrial, read: Told, result: SequenceResult, dtype: Any) -> list[FormulaStep]:
    """Every step of each direction by the formulas, from the carry before it, all at once: (T, B, H).

    With the axis of time: NumPy multiplies step by step. One large product of all steps would be spread over threads,
    which on a busy machine wait for each other (20 times slower, measured).
    """
    steps = []
    for direction, weights in zip(result.directions, parameters(trial), strict=True):
        before = tuple(part[:-1] for part in direction.carries)
        x = gather(read.inputs, direction.order)
        steps.append(formula_step(KINDS[trial.kind], weights, before, x, dtype))
    return steps


def _after(trial: SequenceTrial, read: Told, direction: Direction, new: Parts) -> Parts:
    """The new carries where a mask does not keep the old ones."""
    keep = held(trial, read, direction.order)
    old = (part[:-1] for part in direction.carries)
    return new if keep is None else tuple(np.where(keep, a, b) for a, b in zip(new, old, strict=True))


def _returned(trial: SequenceTrial, read: Told, direction: Direction) -> list[Array]:
    """The carry that is returned, out of the carries over time."""
    at = selected(trial, read)
    if at is None:
        return [part[-1] for part in direction.carries]
    return [part[at[0] + 1, at[1]] for part in direction.carries]


def _merged(result: SequenceResult) -> Array:
    """The outputs of the layer out of those of its directions, by where each t was visited."""
    forward = result.forward
    if result.backward is not None:
        return np.concatenate([forward.outputs, _by_time(result.backward)], axis=-1)
    return _by_time(forward) if result.reverse and result.keep_order else forward.outputs


def _by_time(direction: Direction) -> Array:
    out = np.empty_like(direction.outputs)
    out[direction.order, np.arange(direction.order.shape[1])] = direction.outputs
    return out


# --- the slow ones --------------------------------------------------------------------------------------------------


def sequence_checks(trial: SequenceTrial, result: SequenceResult, steps: int | None = CHECK_STEPS) -> SequenceChecks:
    """Work it out by other ways, and change the padding.

    Args:
        trial: what was run.
        result: what `run_sequence` gave for it.
        steps: of the Python loop at most, from the one that is visited first; None for all. It is by far the slowest
            way; the others cover every step.

    Returns:
        one check of every name; those that cannot be made say why.

    Raises:
        nothing for a trial that ran.
    """
    keep_room()
    read = told(trial)
    count = result.length if steps is None else min(steps, result.length)
    masked = masking_of(trial) is Masking.MASK
    layer = SequenceCheck(CheckName.LAYER, None, reason=NO_FREE_MASK) if masked else _layer(trial, result)
    scan = _scan(trial, result) if masked else SequenceCheck(CheckName.SCAN, None, reason=MASK_ONLY)
    loop = _walked(CheckName.LOOP, result, _walk(trial, read, result, count, _cell_steps(trial)))
    walks = _walk(trial, read, result, result.length, _formula_steps(trial))
    computing = [layer, scan, loop, _walked(CheckName.FORMULAS, result, walks)]
    if any(check.agrees is False for check in computing):
        wide = _walk(trial, read, result, result.length, _formula_steps(trial, np.float64))
        rounding = _spread(walks, wide)
        computing = [replace(c, rounding=rounding) if c.agrees is False else c for c in computing]
    unmasked, moved = without_masking(trial, result)
    return SequenceChecks((*computing, *padding_checks(trial, result)), result.length, count, unmasked, moved)


def _layer(trial: SequenceTrial, result: SequenceResult) -> SequenceCheck:
    """Outputs of the layer itself, and its carry where it returns one."""
    returned = jax.device_get(call_compiled(trial))
    carry, outputs = returned if trial.return_carry else (None, returned)
    read = outputs if trial.time_major else outputs.swapaxes(0, 1)
    forward = result.forward
    by_time = result.backward is not None or not result.reverse or result.keep_order
    times = forward.order
    if by_time:
        times = np.broadcast_to(np.arange(result.length)[:, None], times.shape)
    leaves = [Leaf("ys", result.outputs, read, times)]
    if trial.return_carry:
        carries = carry if trial.bidirectional else (carry,)
        leaves += _finals(result, carries)
    return compare(CheckName.LAYER, leaves, result.length)


def _scan(trial: SequenceTrial, result: SequenceResult) -> SequenceCheck:
    """Outputs and final carry of the scan with a mask; `lax.scan` keeps the order of ys also when it runs from the end."""
    returned = jax.device_get(call_compiled(trial))
    scans = returned if trial.bidirectional else (returned,)
    leaves = []
    times = np.broadcast_to(np.arange(result.length)[:, None], result.forward.order.shape)
    for index, (direction, (_, ys)) in enumerate(zip(result.directions, scans, strict=True)):
        leaves.append(Leaf("ys", _by_time(direction), ys, times, bool(index)))
    return compare(CheckName.SCAN, [*leaves, *_finals(result, [carry for carry, _ in scans])], result.length)


def _finals(result: SequenceResult, carries: Any) -> list[Leaf]:
    kind = KINDS[result.kind]
    leaves = []
    for index, (direction, carry) in enumerate(zip(result.directions, carries, strict=True)):
        leaves += final_leaves(direction, (np.asarray(part) for part in parts_of(kind, carry)), bool(index))
    return leaves


@dataclass(frozen=True, slots=True, eq=False)
class _Walk:
    """One direction, one step after the other: parts of the carry (N + 1, B, H), init first, and outputs (N, B, H)."""

    carries: tuple[Array, ...]
    outputs: Array


def _walk(trial: SequenceTrial, read: Told, result: SequenceResult, count: int, steps: list[Step]) -> list[_Walk]:
    """`count` steps of each direction in visiting order, each from what the one before it left."""
    walks = []
    for direction, start, step in zip(result.directions, starts_of(trial, read.batch), steps, strict=True):
        x = gather(read.inputs, direction.order)
        keep = held(trial, read, direction.order)
        shape = direction.carries[0].shape[1:]
        parts = tuple(np.broadcast_to(part, shape) for part in start)
        carries, outputs = [parts], []
        for position in range(count):
            new, y = step(parts, x[position])
            if keep is not None:
                new = tuple(np.where(keep[position], a, b) for a, b in zip(new, parts, strict=True))
            parts = new
            carries.append(parts)
            outputs.append(y)
        stacked = tuple(np.stack([one[i] for one in carries]) for i in range(len(parts)))
        walks.append(_Walk(stacked, np.stack(outputs) if outputs else np.zeros((0, *shape), np.float32)))
    return walks


def _walked(name: CheckName, result: SequenceResult, walks: list[_Walk]) -> SequenceCheck:
    leaves: list[Leaf] = []
    for index, (direction, walk) in enumerate(zip(result.directions, walks, strict=True)):
        count, backward, times = len(walk.outputs), bool(index), times_of(direction)
        for i, (got, want) in enumerate(zip(direction.carries, walk.carries, strict=True)):
            path = part_name("carry", i, len(walk.carries))
            leaves.append(Leaf(path, got[: count + 1], want, times[: count + 1], backward))
        leaves.append(Leaf("ys", direction.outputs[:count], walk.outputs, direction.order[:count], backward))
    return compare(name, leaves, len(walks[0].outputs))


def _spread(walks: list[_Walk], wide: list[_Walk]) -> float:
    """The largest distance between two walks, where both are finite."""
    pairs = [
        (a, b)
        for one, other in zip(walks, wide, strict=True)
        for a, b in zip((*one.carries, one.outputs), (*other.carries, other.outputs), strict=True)
    ]
    return max((_farthest(a, b) for a, b in pairs), default=0.0)


def _farthest(a: Array, b: Array) -> float:
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.abs(np.subtract(a, b, dtype=np.float64)[both]).max(initial=0.0))


def _cell_steps(trial: SequenceTrial) -> list[Step]:
    """The cells of Flax, one for each direction."""
    return [_cell_step(parts) for parts in cells_of(trial)]


def _cell_step(cell: CellParts) -> Step:
    """One call of the cell, compiled once for its sizes: op by op it takes ten times as long, at every step."""

    def call(leaves: tuple[Any, ...], carry: Any, x: Any) -> Any:
        return cell.cell(leaves)(carry, x)

    def step(parts: Parts, x: Array) -> tuple[Parts, Array]:
        args = (cell.leaves, carry_of(cell.kind, parts), x)
        program, _ = PROGRAMS.get(("call of a cell", cell.kind.name, *cell.size), call, args)
        new, y = jax.device_get(program(*args))
        return parts_of(cell.kind, new), y

    return step


def _formula_steps(trial: SequenceTrial, dtype: Any = np.float32) -> list[Step]:
    return [_formula_step(KINDS[trial.kind], weights, dtype) for weights in parameters(trial)]


def _formula_step(kind: CellKind, weights: dict[str, GateWeights], dtype: Any) -> Step:
    def step(parts: Parts, x: Array) -> tuple[Parts, Array]:
        done = formula_step(kind, weights, parts, x, dtype)
        return done.carry, done.output

    return step
