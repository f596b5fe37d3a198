"""The Sequence page: its cases, and one run of the layer as the page runs it, with a stated loss and its gradient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np

from core.base.parting import Path, Stage
from core.base.sequences import SequenceResult
from core.base.text import fill
from core.base.violation import Severity
from core.contract import rule
from core.contract.engine import diagnose_facts
from core.contract.facts import facts_of
from core.contract.sequence_facts import outcome
from core.contract.subject import SequenceTrial
from core.inputs.cell_numbers import written
from core.inputs.fields import Value
from core.inputs.sequence_data import shape_of
from core.inputs.sequence_fields import LENGTHS, NOISE, NONE, NORMAL, TYPED
from core.inputs.sequence_inputs import Known, SequenceInputs, build, read
from core.inputs.sequence_padding import default_lengths, is_given, written_lengths
from core.inputs.sequence_page import look_at
from core.regress.case import Became, Case, CaseName, Made, Rows, broken, refused
from core.regress.cases_cell import bounded
from core.regress.data import STEPS, WRITTEN, boundary, leaf_text, other_sizes, seeded
from core.regress.trees import plain
from core.runners.cell_formulas import KINDS
from core.runners.memo import one_check
from core.runners.parting import Log
from core.runners.parting_layer import Layered
from core.runners.room import keep_room
from core.weights.cell import CellWeights

XS, YS, LOSS, GRAD, STATE, FINAL, CARRY = "xs", "ys", "loss", "grad", "state", "final carry", "carry"
#: What is differentiated.
MEAN_SQUARE: Final = "the mean of ys² over all steps, padding too"
SIZES = "B = {batch}, T = {length}, F = {features}, H = {hidden}"
NO_STEPS, MORE_LENGTHS = "no steps, and nothing said of padding", "{got} lengths for {want} examples"
NUMBERS, PARAMETERS = "B · T · max(F, H)", "the number of parameters"
FORWARD, BACKWARD = "", "backward "

type Values = Mapping[str, Value]
type Array = np.ndarray[Any, Any]


def cases(values: Values) -> Iterator[Case]:
    """The small set of a state of the page."""
    inputs = SequenceInputs.of(values)
    known, _ = read(inputs)
    batch, length, features = (inputs.batch, inputs.length, inputs.in_features) if known is None else known.sizes
    shape = shape_of((batch, length, features), inputs.axes)
    yield Case(CaseName.STANDARD, values)
    yield _case(CaseName.ONE, values, _first(inputs, known))
    yield _case(CaseName.ZEROS, values, replace(inputs, source=TYPED, numbers=leaf_text(np.zeros(shape))))
    yield _boundary(values, inputs, shape)
    yield _uneven(values, inputs)
    nothing: dict[str, Any] = {"masking": NONE, "lengths": "", "mask": "", "slip": NONE}
    empty: dict[str, Any] = (
        {"numbers": leaf_text(np.zeros(shape_of((batch, 0, features), inputs.axes)))} if _typed(inputs) else {}
    )
    yield _case(CaseName.EMPTY, values, replace(inputs, length=0, **nothing, **empty), fill(NO_STEPS))
    many = written_lengths([length] * (batch + 1))
    wrong = {**nothing, "masking": LENGTHS, "lengths": many}
    words = fill(MORE_LENGTHS, got=batch + 1, want=batch)
    yield _case(CaseName.INVALID, values, replace(inputs, **wrong), words)


def tidy(values: Values, file: CellWeights | None = None) -> dict[str, Value]:
    """The values without what nothing is made of just now, numbers or a file, and without what is merely looked at."""
    inputs = SequenceInputs.of(values, file).run
    named = inputs.weights if inputs.used is not None else ""
    out = replace(inputs, numbers=inputs.numbers if _typed(inputs) else "", weights=named)
    parts = KINDS[inputs.cell].parts if inputs.init == TYPED else ()
    blank = {f"init_{part}": "" for part in ("c", "h") if part not in parts}
    return replace(out, **blank).values  # type: ignore[arg-type]  # texts for text fields


def hidden(values: Values, seed: int) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The values with typed numbers replaced by seeded ones of the same shape, and the fields that were.

    Lengths and masks stay: they say which steps there are.
    """
    inputs, names = SequenceInputs.of(values), []
    known, problems = read(inputs)
    if known is None or problems:
        return dict(values), ()
    edit: dict[str, Value] = {}
    if _typed(inputs):
        edit["numbers"] = leaf_text(seeded(shape_of(known.sizes, inputs.axes), "float32", seed))
        names.append("numbers")
    for count, part in enumerate(known.init or ()):
        name = f"init_{KINDS[inputs.cell].parts[count]}"
        edit[name] = written(seeded(part.shape, "float32", seed + 1 + count))
        names.append(name)
    return {**values, **edit}, tuple(names)


