"""What L310 says of a layer over sequences: entries of its lengths that are no lengths, and what JAX makes of them."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.base.places import Because
from core.base.sequences import Array, Masking, Slip
from core.base.text import fill
from core.base.violation import Severity
from core.contract.counts import is_int, is_number
from core.contract.rule import Finding, Measure, Repair
from core.contract.sequence_facts import SequenceFacts, raised
from core.contract.sequence_padding import (
    finals,
    lengths_rows,
    listed,
    mask_rows,
    masked,
    moved,
    no_lengths,
    place,
    read_right,
    rows_of,
    set_lengths,
    tried,
    use_mask,
)
from core.contract.subject import SequenceTrial
from core.runners.sequence_read import lengths_given, masking_of

# --- L310 -----------------------------------------------------------------------------------------------------------

ZERO = "Example {example}: length 0, so no step of it counts; JAX returns the carry after all {steps} steps.{more}"
NO_STEPS = "The data have no steps: there is no carry to choose by lengths, and JAX raises."
ABOVE = "Example {example}: length {value} is above T = {steps}; JAX stops at {steps} without a word.{more}"
ABOVE_RAISED = "Example {example}: length {value} is above T = {steps}, and too large for JAX to read.{more}"
NEGATIVE = (
    "Example {example}: length {value} is negative; JAX counts from the end and returns the carry after {taken} of the "
    "{steps} steps.{more}"
)
NEGATIVE_RAISED = "Example {example}: length {value} is negative, and no number of steps; JAX raises.{more}"
BENT = "Example {example}: length {value} is no whole number; JAX raises.{more}"
TRUTH = "Example {example}: length {value} is a truth value; JAX takes it for {taken}.{more}"
NO_NUMBER = "Example {example}: length {value} is no number; JAX raises.{more}"
COUNT = "There is 1 length for {batch} examples; JAX raises."
COUNTS = "There are {count} lengths for {batch} examples; JAX raises."
NO_LENGTHS = "There is no length for the {batch} examples."
SHARED = "There is 1 length, {value}, for {batch} examples; JAX uses it for each of them without a word."
UNUSED = "Example {example}: length {value} is no whole number from 0 to T = {steps}; the layer is not told.{more}"
SUMMED_ZERO = (
    "The mask of example {example} is off everywhere and its sum, 0, is given for a length; JAX returns the carry after "
    "all {steps} steps.{more}"
)
MORE_ONE = " So is example {examples}."
MORE_MANY = " So are examples {examples}."
WHY = "seq_lengths says how many steps of each example count, from the first on: whole numbers from 1 to T, one each."
CARRY = "The carry returned for {examples}, compared with that after the last step that counts: largest difference."
THIS, THESE = "example {examples}", "examples {examples}"
RUN_FOR_IT = "Steps that the carry returned for {examples} has run through, although none of them counts."
ASKED = "Steps that the lengths ask for and the data do not have."
TITLE_ALL_STEPS = "Let all {steps} steps of it count: {lengths}"
TITLE_FILL = "Give the others all {steps} steps: {lengths}"
TITLE_FIRST = "Keep the first {batch}: {lengths}"
TITLE_EACH = "Write it for each example: {lengths}"
PATH = "seq_lengths[{index}]"


class Bad(enum.Enum):
    """What an entry of the lengths may be instead of a whole number from 1 to T."""

    ZERO = ZERO
    ABOVE = ABOVE
    NEGATIVE = NEGATIVE
    BENT = BENT
    TRUTH = TRUTH
    NO_NUMBER = NO_NUMBER


def kind_of(value: Any, steps: int) -> Bad | None:
    """What is wrong with one length; None for a good one."""
    if isinstance(value, bool | np.bool_):
        return Bad.TRUTH
    if not is_number(value) or not math.isfinite(value):
        return Bad.NO_NUMBER
    if not is_int(value):
        return Bad.BENT
    number = int(value)
    return Bad.ZERO if number == 0 else Bad.NEGATIVE if number < 0 else Bad.ABOVE if number > steps else None


def lengths(facts: SequenceFacts) -> Iterator[Finding]:
    """L310: one finding for each kind of bad entry, at its first; one for a wrong count."""
    trial = facts.trial
    given = lengths_given(trial) if told(trial) else trial.lengths if trial.masking is Masking.NONE else None
    if given is None:
        return
    if trial.length == 0:
        yield from _no_steps(facts)
        return
    if len(given) != trial.batch:
        yield _count(facts, given)
        return
    kinds = [kind_of(value, trial.length) for value in given]
    for kind in dict.fromkeys(k for k in kinds if k is not None):
        if told(trial) or kind is not Bad.ZERO:  # what nobody is told may say that nothing of an example counts
            yield _entry(facts, given, kind, [b for b, k in enumerate(kinds) if k is kind])


def _no_steps(facts: SequenceFacts) -> Iterator[Finding]:
    if not _raises(facts):
        return
    yield Finding(
        message=NO_STEPS,
        place=place(facts, "lengths"),
        because=Because(place(facts, "length"), BECAUSE_STEPS),
        repairs=(no_lengths(),),
        severity=Severity.ERROR,
        silent=False,
        why=WHY,
        path="seq_lengths",
    )


BECAUSE_STEPS = "T is 0 here"


def told(trial: SequenceTrial) -> bool:
    """Whether the layer is given lengths."""
    return masking_of(trial) is Masking.LENGTHS


def summed(trial: SequenceTrial) -> bool:
    """Whether they are the sum of the mask."""
    return told(trial) and Slip.SUMMED_MASK in trial.slips


def _raises(facts: SequenceFacts) -> bool:
    right = read_right(facts.trial)
    return told(right) and facts.jax is not None and raised(right) is not None


def _raising(kind: Bad, value: Any) -> bool:
    """Whether this kind of entry is what raises: whole numbers are too large to be read, or silent."""
    if kind in (Bad.BENT, Bad.NO_NUMBER):
        return True
    return kind in (Bad.ABOVE, Bad.NEGATIVE) and not -(2**31) <= int(value) < 2**31


def _entry(facts: SequenceFacts, given: tuple[Any, ...], kind: Bad, where: list[int]) -> Finding:
    trial, first = facts.trial, where[0]
    used, sums = told(trial), summed(trial)
    raises = used and any(_raising(kind, given[b]) for b in where) and _raises(facts)
    template = kind.value
    if not used:
        template = UNUSED
    elif kind is Bad.ZERO and sums:
        template = SUMMED_ZERO
    elif raises:
        template = RAISED.get(kind, template)
    more = MORE_ONE if len(where) == 2 else MORE_MANY  # the first is named already
    message = fill(
        template,
        example=first,
        value=_shown(given[first]),
        steps=trial.length,
        taken=_taken(kind, given[first], trial.length),
        more=fill(more, examples=listed(tuple(where[1:]))) if len(where) > 1 else "",
    )
    return Finding(
        message=message,
        place=place(facts, "mask" if sums else "lengths"),
        repairs=tuple(_mends(trial, given, kind, where)),
        measure=None if raises or not used else _measure(trial, kind, tuple(where)),
        severity=Severity.ERROR if raises else Severity.WARNING,
        silent=not raises,
        why=WHY,
        path=fill(PATH, index=first),
    )


RAISED = {Bad.ABOVE: ABOVE_RAISED, Bad.NEGATIVE: NEGATIVE_RAISED}


def _taken(kind: Bad, value: Any, steps: int) -> int:
    """After how many steps JAX takes the carry: below 0 it counts from the end, and stops at the first step."""
    if kind is Bad.TRUTH:
        return int(bool(value))
    return max(int(value) + steps, 1) if kind is Bad.NEGATIVE else steps


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


WIDTH = 24


def _mends(trial: SequenceTrial, given: tuple[Any, ...], kind: Bad, where: list[int]) -> Iterator[Repair]:
    steps = trial.length
    if kind is Bad.ZERO:
        rows = mask_rows(trial) if summed(trial) else rows_of(trial.lengths, trial.batch, steps)
        if rows is not None:
            yield use_mask(rows)
        return
    # One input holds them all, so one button mends them all; an example without a step wants a mask.
    bad = [kind_of(v, steps) not in (None, Bad.ZERO) for v in given]
    right = tuple((_near(v, steps) or steps) if b else v for b, v in zip(bad, given, strict=True))
    guessed = any(_near(given[b], steps) is None for b in where)
    yield set_lengths(right, fill(TITLE_ALL_STEPS, steps=steps, lengths=listed(right)) if guessed else None)


def _near(value: Any, steps: int) -> Any:
    """The good length next to a bad one: cut to T, rounded, its sign dropped; None where there is none."""
    if isinstance(value, bool | np.bool_) or not is_number(value) or not math.isfinite(value):
        return None
    number = min(round(abs(float(value))), steps) if not is_int(value) else abs(int(value))
    if is_int(value) and int(value) > steps:
        number = steps
    return number if 1 <= number <= steps else None


def _count(facts: SequenceFacts, given: tuple[Any, ...]) -> Finding:
    trial, batch, steps = facts.trial, facts.trial.batch, facts.trial.length
    raises = _raises(facts)
    used = told(trial)
    good = tuple(value if kind_of(value, steps) is None else _near(value, steps) or steps for value in given)
    if len(given) == 1 and used and not raises:
        message = fill(SHARED, value=_shown(given[0]), batch=batch)
        repairs = (set_lengths(good * batch, fill(TITLE_EACH, lengths=listed(good * batch))),)
    else:
        template = NO_LENGTHS if not given else COUNT if len(given) == 1 else COUNTS
        message = fill(template if used else NOT_MATCHING, count=len(given), batch=batch)
        if len(given) > batch:
            right = good[:batch]
            title = fill(TITLE_FIRST, batch=batch, lengths=listed(right))
        else:
            right = good + (steps,) * (batch - len(good))
            title = fill(TITLE_FILL, steps=steps, lengths=listed(right))
        repairs = (set_lengths(right, title),)
    shares = used and not raises
    return Finding(
        message=message,
        place=place(facts, "lengths"),
        because=Because(place(facts, "batch"), fill(BATCH, batch=batch)),
        repairs=repairs,
        measure=Measure(SHARING, without_length) if shares else None,
        severity=Severity.ERROR if raises else Severity.WARNING,
        silent=not raises,
        why=WHY,
        path="seq_lengths",
    )


def without_length(trial: SequenceTrial) -> float:
    """How many examples have no length of their own."""
    return float(max(trial.batch - len(lengths_given(trial) or ()), 0))


SHARING = "Examples that have no length of their own."
NOT_MATCHING = "Lengths: {count} for {batch} examples."
BATCH = "the data have {batch} examples"


def _measure(trial: SequenceTrial, kind: Bad, where: tuple[int, ...]) -> Measure:
    missed = CarryMissed(where)
    named = fill(THIS if len(where) == 1 else THESE, examples=listed(where))
    if tried(missed, trial) > 0:
        return Measure(fill(CARRY, examples=named), missed)
    if kind in (Bad.ZERO, Bad.NEGATIVE):  # padding of zeros moves no carry of zeros
        return Measure(fill(RUN_FOR_IT, examples=named), StepsRun(where))
    return Measure(ASKED, StepsAsked(where))


@dataclass(frozen=True, slots=True)
class CarryMissed:
    """How far the carry returned for some examples is from that after their last step that counts."""

    examples: tuple[int, ...]

    def __call__(self, trial: SequenceTrial) -> float:
        """The number.

        Raises:
            ValueError: the layer raised, or the lengths are no whole numbers.
        """
        got, wanted = with_mask(trial)
        chosen = list(self.examples)
        return moved([part[chosen] for part in got], [part[chosen] for part in wanted])


def with_mask(trial: SequenceTrial) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The returned carry, and that of a scan which keeps the carry where lengths, or the mask, say padding."""
    right = read_right(trial)
    rows = lengths_rows(right) if told(right) and not summed(right) else mask_rows(right)
    if rows is None:
        raise ValueError("nothing says which steps count")
    return finals(right), finals(masked(right, rows))


@dataclass(frozen=True, slots=True)
class StepsRun:
    """How many steps stand before the carry that is returned for examples of which no step counts."""

    examples: tuple[int, ...]

    def __call__(self, trial: SequenceTrial) -> float:
        """The number."""
        given, steps = lengths_given(trial), trial.length
        chosen = [] if given is None else [int(given[b]) for b in self.examples]
        kinds = [(kind_of(n, steps), n) for n in chosen]
        return float(sum(_taken(kind, n, steps) for kind, n in kinds if kind in (Bad.ZERO, Bad.NEGATIVE)))


@dataclass(frozen=True, slots=True)
class StepsAsked:
    """How many steps the lengths of some examples have beyond T."""

    examples: tuple[int, ...]

    def __call__(self, trial: SequenceTrial) -> float:
        """The number."""
        given = lengths_given(trial)
        chosen = [] if given is None else [int(given[b]) for b in self.examples]
        return float(sum(max(n - trial.length, 0) for n in chosen))
