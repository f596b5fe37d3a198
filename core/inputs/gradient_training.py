"""One update of a model: the inputs as a `TrainingSpec`, the contract's verdict with fixes, and what the mode does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from core.base.limits import LIMITS
from core.base.outcome import Report
from core.base.places import Field, Places
from core.base.text import fill
from core.base.training import TrainingSpec, TrainingStep
from core.base.violation import FieldEdit
from core.contract.engine import Attempt, examine
from core.contract.rule import Repair
from core.contract.trace import Raised
from core.contract.training_facts import TrainingFacts
from core.inputs.fields import Value
from core.inputs.gradient_fields import EVAL, FIELDS, GIVEN, TRAIN
from core.inputs.gradient_inputs import NEGATIVE_STEPS, NO_STEPS, OVER, TOO_SMALL, Array, GradientInputs, Problem
from core.runners.cell_formulas import KINDS
from core.runners.training import Trainer, task, train_once

TOO_MUCH: Final = (
    "These updates take {work} billion multiplications (updates × T × B × H × (H + F) × the gates, there and back), and "
    "the limit is {limit}: take fewer, or a smaller model."
)
#: Which fields of the page the roles of a spec stand at.
_ROLES: Final = {"mode": "mode", "rngs": "rngs", "rate": "rate"}
#: What a repair sets.
_EDITS: Final[dict[str, dict[str, Value]]] = {"rngs": {"rngs": GIVEN}, "mode": {"mode": EVAL}}


@dataclass(frozen=True, slots=True, eq=False)
class TrainingView:
    """An update that was made.

    Attributes:
        spec: what was trained.
        step: the update.
        losses: (updates + 1,) the loss before each of several updates, and after the last.
        after: the model and all it goes on with, after those.
    """

    spec: TrainingSpec
    step: TrainingStep
    losses: Array
    after: Trainer


@dataclass(frozen=True, slots=True, eq=False)
class TrainingReading:
    """What became of the inputs.

    Attributes:
        view: None when it raised or an input cannot be used.
        report: the contract's verdict.
        raised: what was raised.
        problems: inputs that cannot be used.
    """

    view: TrainingView | None = None
    report: Report | None = None
    raised: Raised | None = None
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True)
class ModeProof:
    """How far predictions move when a forward pass is made again; 0 is the same to the last bit.

    Attributes:
        eval_twice: in use, twice, with two keys at hand.
        train_same: in training, twice with the same key.
        train_other: in training, with the keys of two seeds.
    """

    eval_twice: float
    train_same: float
    train_other: float


class TrainingBench:
    """Carries repairs out on the page's inputs."""

    def __init__(self, inputs: GradientInputs) -> None:
        self._inputs = inputs

    def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
        """The spec of the edited inputs; None when a repair has no input here."""
        edit: dict[str, Value] = {}
        for repair in repairs:
            if repair.kind not in _EDITS:
                return None
            edit |= _EDITS[repair.kind]
        after = replace(self._inputs, **edit)  # type: ignore[arg-type]  # values of those very fields
        return None if after == self._inputs else Attempt(spec_of(after), FieldEdit(edit))


def spec_of(inputs: GradientInputs) -> TrainingSpec:
    """The update that these inputs mean; sizes must be good."""
    data, targets = task(inputs.batch, inputs.train_length, inputs.in_features, inputs.data_seed)
    return TrainingSpec(
        data,
        targets,
        inputs.model,
        inputs.hidden_features,
        inputs.seed,
        inputs.rate,
        inputs.mode == TRAIN,
        inputs.dropout_seed if inputs.rngs == GIVEN else None,
        inputs.optimizer,
        inputs.learning_rate,
        Places({role: Field(FIELDS.key(name), FIELDS.field(name).label) for role, name in _ROLES.items()}),
    )


def read_training(inputs: GradientInputs) -> TrainingReading:
    """Check, update once, then go on. Never raises for anything that stands in the inputs."""
    problems = tuple(_problems(inputs))
    if problems:
        return TrainingReading(problems=problems)
    spec = spec_of(inputs)
    report, facts = examine(spec, TrainingBench(inputs))
    if not isinstance(facts, TrainingFacts):
        raise TypeError(facts)
    # A proof is for what JAX is silent about ("no error, but this number moved"); what raises speaks for itself.
    report = replace(report, violations=tuple(v if v.silent else replace(v, proof=None) for v in report.violations))
    if isinstance(facts.run, Raised):
        return TrainingReading(report=report, raised=facts.run)
    trainer = Trainer.of(spec)
    went = trainer.go_on(inputs.updates)
    return TrainingReading(TrainingView(spec, facts.run, went, trainer), report)


def mode_proof(spec: TrainingSpec) -> ModeProof:
    """Forward passes made again: in use, in training with the same key, in training with another."""
    seed = spec.dropout_seed or 0
    rate = spec.rate or 0.2
    training, use = replace(spec, train=True, rate=rate, dropout_seed=seed), replace(spec, train=False)

    def apart(one: TrainingSpec, other: TrainingSpec) -> float:
        first, second = train_once(one).predictions, train_once(other).predictions
        return float(np.abs(first.astype(np.float64) - second).max())

    return ModeProof(
        eval_twice=apart(replace(use, dropout_seed=seed), replace(use, dropout_seed=seed + 1)),
        train_same=apart(training, training),
        train_other=apart(training, replace(training, dropout_seed=seed + 1)),
    )


def _problems(inputs: GradientInputs) -> list[Problem]:
    out = [
        Problem(name, fill(TOO_SMALL, label=FIELDS.field(name).label, value=getattr(inputs, name)))
        for name in ("in_features", "hidden_features", "batch")
        if getattr(inputs, name) < 1
    ]
    length = inputs.train_length
    if length < 1:
        out.append(Problem("train_length", fill(NEGATIVE_STEPS if length else NO_STEPS, value=length)))
    for name, limited in (
        ("train_length", "length"),
        ("batch", "batch"),
        ("in_features", "features"),
        ("hidden_features", "hidden"),
    ):
        limit, value = LIMITS[limited], getattr(inputs, name)
        if value > limit.value:
            text = fill(OVER, label=FIELDS.field(name).label, value=value, limit=limit.value, unit=limit.unit)
            out.append(Problem(name, text, limit=True))
    return out or _work(inputs)


def _work(inputs: GradientInputs) -> list[Problem]:
    hidden, gates = inputs.hidden_features, len(KINDS[inputs.model].gates)
    one = inputs.train_length * inputs.batch * hidden * (hidden + inputs.in_features) * gates
    work, limit = 5 * one * (inputs.updates + 1), LIMITS["map_work"].value
    if work <= limit:
        return []
    text = fill(TOO_MUCH, work=round(work / 1e9), limit=round(limit / 1e9))
    return [Problem("updates", text, limit=True)]
