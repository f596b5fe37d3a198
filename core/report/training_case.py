"""A report of one update of a model: the third view of the Gradients page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from core.base.limits import LIMITS
from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.base.training import TrainingSpec, TrainingStep
from core.inputs.gradient_fields import EVAL
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import GradientLook, look_at
from core.inputs.gradient_training import ModeProof, mode_proof, spec_of
from core.report.arrays import input_of
from core.report.asking import Log, asking, keys_criterion
from core.report.calls import listed
from core.report.case import (
    NO_PADDING_HERE,
    RAISED,
    Case,
    Leaf,
    Paths,
    UnreportableError,
    all_work,
    finite,
    negative,
    rules,
    said,
    shapes,
    type_text,
)
from core.report.cell_case import cell_negatives
from core.report.declared import Data, check_declared, with_known
from core.report.measure import Timed
from core.report.model import Criterion, Declared, Name, Negative, Seed, Status
from core.report.sequence_case import FORMULA_INSTEAD, built, layer_formula, layer_parameters
from core.report.wanted import Wanted
from core.runners.initial import kernel, zeros
from core.runners.layers import cells_of, rngs_after
from core.runners.parting_layer import Layered
from core.runners.sequence import run_sequence
from core.runners.training import train_once
from core.runners.training_model import OPTIMIZERS, STREAM, SequenceModel, gradient, update

UPDATE_TITLE = "One update of a model with an nnx.{cell}"
UPDATE_ABOUT = (
    "{mode}, dropout {rate:g}, {optimizer} with a learning rate of {learning_rate:g}; T = {length}, B = {batch}, "
    "F = {features}, H = {hidden}."
)
TARGET = "the first feature of the first step of each example"
TASK = "data and targets"

WITHOUT_KEY = "Dropout in training, without a key to draw from."
LAYER_ONLY = "The recurrent layer without dropout. {said}"
EVAL_TWICE = "Mode “{mode}” is said. In eval two passes with two keys differ by {twice:.3g}; in training the same key gives the same ({same:.3g})."
NO_RNGS = "Mode “{mode}” is said, and dropout was given nothing to draw from."
UPDATE_TIMED = "loss, gradient and update of {optimizer} over T = {length} steps, jitted"
SPLIT_BY = "jax.random.split, one a step"
PARAMETERS, DROPOUT, READOUT = "parameters", "dropout", "readout"


def training_view(wanted: Wanted, declared: Declared, inputs: GradientInputs) -> Case:
    """The case of the page's inputs; it has no settings yet.

    Raises:
        UnreportableError: an input cannot be used.
    """
    limits = {"train_length": "length", "batch": "batch", "in_features": "features", "hidden_features": "hidden"}
    if not all(1 <= getattr(inputs, name) <= LIMITS[limit].value for name, limit in limits.items()):
        raise UnreportableError(" ".join(problem.text for problem in look_at(inputs).problems))
    spec = spec_of(inputs)
    case = training_case(wanted, declared, spec, cache(lambda: look_at(inputs)))
    seeds = [
        Seed(PARAMETERS, inputs.seed, "jax"),
        Seed(READOUT, inputs.seed, "jax"),
        Seed(TASK, inputs.data_seed, "numpy"),
    ]
    if spec.drops and spec.dropout_seed is not None:
        seeds.append(Seed(DROPOUT, spec.dropout_seed, "jax"))
    case.seeds = tuple(seeds)
    return case


def training_case(wanted: Wanted, declared: Declared, spec: TrainingSpec, look: Callable[[], GradientLook]) -> Case:
    """The case of one update.

    Args:
        wanted: what was asked for.
        declared: of the data.
        spec: the update.
        look: the page's own look at it; called when it is needed first.
    """
    computation = Layered.of_training(spec)
    trial = computation.trial
    log = Log()
    rngs = rngs_after(spec.kind, spec.seed)
    with asking(log):
        built(trial)
        outputs = int(spec.targets.shape[-1])
        nnx.Linear(spec.hidden_features, outputs, kernel_init=kernel, bias_init=zeros, rngs=rngs)
        if spec.drops and spec.dropout_seed is not None:
            keys = jax.random.split(nnx.Rngs(**{STREAM: spec.dropout_seed})[STREAM](), spec.inputs.shape[1])
            # The key of the pass is split, and not drawn from itself.
            log.asked[-1] = replace(log.asked[-1], drawn=False)
            for n in range(len(keys)):
                log.add(STREAM, n, fill(SPLIT_BY), keys[n])
    contract = with_known(declared, Declared("BTF", dtype="float32", target=fill(TARGET)))
    paths = Paths({"": computation})

    def raised() -> str | None:
        error = look().raised
        return None if error is None else error.type

    def missing() -> str:
        found = look()
        if found.problems:
            return " ".join(problem.text for problem in found.problems)
        return "" if found.raised is None else fill(RAISED, type=found.raised.type)

    def updated() -> TrainingStep:
        view = look().training
        if view is None:
            raise UnreportableError(missing())
        return view.step

    def fits() -> tuple[Criterion, Criterion]:
        return check_declared(contract, Data("x", spec.inputs, spec.inputs.shape, spec.inputs.dtype.name))

    def layer() -> Criterion:
        found = layer_formula(trial, run_sequence(trial), None)
        return replace(found, detail=fill(LAYER_ONLY, said=found.detail))

    given = (spec.inputs, spec.targets)
    work: dict[Name, Callable[[], Criterion]] = {
        Name.RULES: lambda: rules(look().report or Report(Outcome.OK)),
        Name.SHAPES: lambda: shapes(_update_leaves(spec, updated())),
        Name.DECLARED: lambda: fits()[0],
        Name.RANGE: lambda: fits()[1],
        Name.KEYS: lambda: keys_criterion(log.asked),
        Name.OUTPUTS: lambda: finite(Name.OUTPUTS, updated().predictions, spec.inputs),
        Name.LOSS: lambda: finite(Name.LOSS, np.array([updated().loss_before, updated().loss_after]), given),
        Name.GRADIENTS: lambda: finite(Name.GRADIENTS, np.array([leaf.norm for leaf in updated().gradients]), given),
        Name.PADDING: said(Name.PADDING, fill(NO_PADDING_HERE)),
        Name.JIT: lambda: paths(Name.JIT),
        Name.VMAP: lambda: paths(Name.VMAP),
        Name.LOOP: said(Name.LOOP, fill(FORMULA_INSTEAD)),
        Name.FORMULA: layer,
        Name.MODE: lambda: mode_criterion(spec, raised()),
    }
    needs = (Name.SHAPES, Name.OUTPUTS, Name.LOSS, Name.GRADIENTS, Name.JIT, Name.VMAP, Name.FORMULA)

    return Case(
        page=wanted.page,
        title=fill(UPDATE_TITLE, cell=spec.kind),
        about=fill(
            UPDATE_ABOUT,
            mode="train" if spec.train else EVAL,
            rate=spec.rate,
            optimizer=spec.optimizer,
            learning_rate=spec.learning_rate,
            length=spec.inputs.shape[1],
            batch=spec.inputs.shape[0],
            features=spec.inputs.shape[2],
            hidden=spec.hidden_features,
        ),
        settings=(),
        inputs=listed(_update_inputs(spec, computation, wanted)),
        contract=contract,
        begin=paths.begin,
        ahead={
            Name.RULES: (partial(train_once, spec), look),
            Name.FORMULA: (partial(run_sequence, trial),),
            # The programs of the two modes; the proof runs each several times.
            Name.MODE: tuple(
                partial(
                    train_once, replace(spec, train=train, rate=spec.rate or 0.2, dropout_seed=spec.dropout_seed or 0)
                )
                for train in (True, False)
            ),
        },
        work=all_work(work, needs, missing),
        negatives=update_negatives(spec),
        asked=tuple(log.asked),
        asked_cut=log.cut,
        timed=partial(update_timed, spec),
    )


def update_negatives(spec: TrainingSpec) -> tuple[Negative, ...]:
    """Dropout without a key, and a cell that is used wrongly."""
    without = negative(
        fill(WITHOUT_KEY), "ValueError", lambda: nnx.Dropout(0.5, deterministic=False)(jnp.ones(3, jnp.float32))
    )
    return (without, *cell_negatives(spec.kind))


def _update_inputs(spec: TrainingSpec, computation: Layered, wanted: Wanted) -> Iterator[Any]:
    yield input_of("x", spec.inputs, "BTF", values=wanted.with_values)
    yield input_of("targets", spec.targets, values=wanted.with_values)
    yield from layer_parameters(computation.trial, values=wanted.with_values)


def _update_leaves(spec: TrainingSpec, step: TrainingStep) -> Iterable[Leaf]:
    batch, outputs = int(spec.inputs.shape[0]), int(spec.targets.shape[-1])
    predictions = step.predictions
    yield Leaf(
        "predictions", type_text(predictions.shape, predictions.dtype.name), type_text((batch, outputs), "float32")
    )
    for leaf in step.gradients:
        yield Leaf(f"gradient {leaf.path}", leaf.type.dtype, "float32")


def mode_criterion(spec: TrainingSpec, raised: str | None) -> Criterion:
    """`MODE`: the mode is said, and in eval nothing is drawn: two passes with two keys are the same to the last bit."""
    mode = "train" if spec.train else EVAL
    if raised is not None:
        return Criterion(Name.MODE, Status.FAIL, None, "0", fill(NO_RNGS, mode=mode))
    return _modes(mode, mode_proof(spec))


def _modes(mode: str, proof: ModeProof) -> Criterion:
    words = fill(EVAL_TWICE, mode=mode, twice=proof.eval_twice, same=proof.train_same)
    good = proof.eval_twice == 0 and proof.train_same == 0
    return Criterion(
        Name.MODE, Status.PASS if good else Status.FAIL, max(proof.eval_twice, proof.train_same), "0", words
    )


def update_timed(spec: TrainingSpec) -> Timed:
    """Loss, gradient and one update under jit."""
    cell = Layered.of_training(spec)
    parts = cells_of(cell.trial)[0]
    model = SequenceModel(parts.kind, parts.cell(), int(spec.targets.shape[-1]), seed=spec.seed)
    set_mode: Any = model.train if spec.drops else model.eval
    set_mode()
    graph, params = nnx.split(model)
    state = OPTIMIZERS[spec.optimizer](spec.learning_rate).init(params)
    key = nnx.Rngs(**{STREAM: spec.dropout_seed})[STREAM]() if spec.drops and spec.dropout_seed is not None else None

    def run(params: Any, state: Any, x: Any, targets: Any, key: Any) -> Any:
        loss, gradients = gradient(graph, params, x, targets, 1.0 - spec.rate, key)
        return loss, update(spec.optimizer, spec.learning_rate, params, gradients, state)

    what = fill(UPDATE_TIMED, optimizer=spec.optimizer, length=spec.inputs.shape[1])
    return Timed(what, run, (params, state, np.asarray(spec.inputs), np.asarray(spec.targets), key))
