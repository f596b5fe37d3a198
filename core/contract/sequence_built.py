"""What L313 and L319 say of a layer over sequences: where its cell is built, and how what it returns is taken apart."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax import lax, tree_util

from core.base.avals import abstract, aval_of
from core.base.places import Because
from core.base.sequences import Slip
from core.base.text import fill
from core.base.violation import Severity
from core.contract.rule import Finding, Measure
from core.contract.sequence_facts import SequenceFacts, ran, returned, unpacks
from core.contract.sequence_padding import (
    place,
    take_back,
)
from core.contract.subject import SequenceTrial
from core.contract.trace import Raised
from core.runners.cell_formulas import KINDS

# --- L313: built in the step ------------------------------------------------------------------------------------------

BUILT = (
    "{cell} is built inside the step: its weights are new in each trace and gone after it, so nothing can learn them."
)
BUILT_WHY = "Parameters live outside the step: it is run many times and must find the same ones each time."
OWNED = "The gradient of a loss was asked for, by the parameters of the layer: so many numbers it has."
TITLE_BUILT = "Build the cell once, before the step"


def built_in_step(facts: SequenceFacts) -> Iterator[Finding]:
    """L313: the numbers are the same, but no gradient reaches the weights."""
    if Slip.BUILT_IN_STEP not in facts.trial.slips:
        return
    right = replace(facts.trial, slips=facts.trial.slips - {Slip.BUILT_IN_STEP})
    yield Finding(
        message=fill(BUILT, cell=facts.trial.kind),
        place=place(facts, "slip"),
        because=Because(place(facts, "cell"), BUILT_BECAUSE),
        repairs=(take_back(Slip.BUILT_IN_STEP, TITLE_BUILT),),
        measure=Measure(OWNED, numbers_learned, numbers_learned(right)),
        severity=Severity.WARNING,
        silent=True,
        why=BUILT_WHY,
    )


BUILT_BECAUSE = "the cell that is meant"


class _Layer(nnx.Module):
    """A layer of the trial's cells, which it owns, or builds in its step."""

    def __init__(self, trial: SequenceTrial) -> None:
        self.trial = nnx.static(trial)
        count = 2 if trial.bidirectional else 1
        inside = Slip.BUILT_IN_STEP in trial.slips
        self.cells = nnx.List([] if inside else [_cell(trial, at) for at in range(count)])

    def __call__(self, xs: Any) -> Any:
        """The sum of all outputs over (T, B, F)."""
        trial = self.trial
        total = 0.0
        for at in range(2 if trial.bidirectional else 1):

            def step(carry: Any, x: Any, at: int = at) -> Any:
                cell = self.cells[at] if len(self.cells) else _cell(trial, at)
                return cell(carry, x)

            parts = tuple(jax.numpy.zeros((xs.shape[1], trial.hidden_features)) for _ in KINDS[trial.kind].parts)
            carry = parts if KINDS[trial.kind].pair else parts[0]
            total += lax.scan(step, carry, xs)[1].sum()
        return total


def _cell(trial: SequenceTrial, at: int) -> Any:
    features = trial.inputs.shape[2]
    return KINDS[trial.kind].cell(features, trial.hidden_features, rngs=nnx.Rngs(trial.seed + at))


def numbers_learned(trial: SequenceTrial) -> float:
    """How many numbers the gradient of a loss over the layer has. Traced, over two steps: nothing is computed."""
    xs = abstract((2, 1, trial.inputs.shape[2]), np.float32)
    grads = nnx.eval_shape(lambda x: nnx.grad(lambda layer: layer(x))(_Layer(trial)), xs)
    avals = (aval_of(leaf) for leaf in tree_util.tree_leaves(grads))
    return float(sum(aval.size for aval in avals if aval is not None))


# --- L319: unpacked without the carry -----------------------------------------------------------------------------------

ROWS = (
    "The layer returns its outputs alone, {type}, and carry, ys = rnn(x) takes them apart along their first axis, {axis}: "
    "carry is the outputs of {one} 0, and ys those of {one} 1."
)
ROWS_RAISED = (
    "The layer returns its outputs alone, {type}: carry, ys = rnn(x) takes them apart along their first axis, {axis}, "
    "and that has {count} rows."
)
ROWS_WHY = "A layer returns (carry, outputs) when return_carry is set, and the outputs alone when it is not."
ROWS_CLAIM = "The data have {count} {plural}; this many of them are in ys."
TITLE_CARRY = "Ask for the carry: return_carry=True"
FIRST = {"B": ("the batch", "example", "examples"), "T": ("time", "step", "steps")}


def unpacked(facts: SequenceFacts) -> Iterator[Finding]:
    """L319: what is taken apart is the outputs."""
    trial = facts.trial
    if not unpacks(trial):
        return
    result = facts.run
    if isinstance(result, Raised):
        return  # it never came to that
    count = trial.inputs.shape[0]
    axis, one, plural = FIRST[trial.axes[0]]
    raises = count != 2  # two names
    yield Finding(
        message=fill(
            ROWS_RAISED if raises else ROWS, type=aval_of(returned(trial, result)), axis=axis, one=one, count=count
        ),
        place=place(facts, "slip"),
        repairs=(take_back(Slip.UNPACKED, TITLE_CARRY),),
        measure=None if raises else Measure(fill(ROWS_CLAIM, count=count, plural=plural), rows_in_ys, float(count)),
        severity=Severity.ERROR if raises else Severity.WARNING,
        silent=not raises,
        why=ROWS_WHY,
    )


def rows_in_ys(trial: SequenceTrial) -> float:
    """How many rows of the data's first axis are in what is called ys.

    Raises:
        ValueError: the layer raised, or the line that takes its value apart.
    """
    outputs = returned(trial, ran(trial))
    if not unpacks(trial):
        return float(len(outputs))
    _carry, ys = outputs
    return float(len(outputs)) if ys.ndim == outputs.ndim else 1.0