# --- cases ----------------------------------------------------------------------------------------------------------


def _typed(inputs: SequenceInputs) -> bool:
    return inputs.source == TYPED


def _case(name: CaseName, values: Values, inputs: SequenceInputs, words: str = "") -> Case:
    return Case(name, {**values, **inputs.values}, words)


def _first(inputs: SequenceInputs, known: Known | None) -> SequenceInputs:
    """The first example alone: its data, length, row of the mask and init."""
    edit: dict[str, Any] = {"batch": 1}
    if known is None:
        return replace(inputs, **edit)
    given = known.lengths or known.meant
    if given:
        edit["lengths"] = written_lengths(given[:1])
    if known.mask is not None and is_given(inputs.mask):
        edit["mask"] = "".join("1" if step else "0" for step in known.mask[0])
    trial = build(inputs).trial
    if _typed(inputs) and trial is not None:
        edit["numbers"] = leaf_text(np.take(np.asarray(trial.inputs), [0], axis=inputs.axes.index("B")))
    for count, part in enumerate(known.init or ()):
        edit[f"init_{KINDS[inputs.cell].parts[count]}"] = written(part[:1])
    return replace(inputs, **edit)


def _boundary(values: Values, inputs: SequenceInputs, shape: tuple[int, int, int]) -> Case:
    """Boundary values in the sizes of the page; in small ones, where those are more than is written out."""
    words = ""
    if np.prod(shape) > WRITTEN:
        batch, length, features = 2, STEPS // 2, shape[2]
        lengths = default_lengths(batch, length)
        inputs = replace(inputs, batch=batch, length=length, lengths=lengths, mask="")
        inputs = replace(inputs, init=NORMAL, init_c="", init_h="") if inputs.init == TYPED else inputs
        shape = shape_of((batch, length, features), inputs.axes)
        words = fill(SIZES, batch=batch, length=length, features=features, hidden=inputs.hidden_features)
    return _case(
        CaseName.BOUNDARY,
        values,
        replace(inputs, source=TYPED, numbers=leaf_text(boundary(shape, "float32"))),
        words,
    )


def _uneven(values: Values, inputs: SequenceInputs) -> Case:
    """Examples, steps, features and units all different; H stays."""
    hidden, features = inputs.hidden_features, inputs.in_features
    if features == hidden or _typed(inputs):
        features = other_sizes((hidden,), 1)[0]
    length, batch = other_sizes((hidden, features), 2)
    out = replace(
        inputs,
        batch=batch,
        length=length,
        in_features=features,
        source=NOISE if _typed(inputs) else inputs.source,
        numbers="",
        lengths=default_lengths(batch, length),
        mask="",
        init=NORMAL if inputs.init == TYPED else inputs.init,
        init_c="",
        init_h="",
    )
    words = fill(SIZES, batch=batch, length=length, features=features, hidden=hidden)
    return _case(CaseName.UNEVEN, values, out, words)


# --- running --------------------------------------------------------------------------------------------------------


