"""The Gradients page: the cases of its three views, and one run of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from core.base.limits import LIMITS
from core.base.parting import Path, Stage
from core.base.text import fill
from core.contract import rule
from core.contract.engine import diagnose_facts
from core.contract.facts import facts_of
from core.inputs.fields import Value
from core.inputs.gradient_fields import CELL_NAMES, CELLS, PRESET, TRAINING, TYPED
from core.inputs.gradient_inputs import GradientInputs, build, typed_steps
from core.inputs.gradient_page import look_at, settled
from core.inputs.gradient_scan import call_of, target_of
from core.inputs.gradient_training import spec_of
from core.inputs.parse import UnreadableError, parse_sequence
from core.inputs.preset import step_of, takes_numbers
from core.regress import cases_scan
from core.regress.case import Became, Case, CaseName, Made, Rows, broken, refused
from core.regress.cases_cell import bounded
from core.regress.data import STEPS, WRITTEN, boundary, leaf_text, other_sizes, rows_text, seeded
from core.regress.trees import plain
from core.runners.cell_formulas import KINDS
from core.runners.gradients import memory_map
from core.runners.memo import one_check
from core.runners.parting import run as run_path
from core.runners.parting_layer import LOSS, XS, Layered
from core.runners.room import keep_room
from core.runners.scan import run_call
from core.steps.step import XKind
from core.weights.cell import CellWeights

NORMS_OF_H, NORMS_OF_C = "norms of h", "norms of c"
#: What the loss of a view is.
LAST_ROW: Final = "the sum of the norms ‖∂h_T/∂x_t‖ over t and the three cells"
MEAN_ERROR: Final = "the mean of (prediction − target)²"
SIZES = "T = {length}, F = {features}, H = {hidden}"
TRAINING_SIZES = "B = {batch}, T = {length}, F = {features}, H = {hidden}"
ONE_STEP, NO_STEPS, AXES, NO_EXAMPLES = "one step", "no steps", "x has three axes", "no example"
FIVE_AXES = "xs has five axes"
FIRST_STEPS = "the first {steps} steps"
STILL, STRONG = "nothing dropped, learning rate 0", "dropout 0.9, learning rate 10"

type Values = Mapping[str, Value]


def cases(values: Values) -> Iterator[Case]:
    """The small set of a state of the page."""
    inputs = GradientInputs.of_values(values)
    yield Case(CaseName.STANDARD, values)
    for name, edit, words in _VIEWS[inputs.of](inputs):
        yield Case(name, {**values, **edit}, words)


def left_out(values: Values) -> tuple[CaseName, ...]:
    """The cases that a view has no inputs for: a scan without xs has nothing here whose shape could be wrong or odd."""
    inputs = GradientInputs.of_values(values)
    have = {CaseName.STANDARD, *(name for name, _, _ in _VIEWS[inputs.of](inputs))}
    return tuple(name for name in CaseName if name not in have)


def tidy(values: Values, file: CellWeights | None = None) -> dict[str, Value]:  # noqa: ARG001  # as in `run`
    """The values without typed numbers that nothing is made of just now, and without what is merely looked at."""
    inputs = settled(GradientInputs.of_values(values))
    blank: dict[str, Value] = {} if inputs.of == CELLS and inputs.source == TYPED else {"numbers": ""}
    if inputs.of != PRESET or not takes_numbers(step_of(inputs.preset)):
        blank["xs"] = ""
    kept = {name: getattr(inputs, name) for name in values if hasattr(inputs, name)}
    return {**values, **kept, **blank}


def hidden(values: Values, seed: int) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The values with typed numbers replaced by seeded ones of the same shape; and the fields that were."""
    try:
        if values["numbers"]:
            shape = typed_steps(str(values["numbers"])).shape
            return {**values, "numbers": rows_text(seeded(shape, "float32", seed))}, ("numbers",)
        if str(values["xs"]).strip():
            given = parse_sequence(str(values["xs"])).shape
            dtype = step_of(values["preset"]).dtype
            return {**values, "xs": rows_text(seeded(given, dtype, seed))}, ("xs",)
    except UnreadableError:
        pass
    return dict(values), ()


