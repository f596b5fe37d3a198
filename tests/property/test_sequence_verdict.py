"""The verdict on a layer over sequences: a right one gets none, whatever its sizes; a fault gets its own code and no other.

The oracle for "right" is the layer of Flax itself, run by example: of each example alone, only its steps that count.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
from flax import nnx
from hypothesis import event, given
from hypothesis import strategies as st

from core.base.outcome import Outcome
from core.base.sequences import Masking, Slip
from core.contract.engine import CallBench, check, diagnose, examine
from core.contract.sequence_facts import SequenceFacts
from core.contract.subject import SequenceTrial
from core.contract.trace import Raised
from core.runners.cell_formulas import KINDS

#: (F, H): few, for each is compiled once.
WIDTHS = ((1, 1), (2, 3), (3, 2))
WAYS = ("forward", "reverse", "both")


@st.composite
def right(draw: Any, masking: Masking | None = None, batches: tuple[int, int] = (1, 4)) -> SequenceTrial:
    """A trial that keeps the contract."""
    features, hidden = draw(st.sampled_from(WIDTHS))
    batch, steps = draw(st.integers(*batches)), draw(st.integers(1, 6))
    axes = draw(st.sampled_from(("BTF", "TBF")))
    kind = draw(st.sampled_from(tuple(KINDS)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    data = rng.normal(size=(batch, steps, features)).astype(np.float32)
    told = masking or draw(st.sampled_from(tuple(Masking)))
    whole = st.lists(st.integers(1, steps), min_size=batch, max_size=batch).map(tuple)
    row = st.lists(st.booleans(), min_size=steps, max_size=steps)
    rows = st.lists(row, min_size=batch, max_size=batch).map(lambda m: np.array(m, bool))
    way = draw(st.sampled_from(WAYS))
    parts = tuple(rng.normal(size=(batch, hidden)).astype(np.float32) for _ in KINDS[kind].parts)
    return SequenceTrial(
        kind=kind,
        inputs=data if axes == "BTF" else np.ascontiguousarray(data.swapaxes(0, 1)),
        axes=axes,
        hidden_features=hidden,
        seed=draw(st.integers(0, 3)),
        time_major=axes == "TBF",
        reverse=way == "reverse",
        keep_order=draw(st.booleans()),
        bidirectional=way == "both",
        masking=told,
        lengths=draw(whole) if told is Masking.LENGTHS else None,
        mask=draw(rows) if told is Masking.MASK else None,
        init=parts if draw(st.booleans()) else None,
    )


@given(right())
def test_a_right_layer_has_no_violation(trial: SequenceTrial) -> None:
    report, facts = examine(trial)
    assert report.outcome is Outcome.OK, [(v.code, v.message) for v in report.violations]
    assert {v.code for v in report.violations} <= ({"S114"} if trial.reverse else set())
    assert isinstance(facts, SequenceFacts)
    assert not isinstance(facts.run, Raised)
    for direction, backwards in zip(
        facts.run.directions, (trial.reverse and not trial.bidirectional, True), strict=False
    ):
        for example in range(trial.batch):
            want = alone(trial, example, backwards=backwards, second=direction is facts.run.backward)
            got = [part[example] for part in direction.final]
            for one, other in zip(got, want, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@cache
def cell_of(kind: str, features: int, hidden: int, seed: int) -> Any:
    """One step of a cell of Flax, jitted: its new carry."""
    cell = KINDS[kind].cell(features, hidden, rngs=nnx.Rngs(seed))
    return jax.jit(lambda carry, x: cell(carry, x)[0])


def alone(trial: SequenceTrial, example: int, *, backwards: bool, second: bool) -> list[Any]:
    """The carry that one example ends with by itself, of its steps that count alone: a loop over the cell of Flax."""
    data = trial.inputs if trial.axes == "BTF" else trial.inputs.swapaxes(0, 1)
    steps = list(range(trial.length))
    if trial.lengths is not None:
        steps = steps[: int(trial.lengths[example])]
    if trial.mask is not None:
        steps = [t for t in steps if trial.mask[example, t]]
    step = cell_of(trial.kind, data.shape[2], trial.hidden_features, trial.seed + second)
    pair = KINDS[trial.kind].pair
    start = trial.init or tuple(
        np.zeros((trial.batch, trial.hidden_features), np.float32) for _ in KINDS[trial.kind].parts
    )
    parts = tuple(part[example : example + 1] for part in start)
    carry = parts if pair else parts[0]
    for t in reversed(steps) if backwards else steps:
        carry = step(carry, data[example : example + 1, t])
    return [part[0] for part in (carry if pair else (carry,))]


# --- one fault --------------------------------------------------------------------------------------------------------


def misread(trial: SequenceTrial, _: Any) -> SequenceTrial | None:
    same = trial.batch == trial.length == 1
    return None if same else replace(trial, time_major=not trial.time_major)


def wrong_length(trial: SequenceTrial, draw: Any) -> SequenceTrial | None:
    if trial.lengths is None:
        return None
    value = draw(st.sampled_from((0, -1, -9, trial.length + 1, 99, 2.5, 3.0, float("nan"), None)))
    lengths = list(trial.lengths)
    lengths[draw(st.integers(0, trial.batch - 1))] = value
    return replace(trial, lengths=tuple(lengths))


def not_told(trial: SequenceTrial, _: Any) -> SequenceTrial | None:
    rows = trial.mask
    if trial.lengths is not None:
        rows = np.arange(trial.length) < np.array(trial.lengths)[:, None]
    return None if rows is None or rows.all() else replace(trial, masking=Masking.NONE)


def along_units(trial: SequenceTrial, _: Any) -> SequenceTrial | None:
    return _slip(trial, Slip.FEATURE_MASK) if trial.mask is not None and trial.batch > 1 else None


def in_step(trial: SequenceTrial, _: Any) -> SequenceTrial | None:
    return _slip(trial, Slip.BUILT_IN_STEP)


def left_over(trial: SequenceTrial, _: Any) -> SequenceTrial | None:
    return replace(trial, previous=trial.inputs + np.float32(0.5), init=None)


def taken_apart(trial: SequenceTrial, _: Any) -> SequenceTrial | None:
    return replace(_slip(trial, Slip.UNPACKED), return_carry=False) if trial.masking is not Masking.MASK else None


def summed(trial: SequenceTrial, _: Any) -> SequenceTrial | None:
    if trial.mask is None or not trial.mask.any(1).all():
        return None
    hole = (~trial.mask[:, :-1] & trial.mask[:, 1:]).any()
    return _slip(replace(trial, masking=Masking.LENGTHS), Slip.SUMMED_MASK) if hole else None


def _slip(trial: SequenceTrial, slip: Slip) -> SequenceTrial:
    return replace(trial, slips=frozenset({slip}))


FAULTS = {
    "L309": misread, "L310": wrong_length, "L311": not_told, "L312": along_units, "L313": in_step, "L317": left_over,
    "L319": taken_apart, "L321": summed,
}  # fmt: skip


@given(st.data(), st.sampled_from(tuple(FAULTS)))
def test_a_fault_has_its_own_code_and_is_mended(data: st.DataObject, code: str) -> None:
    told = {"L310": Masking.LENGTHS, "L312": Masking.MASK, "L321": Masking.MASK}.get(code)
    trial = FAULTS[code](data.draw(right(told, (1, 4))), data.draw)
    event(code if trial is not None else "no fault")
    if trial is None:
        return
    report = check(trial)
    assert report.outcome is Outcome.VIOLATIONS, report.error
    assert {v.code for v in report.broken} == {code}, [(v.code, v.message) for v in report.violations]
    for violation in report.broken:
        assert violation.fixes
        assert violation.silent == (violation.jax_said is None)
        if violation.proof is not None:
            assert violation.proof.after is not None
    titles = {fix.title for v in report.broken for fix in v.fixes}
    for found in diagnose(trial).found:
        for repair in (r for r in found.finding.repairs if r.title in titles and found.rule.code == code):
            attempt = CallBench(trial).attempt((repair,))
            assert attempt is not None
            assert check(attempt.subject).outcome is Outcome.OK
