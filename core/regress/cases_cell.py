"""The LSTM cell page: its cases, and one step of the cell with every gate, a stated loss and its gradient."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.limits import LIMITS
from core.base.parting import Stage
from core.base.text import fill
from core.base.violation import Severity
from core.contract import rule
from core.contract.engine import diagnose_facts
from core.contract.facts import CellFacts, facts_of
from core.contract.record import StepEvent
from core.inputs.cell_fields import EXTRA_FEATURE, TYPED
from core.inputs.cell_inputs import CellInputs, Reading, build, typed_rows
from core.inputs.cell_numbers import written
from core.inputs.cell_page import look_at
from core.inputs.fields import Value
from core.inputs.parse import UnreadableError
from core.regress.case import Became, Case, CaseName, Made, TooLargeError, broken, refused
from core.regress.data import boundary, other_sizes, seeded
from core.regress.trees import plain
from core.runners.cell_formulas import KINDS, CellKind
from core.runners.cells import kind_of, listen
from core.runners.gradient_source import GRADIENT_PROGRAMS
from core.runners.room import keep_room
from core.weights.cell import CellWeights

X, CARRY, WEIGHTS, STATE, NEW_CARRY, OUTPUT, GATES, LOSS, GRAD = (
    "x", "carry", "weights", "state", "new carry", "output", "gates", "loss", "grad"
)  # fmt: skip
#: What is differentiated.
MEAN_SQUARE: Final = "the mean of output²"
SIZES = "B = {batch}, F = {features}, H = {hidden}"
WIDER = "x has {got} features, in_features is {want}"
NO_EXAMPLES = "no example"
TOO_LARGE = "A baseline is small: {what} is {value:,} numbers, more than {limit:,}. Take smaller sizes."

type Values = Mapping[str, Value]
type Array = np.ndarray[Any, Any]


def cases(values: Values) -> Iterator[Case]:
    """The small set of a state of the page."""
    inputs = CellInputs.of(values)
    shape = _shape(inputs)
    yield Case(CaseName.STANDARD, values)
    yield _case(CaseName.ONE, values, _first(inputs))
    yield _case(CaseName.ZEROS, values, _pasted(inputs, np.zeros(shape, np.float32)))
    yield _case(CaseName.BOUNDARY, values, _pasted(inputs, boundary(shape, "float32")))
    yield _uneven(values, inputs)
    # A cell takes one step, so there is no sequence to be empty: a batch is.
    typed: dict[str, Any] = {"numbers": ""} if inputs.input in TYPED else {}
    yield _case(CaseName.EMPTY, values, replace(inputs, batch=0, **typed), fill(NO_EXAMPLES))
    wider = _pasted(inputs, np.zeros((shape[0], shape[1] + 1), np.float32))
    made = replace(inputs, break_input=EXTRA_FEATURE)
    words = fill(WIDER, got=shape[1] + 1, want=inputs.in_features)
    yield _case(CaseName.INVALID, values, wider if inputs.input in TYPED else made, words)


def tidy(values: Values, file: CellWeights | None = None) -> dict[str, Value]:
    """The values without what nothing is made of just now, numbers or a file, and without what is merely looked at."""
    out = {**values, "example": 0, "unit": 0}
    if CellInputs.of(values, file).used is None:
        out["weights"] = ""
    if values["input"] not in TYPED:
        out["numbers"] = ""
    parts = KINDS[str(values["cell"])].parts if values["carry"] == "typed" else ()
    return out | {f"carry_{part}": "" for part in ("c", "h") if part not in parts}


def hidden(values: Values, seed: int) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The values with typed numbers replaced by seeded ones of the same shape; and the fields that were."""
    inputs, out, names = CellInputs.of(values), dict(values), []
    for count, name in enumerate(("numbers", "carry_c", "carry_h")):
        if not values[name]:
            continue
        try:
            shape = tuple(typed_rows(inputs, name).shape)
        except UnreadableError:
            return dict(values), ()
        out[name] = written(seeded(shape, "float32", seed + count), table=name == "numbers" and inputs.input == "table")
        names.append(name)
    return out, tuple(names)


# --- cases ----------------------------------------------------------------------------------------------------------


def _case(name: CaseName, values: Values, inputs: CellInputs, words: str = "") -> Case:
    return Case(name, {**values, **inputs.values}, words)


def _shape(inputs: CellInputs) -> tuple[int, int]:
    """(B, F) of the input."""
    if inputs.input in TYPED:
        try:
            shape = tuple(typed_rows(inputs, "numbers").shape)
        except UnreadableError:
            shape = ()
        if len(shape) == 2:
            return shape[0], shape[1]
    return inputs.batch, inputs.in_features


def _pasted(inputs: CellInputs, rows: Array) -> CellInputs:
    return replace(inputs, input="paste", numbers=written(rows))


def _first(inputs: CellInputs) -> CellInputs:
    """The first example alone, of what is typed too."""
    out = replace(inputs, batch=1)
    for name in ("numbers", "carry_c", "carry_h"):
        if getattr(inputs, name):
            try:
                rows = np.asarray(typed_rows(inputs, name))[:1]
            except UnreadableError:
                continue
            text = written(rows, table=name == "numbers" and inputs.input == "table")
            out = replace(out, **{name: text})  # type: ignore[arg-type]  # a text for a text field
    return out