class Differentiated(Layered):
    """The layer with a loss over its outputs, and that loss's gradient by its parameters."""

    def measured(self) -> tuple[Mapping[Stage, Mapping[str, Any]], Mapping[str, str]]:
        """Data, loss and gradient by stage, at the exact length and compiled; and the class of each state variable."""
        log = Log()
        model, data = self._model, self._data(Path.JIT)
        runner = self._runner(model, Path.JIT, log)

        def loss(state: Any) -> Any:
            ys = runner.forward(state, data)[YS]
            return jnp.mean(jnp.square(ys)) if ys.size else jnp.zeros(())

        value, gradients = jax.jit(jax.value_and_grad(loss))(model.state)
        shown = {root: tree for root, tree in self._shown(data, model.state).items() if root != "kept"}
        return {Stage.DATA: shown, Stage.LOSS: {LOSS: value}, Stage.GRADIENTS: {GRAD: gradients}}, log.types


def run(values: Values, file: CellWeights | None = None) -> Made:
    """Run the layer as the page does, then differentiate; `file`: the parameters that a state names.

    Raises:
        TooLargeError: it is more than a baseline may hold.
    """
    inputs = SequenceInputs.of(values, file)
    reading = build(inputs)
    trial = reading.trial
    if trial is None:
        return refused(*(problem.field for problem in reading.problems))
    keep_room()
    if diagnose_facts(facts_of(trial), None, (rule.Stage.LIMIT,)).found:
        return broken("X601")
    _bound(trial)
    with one_check():
        result = outcome(trial)
        if not isinstance(result, SequenceResult):
            return _wrong(inputs)
    return made(trial, result)


def _bound(trial: SequenceTrial) -> None:
    hidden, features = trial.hidden_features, int(trial.inputs.shape[-1])
    bounded(NUMBERS, trial.batch * trial.length * max(hidden, features))
    ways = 2 if trial.bidirectional else 1
    bounded(PARAMETERS, ways * len(KINDS[trial.kind].gates) * hidden * (hidden + features + 1))


def _wrong(inputs: SequenceInputs) -> Made:
    """What the page says of a layer that raises."""
    look = look_at(inputs)
    if look.report is None:
        return refused(*(problem.field for problem in look.problems))
    errors = [v.code for v in look.report.violations if v.severity in (Severity.ERROR, Severity.LIMIT)]
    raised = [] if look.raised is None else [look.raised.type]
    return broken(*(errors or [v.code for v in look.report.broken] or raised))


def made(trial: SequenceTrial, result: SequenceResult) -> Made:
    """The stages of a layer that ran."""
    stages: dict[Stage, Mapping[str, Any]] = {Stage.FORWARD: _forward(result)}
    measured, types = Differentiated(trial).measured()
    stages |= {**measured, Stage.STATE: {STATE: dict(types)}}
    kept = {stage: {root: plain(tree) for root, tree in trees.items()} for stage, trees in stages.items()}
    carries = {CARRY: Rows.READS if trial.reverse else Rows.CARRIES, f"{BACKWARD}{CARRY}": Rows.READS}
    return Made(
        Became.RAN, stages=kept, rows={XS: Rows.T, "mask": Rows.T, YS: Rows.T, **carries}, loss=fill(MEAN_SQUARE)
    )


def _forward(result: SequenceResult) -> Mapping[str, Any]:
    """Carries from init on in visiting order, the carry that is returned, and ys as the layer returns them."""
    out: dict[str, Any] = {}
    for way, direction in zip((FORWARD, BACKWARD), result.directions, strict=False):
        out[f"{way}{CARRY}"] = _packed(result.kind, direction.carries)
        out[f"{way}{FINAL}"] = _packed(result.kind, direction.final)
    return out | {YS: result.outputs}


def _packed(kind: str, parts: tuple[Any, ...]) -> Any:
    return tuple(parts) if KINDS[kind].pair else parts[0]
