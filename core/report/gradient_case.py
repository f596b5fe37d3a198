"""A report of the Gradients page: derivatives through cells, the gradient of a scan, one update of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from core.base.limits import LIMITS
from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.base.training import TrainingSpec, TrainingStep
from core.contract.facts import ScanFacts, facts_of
from core.contract.subject import SequenceTrial
from core.inputs.gradient_fields import CELLS, EVAL, PRESET, TRAINING
from core.inputs.gradient_inputs import LOOKED_AT, GradientInputs, build
from core.inputs.gradient_page import CellsResult, GradientLook, check_cells, look_at
from core.inputs.gradient_scan import ScanView, call_of
from core.inputs.gradient_training import ModeProof, mode_proof, spec_of
from core.report import calls
from core.report.arrays import input_of
from core.report.asking import Log, asking, keys_criterion
from core.report.calls import listed
from core.report.case import (
    NO_PADDING_HERE,
    ONE_MODE,
    OVER,
    RAISED,
    Case,
    Leaf,
    Paths,
    UnreportableError,
    all_work,
    finite,
    negative,
    of_difference,
    rules,
    said,
    shapes,
    type_text,
)
from core.report.cell_case import cell_negatives
from core.report.declared import Data, check_declared, data_of, read_declared, with_known
from core.report.formulas import formula_criterion
from core.report.measure import Timed
from core.report.model import Criterion, Declared, Name, Negative, Seed, Status
from core.report.sequence_case import FORMULA_INSTEAD, built, layer_formula, layer_parameters, layer_timed
from core.report.wanted import Wanted, settings_of
from core.runners.gradients import check_memory, memory_map
from core.runners.initial import kernel, zeros
from core.runners.layers import cells_of
from core.runners.parting_layer import Layered
from core.runners.parting_scan import Scanned
from core.runners.scan import run_call
from core.runners.scan_gradient_check import check_scan_gradient
from core.runners.sequence import run_sequence
from core.runners.training import train_once
from core.runners.training_model import OPTIMIZERS, STREAM, SequenceModel, gradient, update

CELLS_TITLE = "What an LSTM, a GRU and a simple cell remember of their inputs"
CELLS_ABOUT = "The norm of d h_s / d x_t for every state and input; T = {length}, F = {features}, H = {hidden}."
SCAN_TITLE = "The gradient of a scan: {title}"
SCAN_ABOUT = "With respect to init and xs, of the sum of {target}."
UPDATE_TITLE = "One update of a model with an nnx.{cell}"
UPDATE_ABOUT = (
    "{mode}, dropout {rate:g}, {optimizer} with a learning rate of {learning_rate:g}; T = {length}, B = {batch}, "
    "F = {features}, H = {hidden}."
)
TARGET = "the first feature of the first step of each example"
PARAMETERS, DATA, DROPOUT, READOUT = "parameters", "data", "dropout", "readout"
TASK = "data and targets"

ONE_EXAMPLE = "There is one example, and nothing to map over."
WHOLE_NUMBERS = "The gradient with respect to whole numbers."
NO_NUMBER = "The gradient of something that is not one number."
WITHOUT_KEY = "Dropout in training, without a key to draw from."
NO_LOSS = "There is no loss: every state is differentiated."
SUMMED = "The number that is differentiated."
TWO_WAYS = (
    "The last row of each map by reverse mode and by central differences in float64; {cell} is the farthest ({way})."
)
WAYS_INSTEAD = "Two other ways of working the derivatives out take its place."
REVERSE, FINITE = "reverse mode", "differences"
CENTRAL = "{compared} of {total} derivatives by central differences in float64{bends}."
BENDS = "; {bends} more lie where the step has a corner or an edge, and have none"
LAYER_ONLY = "The recurrent layer without dropout. {said}"
EVAL_TWICE = "Mode “{mode}” is said. In eval two passes with two keys differ by {twice:.3g}; in training the same key gives the same ({same:.3g})."
NO_RNGS = "Mode “{mode}” is said, and dropout was given nothing to draw from."
UPDATE_TIMED = "loss, gradient and update of {optimizer} over T = {length} steps, jitted"
GRADIENT_TIMED = "the gradient of the scan over T = {length} steps, jitted"
LAYER_TIMED = "an nnx.LSTMCell forward, not its derivatives: {what}"
SPLIT_BY = "jax.random.split, one a step"
_BOUNDS: Final = {"ones": (1.0, 1.0), "sine": (-1.0, 1.0), "impulse": (0.0, 1.0), "alternating": (-1.0, 1.0)}
#: The fields of each view, beside `of`.
_SHARED: Final = frozenset({"hidden_features", "in_features", "seed", "data_seed"})
_OF: Final = {
    CELLS: _SHARED | {"length", "source", "numbers", "forget_bias", "recurrent_scale"},
    PRESET: frozenset({"preset", "xs", "target"}),
    TRAINING: _SHARED
    | {"model", "train_length", "batch", "rate", "mode", "rngs", "dropout_seed", "optimizer", "learning_rate"},
}


def gradient_case(wanted: Wanted) -> Case:
    """The case of complete field values.

    Raises:
        UnreportableError: an input cannot be read, or is over a limit.
        DeclaredError: what was declared cannot be.
    """
    declared = read_declared(wanted.declared)
    inputs = replace(GradientInputs.of_values(wanted.values), updates=1, **LOOKED_AT)  # type: ignore[arg-type]
    make: Callable[[Wanted, Declared, GradientInputs], Case] = {CELLS: _cells, PRESET: _scan, TRAINING: _training}[
        inputs.of
    ]
    return make(wanted, declared, inputs)


def _settings(wanted: Wanted, inputs: GradientInputs) -> Any:
    unused = frozenset(name for name in wanted.values if name != "of" and name not in _OF[inputs.of])
    return settings_of(wanted, unused)


def _kept(report: Report | None) -> Criterion:
    return rules(report if report is not None else Report(Outcome.OK))


# --- cells ----------------------------------------------------------------------------------------------------------


def _cells(wanted: Wanted, declared: Declared, inputs: GradientInputs) -> Case:
    reading = build(inputs)
    if reading.data is None:
        raise UnreportableError(" ".join(problem.text for problem in reading.problems))
    data = reading.data
    low, high = _BOUNDS.get(inputs.source, (None, None))
    contract = with_known(declared, Declared("TF", dtype="float32", low=low, high=high))
    logs = []
    for trial in reading.trials:  # three models, each with streams of its own
        log = Log()
        with asking(log):
            built(trial)
        logs.append(log)
    look = cache(lambda: look_at(inputs))
    paths = Paths({trial.kind: Layered(trial) for trial in reading.trials})

    states = cache(lambda: [run_sequence(trial) for trial in reading.trials])
    ys = type_text((len(data), 1, inputs.hidden_features), "float32")

    def maps() -> CellsResult:
        found = look().cells
        if found is None:
            raise UnreportableError(fill(RAISED, type=""))
        return found

    def fits() -> tuple[Criterion, Criterion]:
        return check_declared(contract, data_of("x", data))

    def keys() -> Criterion:
        found = [keys_criterion(log.asked) for log in logs]
        return max(found, key=lambda one: (one.status is Status.FAIL, one.number or 0))

    work: dict[Name, Callable[[], Criterion]] = {
        Name.RULES: lambda: rules(Report(Outcome.OK)),
        Name.SHAPES: lambda: shapes(
            Leaf(f"{one.kind} ys", type_text(one.outputs.shape, one.outputs.dtype.name), ys) for one in states()
        ),
        Name.DECLARED: lambda: fits()[0],
        Name.RANGE: lambda: fits()[1],
        Name.KEYS: keys,
        Name.OUTPUTS: lambda: finite(Name.OUTPUTS, [one.outputs for one in states()], data),
        Name.LOSS: said(Name.LOSS, fill(NO_LOSS)),
        Name.GRADIENTS: lambda: finite(Name.GRADIENTS, [(one.h, one.c) for one in maps().maps], data),
        Name.PADDING: said(Name.PADDING, fill(NO_PADDING_HERE)),
        Name.JIT: lambda: paths(Name.JIT),
        Name.VMAP: said(Name.VMAP, fill(ONE_EXAMPLE)),
        Name.LOOP: said(Name.LOOP, fill(WAYS_INSTEAD)),
        Name.FORMULA: lambda: _maps_agree(maps()),
        Name.MODE: said(Name.MODE, fill(ONE_MODE)),
    }
    return Case(
        page=wanted.page,
        title=fill(CELLS_TITLE),
        about=fill(CELLS_ABOUT, length=len(data), features=data.shape[1], hidden=inputs.hidden_features),
        settings=_settings(wanted, inputs),
        inputs=listed(_cell_inputs(reading, data, wanted)),
        contract=contract,
        begin=paths.begin,
        ahead={
            Name.SHAPES: tuple(partial(run_sequence, trial) for trial in reading.trials),
            Name.GRADIENTS: tuple(partial(memory_map, trial, 0) for trial in reading.trials),
            Name.FORMULA: tuple(partial(_checked, trial) for trial in reading.trials),
            Name.JIT: paths.ahead(Name.JIT),
        },
        work=work,
        negatives=(*whole_numbers(), *cell_negatives("LSTMCell")),
        seeds=(
            Seed(PARAMETERS, inputs.seed, "jax"),
            *([Seed(DATA, inputs.data_seed, "numpy")] if inputs.source == "noise" else []),
        ),
        asked=tuple(logs[0].asked),
        asked_cut=logs[0].cut,
        dtypes=("float32", "float64"),
        timed=partial(_first_layer, reading),
    )


def _checked(trial: SequenceTrial) -> None:
    """One cell's check, for the programs that it compiles."""
    check_memory(trial, 0, memory_map(trial, 0))