def _uneven(values: Values, inputs: CellInputs) -> Case:
    """Batch, features and units all different; H stays, so that the cell is as near to the page's as can be."""
    hidden, features = inputs.hidden_features, inputs.in_features
    if features == hidden:
        features = other_sizes((hidden,), 1)[0]
    batch = other_sizes((hidden, features), 1)[0]
    carry = "normal" if inputs.carry == "typed" else inputs.carry
    out = replace(
        inputs,
        batch=batch,
        in_features=features,
        input="noise" if inputs.input in TYPED else inputs.input,
        numbers="",
        carry=carry,
        carry_c="",
        carry_h="",
    )
    return _case(CaseName.UNEVEN, values, out, fill(SIZES, batch=batch, features=features, hidden=hidden))


# --- running --------------------------------------------------------------------------------------------------------


def run(values: Values, file: CellWeights | None = None) -> Made:
    """One step; `file`: the parameters that a state names.

    Raises:
        TooLargeError: the parameters are more than a baseline may hold.
    """
    inputs = CellInputs.of(values, file)
    reading = build(inputs)
    if reading.trial is None:
        return refused(*(problem.field for problem in reading.problems))
    keep_room()
    facts = facts_of(reading.trial)
    if not isinstance(facts, CellFacts):
        raise TypeError(facts)
    if diagnose_facts(facts, None, (rule.Stage.LIMIT,)).found:
        return broken("X601")
    _bound(inputs)
    if facts.jax is not None or not facts.cells.steps:
        return _wrong(inputs, reading)
    return made(facts.cells.steps[0])


def _bound(inputs: CellInputs) -> None:
    """Refuse what would be too much to keep.

    Raises:
        TooLargeError: with the number.
    """
    gates = len(KINDS[inputs.cell].gates)
    parameters = gates * inputs.hidden_features * (inputs.hidden_features + inputs.in_features + 1)
    bounded(PARAMETERS, parameters)


PARAMETERS = "the number of parameters"


def bounded(what: str, value: int) -> None:
    """Refuse what would be too much to keep.

    Raises:
        TooLargeError: with the number and the limit.
    """
    limit = LIMITS["baseline_numbers"].value
    if value > limit:
        raise TooLargeError(fill(TOO_LARGE, what=fill(what), value=value, limit=limit))


def _wrong(inputs: CellInputs, reading: Reading) -> Made:
    """What the page says of a step that raises."""
    look = look_at(inputs)
    if look.report is None or reading.trial is None:
        return refused(*(problem.field for problem in look.problems))
    errors = [v.code for v in look.report.violations if v.severity in (Severity.ERROR, Severity.LIMIT)]
    raised = [] if look.raised is None else [look.raised.type]
    return broken(*(errors or look.report.codes or raised))


def made(event: StepEvent) -> Made:
    """The stages of a step that was called."""
    kind = kind_of(event.cell)
    graph, state = nnx.split(event.cell)
    leaves, tree = tree_util.tree_flatten(state)
    size = (kind.name, int(event.cell.in_features), int(event.cell.hidden_features))
    args = (tuple(leaves), event.carry, jnp.asarray(event.inputs))
    program, _ = GRADIENT_PROGRAMS.get(("baseline cell", *size), _program(kind, graph, tree), args)
    (loss, (new_carry, output, gates)), (of_leaves, of_carry, of_x) = jax.device_get(program(*args))
    of_weights = nnx.to_pure_dict(tree_util.tree_unflatten(tree, list(of_leaves)))
    types = {".".join(map(str, path)): type(variable).__name__ for path, variable in nnx.to_flat_state(state)}
    stages: Mapping[Stage, Mapping[str, Any]] = {
        Stage.DATA: {X: event.inputs, CARRY: event.carry, WEIGHTS: state},
        Stage.STATE: {STATE: types},
        Stage.FORWARD: {NEW_CARRY: new_carry, OUTPUT: output, GATES: gates},
        Stage.LOSS: {LOSS: loss},
        Stage.GRADIENTS: {GRAD: {WEIGHTS: of_weights, CARRY: of_carry, X: of_x}},
    }
    kept = {stage: {root: plain(tree) for root, tree in trees.items()} for stage, trees in stages.items()}
    return Made(Became.RAN, stages=kept, loss=fill(MEAN_SQUARE))


def _program(kind: CellKind, graph: Any, tree: Any) -> Callable[..., Any]:
    """``program(leaves, carry, x)``: ((loss, (new carry, output, gates)), gradients of all three)."""

    def loss(leaves: tuple[Any, ...], carry: Any, inputs: Any) -> Any:
        cell = nnx.merge(graph, tree_util.tree_unflatten(tree, leaves))
        kept = listen(kind, cell)
        new_carry, output = cell(carry, inputs)
        gates = {name: value for name, (_, value) in kept.items()}
        return jnp.mean(jnp.square(output.astype(jnp.float32))), (new_carry, output, gates)

    return jax.value_and_grad(loss, argnums=(0, 1, 2), has_aux=True)
