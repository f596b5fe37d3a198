"""A report of the Gradients page: derivatives through cells, the gradient of a scan, one update of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.contract.facts import ScanFacts, facts_of
from core.contract.subject import SequenceTrial
from core.inputs.gradient_fields import CELLS, PRESET, TRAINING
from core.inputs.gradient_inputs import LOOKED_AT, GradientInputs, build
from core.inputs.gradient_page import CellsResult, check_cells, look_at
from core.inputs.gradient_scan import ScanView, call_of
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
    finite,
    negative,
    of_difference,
    rules,
    said,
    shapes,
    type_text,
)
from core.report.cell_case import cell_negatives
from core.report.declared import check_declared, data_of, read_declared, with_known
from core.report.formulas import formula_criterion
from core.report.measure import Timed
from core.report.model import Criterion, Declared, Name, Negative, Seed, Status
from core.report.sequence_case import built, layer_parameters, layer_timed
from core.report.training_case import training_view
from core.report.wanted import Wanted, settings_of
from core.runners.gradients import check_memory, memory_map
from core.runners.parting_layer import Layered
from core.runners.parting_scan import Scanned
from core.runners.scan import run_call
from core.runners.scan_gradient_check import check_scan_gradient
from core.runners.sequence import run_sequence

CELLS_TITLE = "What an LSTM, a GRU and a simple cell remember of their inputs"
CELLS_ABOUT = "The norm of d h_s / d x_t for every state and input; T = {length}, F = {features}, H = {hidden}."
SCAN_TITLE = "The gradient of a scan: {title}"
SCAN_ABOUT = "With respect to init and xs, of the sum of {target}."
PARAMETERS, DATA = "parameters", "data"
ONE_EXAMPLE = "There is one example, and nothing to map over."
WHOLE_NUMBERS = "The gradient with respect to whole numbers."
NO_NUMBER = "The gradient of something that is not one number."
NO_LOSS = "There is no loss: every state is differentiated."
SUMMED = "The number that is differentiated."
TWO_WAYS = (
    "The last row of each map by reverse mode and by central differences in float64; {cell} is the farthest ({way})."
)
WAYS_INSTEAD = "Two other ways of working the derivatives out take its place."
REVERSE, FINITE = "reverse mode", "differences"
CENTRAL = "{compared} of {total} derivatives by central differences in float64{bends}."
BENDS = "; {bends} more lie where the step has a corner or an edge, and have none"
GRADIENT_TIMED = "the gradient of the scan over T = {length} steps, jitted"
LAYER_TIMED = "an nnx.LSTMCell forward, not its derivatives: {what}"
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
    make: Callable[[Wanted, Declared, GradientInputs], Case] = {CELLS: _cells, PRESET: _scan, TRAINING: training_view}[
        inputs.of
    ]
    case = make(wanted, declared, inputs)
    case.settings = _settings(wanted, inputs)
    return case


def _settings(wanted: Wanted, inputs: GradientInputs) -> Any:
    unused = frozenset(name for name in wanted.values if name != "of" and name not in _OF[inputs.of])
    return settings_of(wanted, unused)


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
        settings=(),
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
        Name.RULES: lambda: rules(look.report or Report(Outcome.OK)),
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
        settings=(),
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