# --- cases ----------------------------------------------------------------------------------------------------------

type Edits = Iterator[tuple[CaseName, dict[str, Value], str]]


def _of_cells(inputs: GradientInputs) -> Edits:
    typed = inputs.source == TYPED
    shape: tuple[int, ...] = (inputs.length, inputs.in_features)
    rows = np.zeros(shape, np.float32) if not typed else _steps(inputs)
    length, features = rows.shape
    one: dict[str, Value] = {"numbers": leaf_text(rows[:1])} if typed else {"length": 1}
    yield CaseName.ONE, one, fill(ONE_STEP)
    yield CaseName.ZEROS, _typed(np.zeros((length, features))), ""
    steps = length if length * features <= WRITTEN else STEPS
    words = "" if steps == length else fill(FIRST_STEPS, steps=steps)
    yield CaseName.BOUNDARY, _typed(boundary((steps, features), "float32")), words
    wide = features if features != inputs.hidden_features else other_sizes((inputs.hidden_features,), 1)[0]
    steps = other_sizes((inputs.hidden_features, wide), 1)[0]
    words = fill(SIZES, length=steps, features=wide, hidden=inputs.hidden_features)
    source = "noise" if typed else inputs.source
    yield CaseName.UNEVEN, {"source": source, "numbers": "", "length": steps, "in_features": wide}, words
    yield CaseName.EMPTY, {"numbers": ""} if typed else {"length": 0}, fill(NO_STEPS)
    yield CaseName.INVALID, {"source": TYPED, "numbers": "zeros(2, 3, 4)"}, fill(AXES)


def _steps(inputs: GradientInputs) -> Any:
    try:
        return typed_steps(inputs.numbers)
    except UnreadableError:
        return np.zeros((inputs.length, inputs.in_features), np.float32)


def _typed(rows: Any) -> dict[str, Value]:
    return {"source": TYPED, "numbers": leaf_text(np.asarray(rows, np.float32))}


def _of_preset(inputs: GradientInputs) -> Edits:
    step = step_of(inputs.preset)
    if not takes_numbers(step):
        return
    call, _ = call_of(inputs)
    xs = np.zeros((1,), np.float32) if call is None else np.asarray(call.xs)
    yield CaseName.ONE, {"xs": _five(xs[:1])}, fill(ONE_STEP)
    yield CaseName.ZEROS, {"xs": _five(np.zeros_like(xs))}, ""
    yield CaseName.BOUNDARY, {"xs": _five(boundary(xs.shape, xs.dtype.name))}, ""
    shape: tuple[int, ...] = {XKind.ANY: (5, 3, 2), XKind.SCALAR: (5,)}.get(step.x, (5, step.x_width or 3))
    words = f"({', '.join(map(str, shape))})"
    yield CaseName.UNEVEN, {"xs": leaf_text(seeded(shape, xs.dtype.name, inputs.seed))}, words
    yield CaseName.EMPTY, {"xs": rows_text(np.zeros((0, *xs.shape[1:])))}, fill(NO_STEPS)
    yield CaseName.INVALID, {"xs": "zeros(1, 1, 1, 1, 1)"}, fill(FIVE_AXES)


def _five(xs: Any) -> str:
    """A sequence as nested lists, so that a single row stays a row."""
    return leaf_text(xs) if xs.size else rows_text(xs)


def _of_training(inputs: GradientInputs) -> Edits:
    yield CaseName.ONE, {"batch": 1}, ""
    yield CaseName.ZEROS, {"rate": 0.0, "learning_rate": 0.0}, fill(STILL)
    yield CaseName.BOUNDARY, {"rate": 0.9, "learning_rate": 10.0}, fill(STRONG)
    hidden = inputs.hidden_features
    features = inputs.in_features if inputs.in_features != hidden else other_sizes((hidden,), 1)[0]
    length, batch = other_sizes((hidden, features), 2)
    words = fill(TRAINING_SIZES, batch=batch, length=length, features=features, hidden=hidden)
    yield CaseName.UNEVEN, {"train_length": length, "batch": batch, "in_features": features}, words
    yield CaseName.EMPTY, {"train_length": 0}, fill(NO_STEPS)
    yield CaseName.INVALID, {"batch": 0}, fill(NO_EXAMPLES)