def _first_layer(reading: Any) -> Timed:
    timed = layer_timed(reading.trials[0])
    return replace(timed, what=fill(LAYER_TIMED, what=timed.what))


def _cell_inputs(reading: Any, data: Any, wanted: Wanted) -> Iterator[Any]:
    yield input_of("x", data, "TF", values=wanted.with_values)
    for trial in reading.trials:
        for one in layer_parameters(trial, values=wanted.with_values):
            yield replace(one, path=f"{trial.kind}.{one.path}")


def _maps_agree(result: CellsResult) -> Criterion:
    """The last row of every map by two other ways; the one that is out of tolerance, else the farthest."""
    found = []
    for the_map, check in zip(result.maps, check_cells(result), strict=True):
        found += [(the_map.kind, fill(REVERSE), check.grad), (the_map.kind, fill(FINITE), check.finite)]
    kind, way, apart = max(found, key=lambda one: (not one[2].within, one[2].largest))
    return of_difference(Name.FORMULA, apart, fill(TWO_WAYS, cell=kind, way=way))


def whole_numbers() -> tuple[Negative, ...]:
    """What `jax.grad` refuses, whatever is differentiated."""
    return (
        negative(fill(WHOLE_NUMBERS), "TypeError", lambda: jax.grad(lambda x: jnp.sum(x))(jnp.ones(2, jnp.int32))),
        negative(fill(NO_NUMBER), "TypeError", lambda: jax.grad(lambda x: 2 * x)(jnp.ones(2))),
    )


