"""What stands beneath the plot of the Sequence page: the checks in words, and final carries with and without a mask."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from core.base.sequences import Masking, SequenceResult
from core.base.text import fill
from core.base.tolerance import difference
from core.contract.subject import SequenceTrial
from core.plots.cell_equations import brief
from core.plots.sequence_grid import real_steps
from core.plots.sequence_view import Chosen
from core.runners.cell_formulas import KINDS
from core.runners.sequence import run_sequence
from core.runners.sequence_compare import CheckName, Place, SequenceCheck
from core.runners.sequence_reference import SequenceChecks

type Array = np.ndarray[Any, Any]

CHECKS: Final[Mapping[CheckName, str]] = {
    CheckName.LAYER: "the layer of Flax itself, no jit",
    CheckName.SCAN: "lax.scan with the mask, no jit",
    CheckName.LOOP: "Python loop over the cell",
    CheckName.FORMULAS: "NumPy formulas",
    CheckName.END: "the carry after the last valid step is returned",
    CheckName.ALONE: "each example alone, without its padding",
    CheckName.LARGE: "padding filled with 1000",
    CheckName.NAN: "padding filled with NaN",
}
APART: Final = "{largest} apart"
EQUAL: Final = "bit-equal"
STEPS: Final = "{steps} of {length} steps"
FIRST: Final = "first at {leaf}, t = {t}, example {example}, unit {unit}: {got} for {want}"
FIRST_FINAL: Final = "first at {leaf}, example {example}, unit {unit}: {got} for {want}"
ROUNDING: Final = "no more than rounding: with these numbers float32 is {rounding} from float64"
NOT_MADE: Final = "–"


@dataclass(frozen=True, slots=True)
class CheckRow:
    """One check: what it is, its result, whether it agrees (None: not made), and where it first does not or why not made."""

    name: str
    result: str
    agrees: bool | None
    more: str = ""


def check_rows(checks: SequenceChecks, *, padding: bool) -> tuple[CheckRow, ...]:
    """The checks of the numbers, or those of what padding does; what cannot be made for this layer is left out."""
    made = [c for c in checks.checks if c.name.about_padding is padding and not (c.agrees is None and not padding)]
    return tuple(_check_row(check, checks) for check in made)


def _check_row(check: SequenceCheck, checks: SequenceChecks) -> CheckRow:
    name = fill(CHECKS[check.name])
    if check.agrees is None:
        return CheckRow(name, NOT_MADE, None, check.reason)
    result = fill(EQUAL) if check.equal else fill(APART, largest=_largest(check.largest))
    more = [] if check.steps >= checks.length else [fill(STEPS, steps=check.steps, length=checks.length)]
    if check.first is not None:
        more.append(_place(check.first))
    if check.only_rounding and check.rounding is not None:
        more.append(fill(ROUNDING, rounding=_largest(check.rounding)))
    return CheckRow(name, result, check.agrees, "; ".join(more))


def _largest(value: float) -> str:
    return brief(value) if math.isfinite(value) else "∞"


def _place(place: Place) -> str:
    got, want = brief(float(place.got)), brief(float(place.want))
    fields = {"leaf": place.leaf, "example": place.example, "unit": place.unit, "got": got, "want": want}
    return fill(FIRST_FINAL, **fields) if place.t is None else fill(FIRST, t=place.t, **fields)


def tolerance_text(checks: SequenceChecks) -> str:
    """The widest tolerance that was used."""
    used = [c.tolerance for c in checks.checks if c.tolerance is not None]
    return max(used, key=lambda t: (t.rtol, t.atol)).text if used else NOT_MADE


# --- with and without a mask ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MaskRow:
    """One example's final carry, of the chosen unit, three ways, by part of the carry.

    Attributes:
        example: its index.
        steps: how many of its steps are real.
        end: the carry after its last valid step.
        told: the one that is returned when the layer is told of the padding.
        untold: the one that is returned when it is not.
        told_moves, untold_moves: the largest distance from `end` over all units and parts; None where it is within the
            tolerance.
    """

    example: int
    steps: int
    end: tuple[str, ...]
    told: tuple[str, ...]
    untold: tuple[str, ...]
    told_moves: float | None
    untold_moves: float | None


@dataclass(frozen=True, slots=True)
class MaskTable:
    """Final carries with and without a mask. `parts`: names of the parts; `by`: how the layer is told in `told`."""

    parts: tuple[str, ...]
    by: Masking
    unit: int
    length: int
    rows: tuple[MaskRow, ...]


def mask_table(trial: SequenceTrial, result: SequenceResult, chosen: Chosen) -> MaskTable | None:
    """The table for the chosen unit and direction; None where there is no padding, or where the batch is taken for time.

    Raises:
        nothing for a trial that ran.
    """
    real = real_steps(trial)
    if trial.misread or not trial.length or bool(real.all()):
        return None
    by = trial.masking if trial.masking is not Masking.NONE else Masking.LENGTHS if trial.lengths else Masking.MASK
    side = chosen.side
    right = run_sequence(replace(trial, masking=Masking.MASK, mask=real, slips=frozenset()))
    told = result if trial.masking is by else run_sequence(replace(trial, masking=by))
    plain = run_sequence(replace(trial, masking=Masking.NONE, slips=frozenset()))
    end, with_it, without = (run.directions[side].final for run in (right, told, plain))
    rows = tuple(
        MaskRow(
            example=b,
            steps=int(real[b].sum()),
            end=_unit(end, b, chosen.unit),
            told=_unit(with_it, b, chosen.unit),
            untold=_unit(without, b, chosen.unit),
            told_moves=_moves(with_it, end, b),
            untold_moves=_moves(without, end, b),
        )
        for b in range(trial.batch)
    )
    return MaskTable(KINDS[trial.kind].parts, by, chosen.unit, trial.length, rows)


def _unit(final: tuple[Array, ...], example: int, unit: int) -> tuple[str, ...]:
    return tuple(brief(part[example, unit]) for part in final)


def _moves(final: tuple[Array, ...], end: tuple[Array, ...], example: int) -> float | None:
    apart = [difference(one[example], other[example]) for one, other in zip(final, end, strict=True)]
    beyond = [d.largest for d in apart if not d.within]
    return max(beyond) if beyond else None