_VIEWS: Final = {CELLS: _of_cells, PRESET: _of_preset, TRAINING: _of_training}


# --- running --------------------------------------------------------------------------------------------------------


def run(values: Values, file: CellWeights | None = None) -> Made:  # noqa: ARG001  # no file is for this page
    """Run what the view differentiates.

    Raises:
        TooLargeError: it is more than a baseline may hold.
    """
    inputs = settled(GradientInputs.of_values(values))
    keep_room()
    return {CELLS: _run_cells, PRESET: _run_preset, TRAINING: _run_training}[inputs.of](inputs)


def _run_cells(inputs: GradientInputs) -> Made:
    reading = build(inputs)
    if reading.data is None:
        return refused(*(problem.field for problem in reading.problems))
    length, features = reading.data.shape
    bounded(SIZE_OF_MAP, length * length)
    bounded(NUMBERS, length * max(features, inputs.hidden_features))
    maps = {CELL_NAMES[one.kind]: one for one in (memory_map(trial, 0) for trial in reading.trials)}
    of_c = {name: one.c for name, one in maps.items() if one.c is not None}
    stages: Mapping[Stage, Mapping[str, Any]] = {
        Stage.DATA: {XS: reading.data},
        Stage.LOSS: {LOSS: np.float64(sum(float(one.last_h.sum()) for one in maps.values()))},
        Stage.GRADIENTS: {NORMS_OF_H: {name: one.h for name, one in maps.items()}, NORMS_OF_C: of_c},
    }
    rows = {XS: Rows.T, NORMS_OF_H: Rows.T, NORMS_OF_C: Rows.T}
    # Norms are kept in double precision for their range; the cells compute in float32.
    return Made(Became.RAN, stages=_kept(stages), rows=rows, computed=frozenset({"float32"}), loss=fill(LAST_ROW))


SIZE_OF_MAP, NUMBERS, TRAINED = "T · T", "T · max(F, H)", "B · T · max(F, H)"


def _run_preset(inputs: GradientInputs) -> Made:
    call, problems = call_of(inputs)
    if call is None:
        return refused(*(problem.field for problem in problems))
    if diagnose_facts(facts_of(call), None, (rule.Stage.LIMIT,)).found:
        return broken("X601")
    with one_check():
        try:
            return cases_scan.made(call, run_call(call), target_of(inputs))
        except Exception:  # noqa: BLE001  # whatever JAX raises for these numbers: the page says what it means
            return _wrong(inputs)


def _wrong(inputs: GradientInputs) -> Made:
    look = look_at(inputs)
    if look.report is None or not look.report.broken:
        return refused(*(problem.field for problem in look.problems))
    return broken(*(v.code for v in look.report.broken))


def _run_training(inputs: GradientInputs) -> Made:
    limits = {"train_length": "length", "batch": "batch", "in_features": "features", "hidden_features": "hidden"}
    bad = [name for name, limit in limits.items() if not 1 <= getattr(inputs, name) <= LIMITS[limit].value]
    if bad:
        return refused(*bad)
    length, hidden, features = inputs.train_length, inputs.hidden_features, inputs.in_features
    bounded(TRAINED, inputs.batch * length * max(hidden, features))
    bounded(PARAMETERS, len(KINDS[inputs.model].gates) * hidden * (hidden + features + 1))
    record = run_path(Layered.of_training(spec_of(inputs)), Path.JIT)
    if record.failed is not None:
        return _wrong(inputs)
    rows = dict.fromkeys(record.timed, Rows.T) | {"carry": Rows.VISITS}
    return Made(Became.RAN, stages=_kept(record.stages), rows=rows, loss=fill(MEAN_ERROR))


PARAMETERS = "the number of parameters"


def _kept(stages: Mapping[Stage, Mapping[str, Any]]) -> dict[Stage, dict[str, Any]]:
    return {stage: {root: plain(tree) for root, tree in trees.items()} for stage, trees in stages.items()}