# --- a scan ---------------------------------------------------------------------------------------------------------


def _scan(wanted: Wanted, declared: Declared, inputs: GradientInputs) -> Case:
    call, problems = call_of(inputs)
    if call is None:
        raise UnreportableError(" ".join(problem.text for problem in problems))
    look = look_at(inputs)
    view = look.scan
    if view is None:
        raise UnreportableError(" ".join(problem.text for problem in look.problems) or fill(OVER))
    facts = facts_of(call)
    if not isinstance(facts, ScanFacts):
        raise TypeError(facts)
    contract = with_known(declared, Declared(dtype=str(getattr(call.xs, "dtype", ""))))
    result = run_call(call)
    paths = Paths({"": Scanned(call, differentiate=True)})

    given = (call.xs, call.init)

    def fits() -> tuple[Criterion, Criterion]:
        return check_declared(contract, data_of("xs", call.xs))

    work: dict[Name, Callable[[], Criterion]] = {
        Name.RULES: lambda: _kept(look.report),
        Name.SHAPES: lambda: shapes([*calls.call_leaves(facts, result), *_gradient_leaves(view)]),
        Name.DECLARED: lambda: fits()[0],
        Name.RANGE: lambda: fits()[1],
        Name.KEYS: lambda: calls.call_keys(call),
        Name.OUTPUTS: lambda: finite(Name.OUTPUTS, (result.final, result.ys), given),
        Name.LOSS: lambda: finite(Name.LOSS, np.float64(view.gradient.value), given),
        Name.GRADIENTS: lambda: finite(Name.GRADIENTS, [leaf.values for leaf in view.gradient.leaves], given),
        Name.PADDING: said(Name.PADDING, fill(NO_PADDING_HERE)),
        Name.JIT: lambda: paths(Name.JIT),
        Name.VMAP: lambda: paths(Name.VMAP),
        Name.LOOP: lambda: calls.call_loop(call, result),
        Name.FORMULA: lambda: _both(formula_criterion(view.step.id, call, result), _central(view)),
        Name.MODE: said(Name.MODE, fill(ONE_MODE)),
    }

    def timed() -> Timed:
        run = jax.grad(_number(view), argnums=(0, 1) if call.xs is not None else 0)
        return Timed(fill(GRADIENT_TIMED, length=result.length), run, given)

    smooth = all(leaf.values is not None for leaf in view.gradient.leaves)
    return Case(
        page=wanted.page,
        title=fill(SCAN_TITLE, title=view.step.title),
        about=fill(SCAN_ABOUT, target=inputs.target),
        settings=_settings(wanted, inputs),
        inputs=listed(calls.call_inputs(call, values=wanted.with_values)),
        contract=contract,
        begin=paths.begin,
        work=work,
        negatives=(*calls.call_negatives(call), *whole_numbers()),
        dtypes=("float32", "float64"),
        timed=timed if smooth and result.length else None,
        not_timed="" if smooth and result.length else fill(WHOLE_NUMBERS),
    )


