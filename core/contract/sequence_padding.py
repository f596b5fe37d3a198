"""Which steps of a trial count and which are padding, and trials that differ from it in one thing: what proofs compare.

The repairs of a trial, for the page that carries them out on its inputs (kind: value):

    time_major: bool, what the layer is told             axes: "BTF" or "TBF", the data are turned round to be that
    lengths: tuple of ints, one per example              masking: Masking
    mask: (B, T) bool array, which the layer then uses   slip: the Slip that is taken back
    init: "zeros"                                        keep_order: True
    unroll: int                                          size_length, size_batch, size_features, size_hidden: int
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from core.base.places import Field, Place
from core.base.sequences import Array, Masking, Slip
from core.base.text import fill
from core.contract.cell_proof import NOISE, farthest
from core.contract.counts import is_int
from core.contract.rule import Repair
from core.contract.sequence_facts import SequenceFacts, ran
from core.contract.subject import SequenceTrial, Subject
from core.runners.sequence_read import lengths_given

TITLE_TIME_MAJOR = "Set time_major to {value}: the data are {axes}"
TITLE_AXES = "Hand the data over as {axes}"
TITLE_LENGTHS = "Set the lengths to {lengths}"
TITLE_USE_LENGTHS = "Give the layer the lengths: seq_lengths"
TITLE_NO_LENGTHS = "Give the layer no lengths"
TITLE_USE_MASK = "Scan with the mask: a step that is off keeps the carry"
TITLE_ZEROS = "Start from zeros"
TITLE_KEEP_ORDER = "Set keep_order to True"
TITLE_SIZE = "Set {what} to {size}"

#: How the data's axes read on a button or in a sentence.
AXES = {"BTF": "(B, T, F)", "TBF": "(T, B, F)"}
#: Most entries of a list that are written out.
WRITTEN = 8
LIST_MORE = "{shown}, …"


# --- what counts ----------------------------------------------------------------------------------------------------


def rows_of(lengths: tuple[Any, ...] | None, batch: int, steps: int) -> Array | None:
    """(B, T) bool: which steps lengths count, each cut to 0…T; None where they are no whole numbers, one an example."""
    if lengths is None or len(lengths) != batch or not all(is_int(n) for n in lengths):
        return None
    cut = np.array([min(max(int(n), 0), steps) for n in lengths], int).reshape(batch, 1)
    return np.arange(steps) < cut


def lengths_rows(trial: SequenceTrial) -> Array | None:
    """The same of the lengths that a layer gets."""
    return rows_of(lengths_given(trial), trial.batch, trial.length)


def mask_rows(trial: SequenceTrial) -> Array | None:
    """The mask as truth values; None where there is none, or it has another shape than (B, T)."""
    mask = None if trial.mask is None else np.asarray(trial.mask, bool)
    return mask if mask is not None and mask.shape == (trial.batch, trial.length) else None


def rows_meant(trial: SequenceTrial) -> Array | None:
    """Which steps count by what was given, whatever the layer makes of it: the mask where it switches anything off."""
    mask = mask_rows(trial)
    if mask is not None and not mask.all():
        return mask
    rows = rows_of(trial.lengths, trial.batch, trial.length)
    return rows if rows is not None else mask


def holes(rows: Array) -> list[tuple[int, int]]:
    """(example, step) of each step that is off with a later one that is on."""
    later = np.flip(np.logical_or.accumulate(np.flip(rows, 1), axis=1), 1)
    return [(int(b), int(t)) for b, t in np.argwhere(~rows & later)]


# --- the same trial, but for one thing ------------------------------------------------------------------------------


def read_right(trial: SequenceTrial) -> SequenceTrial:
    """The trial with `time_major` as the data are: faults are shown apart from a wrong axis order."""
    return replace(trial, time_major=not trial.time_major) if trial.misread else trial


def masked(trial: SequenceTrial, rows: Array) -> SequenceTrial:
    """The trial as a scan that keeps the carry where `rows` (B, T) are off."""
    slips = trial.slips - {Slip.SUMMED_MASK, Slip.UNPACKED, Slip.FEATURE_MASK}
    return replace(trial, masking=Masking.MASK, mask=rows, slips=slips)


def changed(trial: SequenceTrial, inputs: Array) -> SequenceTrial:
    """The trial with other data of the same axes."""
    return replace(trial, inputs=inputs)


def finals(trial: SequenceTrial) -> tuple[Array, ...]:
    """Every part of the returned carry, both directions.

    Raises:
        ValueError: the layer raised.
    """
    return tuple(part for direction in ran(trial).directions for part in direction.final)


def moved(one: Any, other: Any) -> float:
    """The largest difference of two equal trees; 0 where it is no more than rounding.

    Raises:
        ValueError: they differ in structure or shape, or a value is not finite.
    """
    apart = farthest(one, other)
    return apart if apart > NOISE else 0.0


def tried(measure: Callable[[Any], float], trial: SequenceTrial) -> float:
    """The number, or 0 where it cannot be measured."""
    try:
        return measure(trial)
    except Exception:  # noqa: BLE001  # a proof is a bonus
        return 0.0


# --- repairs --------------------------------------------------------------------------------------------------------


def _on_trial(change: Callable[[SequenceTrial], SequenceTrial | None]) -> Callable[[Any], Subject | None]:
    return lambda subject: change(subject) if isinstance(subject, SequenceTrial) else None


def set_time_major(axes: str) -> Repair:
    """Tell the layer what the data are."""
    value = axes == "TBF"
    title = fill(TITLE_TIME_MAJOR, value=value, axes=AXES[axes])
    return Repair("time_major", title, _on_trial(lambda t: replace(t, time_major=value)), "", value)


def set_axes(axes: str) -> Repair:
    """Turn the data round, those of the sequence before too."""

    def turn(trial: SequenceTrial) -> SequenceTrial:
        if trial.axes == axes:
            return trial
        before = None if trial.previous is None else trial.previous.swapaxes(0, 1)
        return replace(trial, inputs=trial.inputs.swapaxes(0, 1), previous=before, axes=axes)

    return Repair("axes", fill(TITLE_AXES, axes=AXES[axes]), _on_trial(turn), "", axes)


def set_lengths(lengths: tuple[int, ...], title: str | None = None) -> Repair:
    """Other lengths."""
    said = title or fill(TITLE_LENGTHS, lengths=listed(lengths))
    return Repair("lengths", said, _on_trial(lambda t: replace(t, lengths=lengths)), "", lengths)


def listed(values: tuple[Any, ...]) -> str:
    """Entries beside each other; a long list is cut."""
    shown = ", ".join(str(v) for v in values[:WRITTEN])
    return shown if len(values) <= WRITTEN else fill(LIST_MORE, shown=shown)


def use_lengths() -> Repair:
    """Hand the lengths to the layer."""
    change = _on_trial(lambda t: replace(t, masking=Masking.LENGTHS))
    return Repair("masking", TITLE_USE_LENGTHS, change, "", Masking.LENGTHS)


def no_lengths() -> Repair:
    """Hand the layer no lengths."""
    change = _on_trial(lambda t: replace(t, masking=Masking.NONE))
    return Repair("masking", TITLE_NO_LENGTHS, change, "", Masking.NONE)


def use_mask(rows: Array) -> Repair:
    """Scan with this mask (B, T)."""
    return Repair("mask", TITLE_USE_MASK, _on_trial(lambda t: masked(t, rows)), "", rows)


def take_back(slip: Slip, title: str) -> Repair:
    """Without this slip."""

    def change(trial: SequenceTrial) -> SequenceTrial:
        carry = trial.return_carry or slip is Slip.UNPACKED
        return replace(trial, slips=trial.slips - {slip}, return_carry=carry)

    return Repair("slip", title, _on_trial(change), "", slip)


def start_from_zeros() -> Repair:
    """No init, and no sequence before."""
    return Repair("init", TITLE_ZEROS, _on_trial(lambda t: replace(t, init=None, previous=None)), "", "zeros")


def keep_order() -> Repair:
    """Outputs in the order of the inputs."""
    return Repair("keep_order", TITLE_KEEP_ORDER, _on_trial(lambda t: replace(t, keep_order=True)), "", True)


def set_size(limit: str, what: str, axis: str, size: int) -> Repair:
    """Cut the data along one axis, or H; a page sets the number that they are made with."""

    def change(trial: SequenceTrial) -> SequenceTrial | None:
        if axis == "H":
            return replace(trial, hidden_features=size) if trial.init is None else None
        if not hasattr(trial.inputs, "__getitem__"):
            return None  # data over a limit are not even made
        cut = [slice(None)] * 3
        cut[trial.axes.index(axis)] = slice(size)
        some = {"B": (slice(size),), "T": (slice(None), slice(size))}.get(axis, ())
        return replace(
            trial,
            inputs=trial.inputs[tuple(cut)],
            previous=None if trial.previous is None else trial.previous[tuple(cut)],
            mask=None if trial.mask is None else trial.mask[some],
            lengths=trial.lengths[:size] if trial.lengths is not None and axis == "B" else trial.lengths,
            init=tuple(part[:size] for part in trial.init) if trial.init is not None and axis == "B" else trial.init,
        )

    return Repair(f"size_{limit}", fill(TITLE_SIZE, what=what, size=size), _on_trial(change), "", size)


# --- places ---------------------------------------------------------------------------------------------------------


def place(facts: SequenceFacts, *roles: str) -> Place | None:
    """Where an input stands: the first that is known; by its stable key where the trial says nothing."""
    return facts.places.find(*roles) or Field(fill(KEY, name=roles[0]), roles[0])


KEY = "sequence_{name}"
