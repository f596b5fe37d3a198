"""A report of the LSTM cell page: one cell, built, its carry initialised, stepped once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

import jax
import jax.numpy as jnp
from flax import nnx
from jax import tree_util

from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.contract.engine import diagnose_facts
from core.contract.facts import facts_of, run_trial
from core.contract.record import CellEvents
from core.contract.rule import Stage
from core.contract.subject import CellTrial, SequenceTrial
from core.inputs.cell_inputs import CellInputs, build
from core.inputs.cell_page import look_at
from core.report.arrays import input_of, inputs_of
from core.report.asking import Log, asking, keys_criterion
from core.report.calls import listed
from core.report.case import (
    FORWARD_ONLY,
    NO_PADDING_HERE,
    ONE_MODE,
    OVER,
    RAISED,
    Case,
    Leaf,
    UnreportableError,
    all_work,
    finite,
    negative,
    no_matter,
    of_difference,
    rules,
    said,
    shapes,
    type_text,
)
from core.report.declared import check_declared, data_of, read_declared, with_known
from core.report.measure import Timed
from core.report.model import Asked, Criterion, Declared, Input, Name, Negative, Seed
from core.report.wanted import Wanted, settings_of
from core.runners.cell_formulas import KINDS
from core.runners.cells import CellStep

TITLE = "One step of an nnx.{cell}"
ABOUT = "in_features {features}, hidden_features {hidden}, a batch of {batch}."
PARAMETERS, CARRY, DATA = "parameters of the cell", "initial carry", "x"
WIDE_X = "The input has one feature more than in_features."
WIDE_C = "The carry has one unit more than hidden_features."
NO_RNGS = "The cell is built without rngs."
NO_BATCH = "The carry has no batch of its own to map over."
ONE_STEP = "There is one step, and no scan."
NUMPY = "Gates, new carry and output by the cell's equations in NumPy."
CALLED = "The cell called without jit, and the jitted program."
MAPPED = "The cell mapped over its batch, and the jitted program, which agrees with eager."
TIMED = "one step of nnx.{cell}, jitted"
#: What is merely looked at.
_LOOKED_AT: Final = frozenset({"example", "unit"})
_BOUNDS: Final = {"ones": (1.0, 1.0)}


def cell_case(wanted: Wanted) -> Case:
    """The case of complete field values.

    Raises:
        UnreportableError: an input cannot be read.
        DeclaredError: what was declared cannot be.
    """
    declared = read_declared(wanted.declared)
    inputs = CellInputs.of(wanted.values, wanted.file)
    reading = build(inputs)
    trial = reading.trial
    if trial is None:
        raise UnreportableError(" ".join(problem.text for problem in reading.problems))
    over = over_limit(trial)
    log = Log()
    events = None
    if not over:
        with asking(log):
            events = run_trial(trial, constructor=True)
    low, high = _BOUNDS.get(inputs.input, (None, None))
    contract = with_known(declared, Declared("BF", dtype="float32", low=low, high=high))
    asked = tuple(drawn_by(log.asked, inputs.used is None))
    error = None if events is None else raised_in(events)
    reason = fill(OVER) if over else fill(RAISED, type="" if error is None else type(error).__name__)
    look = cache(lambda: look_at(inputs))

    def step() -> CellStep:
        found = look().step
        if found is None:
            raise UnreportableError(reason)
        return found

    def fits() -> tuple[Criterion, Criterion]:
        return check_declared(contract, data_of("x", trial.inputs))

    def mapped() -> Criterion:
        apart = step().vmap
        return no_matter(Name.VMAP, fill(NO_BATCH)) if apart is None else of_difference(Name.VMAP, apart, fill(MAPPED))

    missing = "" if events is not None and error is None else reason
    work: dict[Name, Callable[[], Criterion]] = {
        Name.RULES: lambda: rules(look().report or Report(Outcome.OK)),
        Name.SHAPES: lambda: shapes(_leaves(inputs, step())),
        Name.DECLARED: lambda: fits()[0],
        Name.RANGE: lambda: fits()[1],
        Name.KEYS: lambda: keys_criterion(asked),
        Name.OUTPUTS: lambda: finite(Name.OUTPUTS, (step().after, step().output), (step().inputs, step().before)),
        Name.LOSS: said(Name.LOSS, fill(FORWARD_ONLY)),
        Name.GRADIENTS: said(Name.GRADIENTS, fill(FORWARD_ONLY)),
        Name.PADDING: said(Name.PADDING, fill(NO_PADDING_HERE)),
        Name.JIT: lambda: of_difference(Name.JIT, step().eager, fill(CALLED)),
        Name.VMAP: mapped,
        Name.LOOP: said(Name.LOOP, fill(ONE_STEP)),
        Name.FORMULA: lambda: of_difference(Name.FORMULA, step().numpy, fill(NUMPY)),
        Name.MODE: said(Name.MODE, fill(ONE_MODE)),
    }
    needs = (Name.SHAPES, Name.KEYS, Name.OUTPUTS, Name.JIT, Name.VMAP, Name.FORMULA)

    return Case(
        page=wanted.page,
        title=fill(TITLE, cell=inputs.cell),
        about=fill(ABOUT, features=inputs.in_features, hidden=inputs.hidden_features, batch=_batch(trial)),
        settings=settings_of(wanted, _LOOKED_AT),
        inputs=listed(_inputs(trial, events, wanted)),
        contract=contract,
        work=all_work(work, needs, lambda: missing),
        negatives=cell_negatives(inputs.cell),
        seeds=tuple(_seeds(inputs)),
        asked=asked,
        asked_cut=log.cut,
        timed=partial(_timed, inputs, events) if events is not None and error is None else None,
        not_timed=missing,
    )


def cell_negatives(kind: str, features: int = 3, hidden: int = 4) -> tuple[Negative, ...]:
    """Wrong uses of a cell of this kind, of a size of its own: types alone decide, nothing is computed."""
    made = KINDS[kind].cell
    parts = len(KINDS[kind].parts)

    def call(units: int, width: int) -> Any:
        def used() -> Any:
            cell = made(features, hidden, rngs=nnx.Rngs(0))
            carry = tuple(jnp.zeros((2, units)) for _ in range(parts))
            return cell(carry if parts > 1 else carry[0], jnp.zeros((2, width)))

        return jax.eval_shape(used)

    return (
        negative(fill(WIDE_X), "TypeError", lambda: call(hidden, features + 1)),
        negative(fill(WIDE_C), "TypeError", lambda: call(hidden + 1, features)),
        negative(fill(NO_RNGS), "TypeError", lambda: made(features, hidden)),
    )


def raised_in(events: CellEvents) -> BaseException | None:
    """What a run of a trial raised."""
    kept: tuple[Any, ...] = (*events.builds, *events.carries, *events.steps, events)
    return next((one.error for one in kept if one.error is not None), None)


def over_limit(subject: CellTrial | SequenceTrial) -> bool:
    """Whether its sizes are over a limit, so that it must not be run."""
    return bool(diagnose_facts(facts_of(subject), None, (Stage.LIMIT,)).found)


def drawn_by(asked: list[Asked], seeded: bool) -> Iterator[Asked]:
    """Requests for keys; those of a cell whose parameters come from a file were made, and their numbers replaced."""
    for one in asked:
        yield one if seeded or one.by.endswith(".initialize_carry") else replace(one, drawn=False)


def _batch(trial: CellTrial) -> Any:
    shape = getattr(trial.inputs, "shape", ())
    return shape[0] if shape else 0


def _seeds(inputs: CellInputs) -> Iterator[Seed]:
    if inputs.used is None:
        yield Seed(PARAMETERS, inputs.seed, "jax")
    if not inputs.handmade:
        yield Seed(CARRY, inputs.carry_seed, "jax")
    if inputs.input == "noise":
        yield Seed(DATA, inputs.input_seed, "numpy")


def _inputs(trial: CellTrial, events: CellEvents | None, wanted: Wanted) -> Iterator[Input]:
    yield input_of("x", trial.inputs, "BF", values=wanted.with_values)
    if events is None:
        return
    for event in events.steps[:1]:
        yield from inputs_of("carry", event.carry, "BH", values=wanted.with_values)
    for build_event in events.builds[:1]:
        if build_event.cell is not None:
            yield from parameters_of("cell", build_event.cell, values=wanted.with_values)


def parameters_of(root: str, module: Any, *, values: bool = False) -> Iterator[Input]:
    """Every parameter of a module, under its dotted path."""
    flat, _ = tree_util.tree_flatten_with_path(nnx.to_pure_dict(nnx.state(module, nnx.Param)))
    for path, leaf in flat:
        yield input_of(".".join((root, *(str(key.key) for key in path))), leaf, values=values)


def _leaves(inputs: CellInputs, step: CellStep) -> Iterator[Leaf]:
    """The carry as it was given, the new carry and the output: (B, H), float32."""
    batch, hidden = int(step.inputs.shape[0]), inputs.hidden_features
    want = type_text((batch, hidden), "float32")
    count = len(step.kind.parts)
    for root, leaves in (("carry", step.carry), ("new_carry", step.new_carry)):
        if len(leaves) != count:
            yield Leaf(root, f"{len(leaves)} arrays", f"{count} arrays")
        for leaf in leaves:
            yield Leaf(leaf.path, "—" if leaf.aval is None else type_text(leaf.aval.shape, leaf.aval.dtype), want)
    aval = step.result.aval
    yield Leaf("output", "—" if aval is None else type_text(aval.shape, aval.dtype), want)
    width = inputs.in_features
    yield Leaf("x", type_text(step.inputs.shape, step.inputs.dtype.name), type_text((batch, width), "float32"))


def _timed(inputs: CellInputs, events: CellEvents) -> Timed:
    event = events.steps[0]
    graph, state = nnx.split(event.cell)

    def run(state: Any, carry: Any, x: Any) -> Any:
        return nnx.merge(graph, state)(carry, x)

    return Timed(fill(TIMED, cell=inputs.cell), run, (state, event.carry, event.inputs))
