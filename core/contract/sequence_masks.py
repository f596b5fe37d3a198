"""What L311, L312 and L321 say of a layer over sequences: a mask, or lengths, that do not reach its carry as they should."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from core.base.places import Because
from core.base.sequences import Masking, Slip
from core.base.text import fill
from core.base.violation import Severity
from core.contract.rule import Finding, Measure, Repair
from core.contract.sequence_facts import SequenceFacts
from core.contract.sequence_lengths import summed, told, with_mask
from core.contract.sequence_padding import (
    finals,
    holes,
    mask_rows,
    masked,
    moved,
    place,
    read_right,
    rows_meant,
    rows_of,
    take_back,
    tried,
    use_lengths,
    use_mask,
)
from core.contract.subject import SequenceTrial
from core.runners.sequence_read import masking_of

# --- L311 -----------------------------------------------------------------------------------------------------------

PADDING = (
    "{count} of the {total} steps are padding, as the {name} {say}, and the layer is not told: they move the carry like "
    "all others."
)
PADDING_BECAUSE = "the {name} {say} which steps are padding"
PADDING_WHY = "A cell takes padding for input unless it is told how long each sequence is, or where to keep its carry."
LONGER = "Three more steps of padding move the final carry by this much; they must not move it at all."
SKIPPING = "The final carry, compared with that of a scan which skips the padding: largest difference."
REACH = "Padding steps that reach the carry."
LENGTHS, MASK = "lengths", "mask"
SAY = {LENGTHS: "say", MASK: "says"}
MORE_STEPS = 3


def padding(facts: SequenceFacts) -> Iterator[Finding]:
    """L311: something says which steps are padding, and the layer is told nothing."""
    trial, rows = facts.trial, rows_meant(facts.trial)
    if masking_of(trial) is not Masking.NONE or rows is None or rows.all():
        return
    mask = mask_rows(trial)
    by_mask = mask is not None and not mask.all()
    name = MASK if by_mask else LENGTHS
    repairs: list[Repair] = []
    counted = rows_of(trial.lengths, trial.batch, trial.length)
    if not by_mask or (counted is not None and bool((counted == rows).all())):
        repairs.append(use_lengths())
    if by_mask or not repairs or (~rows).all(1).any():
        repairs.append(use_mask(rows))
    yield Finding(
        message=fill(PADDING, count=int((~rows).sum()), total=rows.size, name=name, say=SAY[name]),
        place=place(facts, "masking"),
        because=Because(place(facts, name), fill(PADDING_BECAUSE, name=name, say=SAY[name])),
        repairs=tuple(repairs),
        measure=_padding_measure(trial),
        severity=Severity.WARNING,
        silent=True,
        why=PADDING_WHY,
    )


def _padding_measure(trial: SequenceTrial) -> Measure:
    """Zeros behind the end move no carry of zeros, which a layer that runs from the end begins with: then what is there."""
    for claim, measure in ((LONGER, carry_by_padding), (SKIPPING, carry_not_told)):
        if tried(measure, trial) > 0:
            return Measure(claim, measure)
    return Measure(REACH, padding_reaches)


def carry_not_told(trial: SequenceTrial) -> float:
    """How far the final carry is from that of a scan which skips the padding.

    Raises:
        ValueError: the layer raised, or nothing says which steps are padding.
    """
    right = read_right(trial)
    rows = rows_meant(right)
    if rows is None:
        raise ValueError("nothing says which steps count")
    return moved(finals(right), finals(masked(right, rows)))


def carry_by_padding(trial: SequenceTrial) -> float:
    """How far the final carry moves when the data get three more steps of zeros, which are padding too.

    Raises:
        ValueError: the layer raised.
    """
    right = read_right(trial)
    axis = right.axes.index("T")
    shape = list(right.inputs.shape)
    shape[axis] = MORE_STEPS
    longer = np.concatenate([right.inputs, np.zeros(shape, right.inputs.dtype)], axis)
    mask = right.mask
    if mask is not None:
        mask = np.concatenate([mask, np.zeros((len(mask), MORE_STEPS), bool)], 1)
    return moved(finals(right), finals(replace(right, inputs=longer, mask=mask)))


def padding_reaches(trial: SequenceTrial) -> float:
    """How many steps of padding the cell takes for input."""
    rows = rows_meant(trial)
    return float((~rows).sum()) if rows is not None and masking_of(trial) is Masking.NONE else 0.0


# --- L312: the mask without its axis for the units --------------------------------------------------------------------

UNITS = (
    "The mask of a step, ({batch},), meets the carry ({batch}, {hidden}) without an axis for the units: unit j of every "
    "example is kept or moved as the mask of example j says."
)
UNITS_RAISED = (
    "The mask of a step, ({batch},), does not fit the carry ({batch}, {hidden}): it has one entry an example, and is "
    "compared with the units."
)
UNITS_BECAUSE = "hidden_features = {hidden} = B here, so the shapes fit"
UNITS_WHY = "Shapes are matched from their last axis on: a mask (B,) meets the H of a carry (B, H). It needs an axis of length 1."
UNITS_CLAIM = "The mask of example {example} was turned over and the other examples were watched: largest move of their final carry."
TITLE_UNITS = "Give the mask an axis for the units: mask[:, None]"


def feature_mask(facts: SequenceFacts) -> Iterator[Finding]:
    """L312: a (B,) mask against a (B, H) carry. With one example it is no fault: it fits and means the same."""
    trial, rows = facts.trial, mask_rows(facts.trial)
    if (
        Slip.FEATURE_MASK not in trial.slips
        or masking_of(trial) is not Masking.MASK
        or rows is None
        or trial.batch == 1
    ):
        return
    fits = trial.batch == trial.hidden_features
    raises = not fits and facts.jax is not None
    claim = fill(UNITS_CLAIM, example=0)
    hidden = Because(place(facts, "hidden_features"), fill(UNITS_BECAUSE, hidden=trial.hidden_features))
    yield Finding(
        message=fill(UNITS if fits else UNITS_RAISED, batch=trial.batch, hidden=trial.hidden_features),
        place=place(facts, "slip"),
        because=hidden if fits else None,
        repairs=(take_back(Slip.FEATURE_MASK, TITLE_UNITS),),
        measure=Measure(claim, others_by_mask) if fits else None,
        severity=Severity.ERROR if raises else Severity.WARNING,
        silent=not raises,
        why=UNITS_WHY,
    )


def others_by_mask(trial: SequenceTrial) -> float:
    """How far the final carry of the other examples moves when the mask of example 0 is turned over.

    Raises:
        ValueError: there is no mask, or the layer raised.
    """
    right = read_right(trial)
    rows = mask_rows(right)
    if rows is None:
        raise ValueError("there is no mask")
    turned = rows.copy()
    turned[0] = ~turned[0]
    parts = zip(finals(right), finals(replace(right, mask=turned)), strict=True)
    return max(moved(one[1:], other[1:]) for one, other in parts)


# --- L321 -----------------------------------------------------------------------------------------------------------

HOLE = (
    "The mask is summed into seq_lengths, and it has a hole: step {step} of example {example} is off and one after it is "
    "on. The layer takes the first {count} steps, that one too."
)
HOLE_BECAUSE = "the mask comes from here"
HOLE_WHY = "seq_lengths can only say how many steps from the first one are to be run."
SKIPPED = "The final carry, compared with that of a scan which skips the steps that are off: largest difference."
RUN_ANYWAY = "Steps that the mask switches off and that are run all the same."


def summed_mask(facts: SequenceFacts) -> Iterator[Finding]:
    """L321: the sum of a mask with holes is no length."""
    trial, rows = facts.trial, mask_rows(facts.trial)
    if not summed(trial) or rows is None:
        return
    off = holes(rows)
    if not off:
        return
    example, step = off[0]
    yield Finding(
        message=fill(HOLE, step=step, example=example, count=int(rows[example].sum())),
        place=place(facts, "slip"),
        because=Because(place(facts, "mask"), HOLE_BECAUSE),
        repairs=(use_mask(rows),),
        measure=Measure(SKIPPED, carry_missed) if tried(carry_missed, trial) else Measure(RUN_ANYWAY, holes_run),
        severity=Severity.WARNING,
        silent=True,
        why=HOLE_WHY,
    )


def carry_missed(trial: SequenceTrial) -> float:
    """How far the returned carry is from that of a scan which skips all that the lengths (or the mask) leave out.

    Raises:
        ValueError: the layer raised, or the lengths are no whole numbers.
    """
    return moved(*with_mask(trial))


def holes_run(trial: SequenceTrial) -> float:
    """How many steps that the mask switches off are among the first n of their example."""
    rows = mask_rows(trial)
    if rows is None or not told(trial):
        return 0.0
    return float((~rows & (np.arange(rows.shape[1]) < rows.sum(1, keepdims=True))).sum())
