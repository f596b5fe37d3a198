"""What L309, L317 and S114 say of a layer over sequences. The repairs: `core.contract.sequence_padding`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from core.base.places import Because
from core.base.sequences import Array, SequenceResult
from core.base.text import fill
from core.base.violation import Severity
from core.contract.cell_proof import CHANGE
from core.contract.rule import Finding, Measure
from core.contract.sequence_facts import SequenceFacts, outcome, ran
from core.contract.sequence_padding import (
    AXES,
    changed,
    finals,
    keep_order,
    moved,
    place,
    read_right,
    set_axes,
    set_time_major,
    start_from_zeros,
    tried,
)
from core.contract.subject import SequenceTrial
from core.runners.cell_formulas import KINDS

# --- L309: the axes -------------------------------------------------------------------------------------------------

MISREAD_BTF = (
    "The data are batch-major, (B={batch}, T={steps}, F={features}), and the layer is told time_major=True: it walks over "
    "the {examples}, and takes the {time} for examples."
)
MISREAD_TBF = (
    "The data are time-major, (T={steps}, B={batch}, F={features}), and time_major is not set: the layer walks over the "
    "{examples}, and takes the {time} for examples."
)
ONE_EXAMPLE, EXAMPLES, ONE_STEP, STEPS = "one example", "{count} examples", "one step", "{count} steps"
MISREAD_BECAUSE = "the data are {axes} here"
MISREAD_WHY = (
    "A layer walks along one axis: the second of (B, T, F), or the first of (T, B, F) when it is told time_major=True."
)
LEAK = (
    "Example {one} was changed by {change} at each step and example {other} was watched: largest move of its outputs."
)
WALKED = "The data are {steps} steps long; this is how many steps the layer walks."


def axis_order(facts: SequenceFacts) -> Iterator[Finding]:
    """L309: the layer takes the batch for time. The page knows the axes, so nothing is guessed."""
    trial = facts.trial
    if not trial.misread:
        return
    features = trial.inputs.shape[2]
    same = trial.batch == trial.length == 1
    raises = facts.result is None and isinstance(outcome(read_right(trial)), SequenceResult)
    yield Finding(
        message=fill(
            MISREAD_BTF if trial.time_major else MISREAD_TBF,
            batch=trial.batch,
            steps=trial.length,
            features=features,
            examples=ONE_EXAMPLE if trial.batch == 1 else fill(EXAMPLES, count=trial.batch),
            time=ONE_STEP if trial.length == 1 else fill(STEPS, count=trial.length),
        ),
        place=place(facts, "time_major"),
        because=Because(place(facts, "axes"), fill(MISREAD_BECAUSE, axes=AXES[trial.axes])),
        repairs=(set_time_major(trial.axes), set_axes("TBF" if trial.time_major else "BTF")),
        measure=None if raises or same else _axes_measure(trial),
        severity=Severity.ERROR if raises else Severity.NOTE if same else Severity.WARNING,
        silent=not raises,
        why=MISREAD_WHY,
        path="time_major",
    )


def _axes_measure(trial: SequenceTrial) -> Measure:
    if tried(neighbour_moves, trial) > 0:
        one, other = _neighbours(trial)
        return Measure(fill(LEAK, one=one, other=other, change=CHANGE), neighbour_moves)
    return Measure(fill(WALKED, steps=trial.length), steps_walked, float(trial.length))


def _neighbours(trial: SequenceTrial) -> tuple[int, int]:
    """The example that is visited first when the batch is taken for time, and the next one."""
    last = trial.batch - 1
    return (last, last - 1) if trial.reverse and not trial.bidirectional else (0, 1)


def neighbour_moves(trial: SequenceTrial) -> float:
    """How far the outputs of one example move when another is changed by 0.1 at every step (largest unit).

    Raises:
        ValueError: there is one example only, or the layer raised.
    """
    if trial.batch < 2:
        raise ValueError("there is no other example")
    one, other = _neighbours(trial)
    inputs = trial.inputs.copy()
    axis = trial.axes.index("B")
    np.moveaxis(inputs, axis, 0)[one] += np.asarray(CHANGE, inputs.dtype)
    return moved(_of_example(trial, other), _of_example(changed(trial, inputs), other))


def _of_example(trial: SequenceTrial, example: int) -> Array:
    """The forward direction's outputs that stand for one example by the data's true axes."""
    forward = ran(trial).forward
    if not trial.misread:
        return forward.outputs[:, example]
    own: Array = forward.outputs[list(forward.order[:, 0]).index(example)]
    return own


def steps_walked(trial: SequenceTrial) -> float:
    """How many steps the layer walks."""
    return float(ran(trial).length)


# --- L317: another sequence's carry -------------------------------------------------------------------------------------

LEFT = "The carry that another sequence ended with is given for init: what that one left in {parts} goes into this one."
LEFT_WHY = "init is the memory before the first step: a sequence that stands for itself starts from zeros."
LEFT_CLAIM = "The sequence before was changed by {change}, this one was not: largest move of its final carry."
LEFT_CLAIM_OUTPUTS = "The sequence before was changed by {change}, this one was not: largest move of its outputs."
PARTS = {1: "h", 2: "c and h"}


def left_over(facts: SequenceFacts) -> Iterator[Finding]:
    """L317: on the page it is another sequence for certain."""
    trial = facts.trial
    if trial.previous is None:
        return
    by_carry = tried(carry_by_previous, trial) > 0
    measure = Measure(fill(LEFT_CLAIM, change=CHANGE), carry_by_previous)
    if not by_carry:  # a long sequence may have forgotten it in the end
        measure = Measure(fill(LEFT_CLAIM_OUTPUTS, change=CHANGE), outputs_by_previous)
    yield Finding(
        message=fill(LEFT, parts=PARTS[len(KINDS[trial.kind].parts)]),
        place=place(facts, "init"),
        repairs=(start_from_zeros(),),
        measure=measure,
        severity=Severity.WARNING,
        silent=True,
        why=LEFT_WHY,
    )


def _before_changed(trial: SequenceTrial) -> SequenceTrial:
    if trial.previous is None:
        return trial
    return replace(trial, previous=trial.previous + np.asarray(CHANGE, trial.previous.dtype))


def carry_by_previous(trial: SequenceTrial) -> float:
    """How far the final carry moves when the sequence before is changed; 0 where there is none.

    Raises:
        ValueError: the layer raised.
    """
    right = read_right(trial)
    return moved(finals(right), finals(_before_changed(right)))


def outputs_by_previous(trial: SequenceTrial) -> float:
    """The same of the outputs."""
    right = read_right(trial)
    return moved(ran(right).outputs, ran(_before_changed(right)).outputs)


# --- S114: the order of the outputs -------------------------------------------------------------------------------------

VISITS = (
    "reverse=True: the layer runs from the last step to the first, and its outputs come in the order of its visits: "
    "output 0 belongs to t = {last}. With keep_order=True output t belongs to step t."
)
VISITS_EACH = (
    "reverse=True: the layer runs from the last step that counts to the first, and its outputs come in the order of its "
    "visits: output 0 of example {example} belongs to t = {last}. With keep_order=True output t belongs to step t."
)
VISITS_WHY = "Order of time and order of visits have the same shape: nothing tells them apart but keep_order."


def order_of_visits(facts: SequenceFacts) -> Iterator[Finding]:
    """S114: a note; the outputs alone are no fault."""
    trial = facts.trial
    if not trial.reverse or trial.bidirectional or trial.keep_order:
        return
    result = outcome(trial)
    if not isinstance(result, SequenceResult) or result.length < 2:
        return
    first = result.forward.order[0]
    each = [b for b, t in enumerate(first) if t != result.length - 1]
    example = each[0] if each else 0
    yield Finding(
        message=fill(VISITS_EACH if each else VISITS, example=example, last=int(first[example])),
        place=place(facts, "keep_order"),
        because=Because(place(facts, "direction"), VISITS_BECAUSE),
        repairs=(keep_order(),),
        severity=Severity.NOTE,
        silent=True,
        why=VISITS_WHY,
    )


VISITS_BECAUSE = "it runs backwards here"