def _number(view: ScanView) -> Callable[[Any, Any], Any]:
    call = view.call

    def value(init: Any, xs: Any) -> Any:
        final, ys = jax.lax.scan(call.body, init, xs, length=call.length, reverse=bool(call.reverse))
        leaves = jax.tree.leaves(final if view.gradient.target == "final" else ys)
        return sum(jnp.sum(leaf) for leaf in leaves if jnp.issubdtype(leaf.dtype, jnp.floating))

    return value


def _gradient_leaves(view: ScanView) -> Iterator[Leaf]:
    """Every gradient is shaped like its leaf."""
    for leaf in view.gradient.leaves:
        if leaf.values is not None and leaf.type.aval is not None:
            got = type_text(leaf.values.shape, leaf.values.dtype.name)
            yield Leaf(f"gradient {leaf.type.path}", got, type_text(leaf.type.aval.shape, leaf.type.aval.dtype))


def _central(view: ScanView) -> Criterion:
    check = check_scan_gradient(view.call, view.gradient)
    bends = fill(BENDS, bends=check.bends) if check.bends else ""
    words = fill(CENTRAL, compared=check.compared, total=check.total, bends=bends)
    return of_difference(Name.FORMULA, check.difference, words)


def _both(forward: Criterion, backward: Criterion) -> Criterion:
    """Two formulas as one criterion: that of the values, and that of the derivatives."""
    if forward.status is Status.NOT_APPLICABLE:
        return backward
    worse = max((backward, forward), key=lambda one: one.status is Status.FAIL)
    detail = worse.detail if worse.status is Status.FAIL else f"{forward.detail} {backward.detail}"
    return replace(worse, detail=detail)


# --- one update -----------------------------------------------------------------------------------------------------


def _training(wanted: Wanted, declared: Declared, inputs: GradientInputs) -> Case:
    limits = {"train_length": "length", "batch": "batch", "in_features": "features", "hidden_features": "hidden"}
    if not all(1 <= getattr(inputs, name) <= LIMITS[limit].value for name, limit in limits.items()):
        raise UnreportableError(" ".join(problem.text for problem in look_at(inputs).problems))
    spec = spec_of(inputs)
    case = training_case(wanted, declared, spec, cache(lambda: look_at(inputs)))
    case.settings = _settings(wanted, inputs)
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
    with asking(log):
        built(trial)
        outputs = int(spec.targets.shape[-1])
        nnx.Linear(spec.hidden_features, outputs, kernel_init=kernel, bias_init=zeros, rngs=nnx.Rngs(spec.seed))
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
        Name.RULES: lambda: _kept(look().report),
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
