"""A report of the Sequence page: a recurrent layer over a batch of sequences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Final

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from core.base.outcome import Outcome, Report
from core.base.sequences import Masking, SequenceResult, Slip
from core.base.text import fill
from core.base.tolerance import Difference
from core.contract.subject import SequenceTrial
from core.inputs.sequence_fields import BESIDE, LEFT_OVER, LOOKED_AT, NOISE, NORMAL, TYPED
from core.inputs.sequence_inputs import EARLIER_SEED, FILLER_SEED, SequenceInputs, build
from core.inputs.sequence_page import look_at
from core.report.arrays import input_of
from core.report.asking import Log, asking, keys_criterion
from core.report.calls import listed
from core.report.case import (
    FORWARD_ONLY,
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
    no_matter,
    of_difference,
    rules,
    said,
    shapes,
    type_text,
)
from core.report.cell_case import cell_negatives, drawn_by, over_limit, parameters_of
from core.report.declared import check_declared, data_of, read_declared, with_known
from core.report.formulas import NO_STEPS
from core.report.measure import Timed
from core.report.model import Criterion, Declared, Input, Name, Negative, Seed, Status
from core.report.wanted import Wanted, settings_of
from core.runners.cell_formulas import KINDS
from core.runners.initial import kernel, recurrent_kernel, zeros
from core.runners.layers import cells_of, layer_of, seeds_of
from core.runners.parting_layer import Layered
from core.runners.sequence import carry_of, hold, starts_of
from core.runners.sequence_compare import CheckName, SequenceCheck, is_rounding
from core.runners.sequence_padding import padding_checks
from core.runners.sequence_read import canonical, lengths_given, masking_of
from core.runners.sequence_reference import against_numpy, numpy_rounding

TITLE = "An nnx.{cell} over sequences, {direction}"
ABOUT = "T = {length}, B = {batch}, F = {features}, H = {hidden}; padding is told by {masking}."
PARAMETERS, BACKWARD, DATA, FILLER, EARLIER, CARRY = (
    "parameters of the cell",
    "parameters of the backward cell",
    "data",
    "what stands in the padding",
    "the sequence before this one",
    "initial carry",
)
WIDE_LAYER = "The layer reads sequences with one feature more than in_features."
NUMPY = "Each of {length} steps by the cell's equations in NumPy, from the carry before it."
ROUNDING = (
    "It is beyond the bound, and no farther than rounding: the same equations in float32 are {rounding:.3g} from "
    "themselves in float64."
)
FORMULA_INSTEAD = "The formula takes its place: it works out each step from the carry before it."
MOVED = "{what}: {leaf} of example {example} moves from {got} to {want}."
MOVED_SHAPE = "{what}: the shapes differ."
STILL = "1000 and NaN in the padding; each example with its valid steps alone; the carry after the last valid step."
WORDS: Final = {
    CheckName.END: "The carry that is returned is not the one after the last valid step",
    CheckName.ALONE: "Each example with its valid steps alone",
    CheckName.LARGE: "With 1000 in the padding",
    CheckName.NAN: "With NaN in the padding",
}
LAYER_TIMED = "the layer over T = {length} steps, jitted"
BOUNDS: Final = {"sine": (-1.0, 1.0), "impulse": (0.0, 1.0)}


def sequence_case(wanted: Wanted) -> Case:
    """The case of complete field values.

    Raises:
        UnreportableError: an input cannot be read.
        DeclaredError: what was declared cannot be.
    """
    declared = read_declared(wanted.declared)
    inputs = SequenceInputs.of(wanted.values, wanted.file)
    reading = build(inputs)
    trial, known = reading.trial, reading.known
    if trial is None or known is None:
        raise UnreportableError(" ".join(problem.text for problem in reading.problems))
    over = over_limit(trial)
    log = Log()
    if not over:
        with asking(log):
            built(trial)
    asked = tuple(drawn_by(log.asked, inputs.used is None))
    low, high = BOUNDS.get(inputs.source, (None, None))
    contract = with_known(declared, Declared(inputs.axes, dtype="float32", low=low, high=high))
    valid = None
    if known.small:
        valid = known.valid if inputs.axes == "BTF" else known.valid.T
    look = cache(lambda: look_at(inputs))
    paths = Paths({"": Layered(trial)})
    batch, length, features = known.sizes

    def missing() -> str:
        if over:
            return fill(OVER)
        error = look().raised if look().result is None else None
        return fill(RAISED, type=error.type) if error is not None else ""

    def result() -> SequenceResult:
        found = look().result
        if found is None:
            raise UnreportableError(missing())
        return found

    def fits() -> tuple[Criterion, Criterion]:
        return check_declared(contract, data_of("x", trial.inputs, valid))

    work: dict[Name, Callable[[], Criterion]] = {
        Name.RULES: lambda: rules(look().report or Report(Outcome.OK)),
        Name.SHAPES: lambda: shapes(_leaves(trial, result())),
        Name.DECLARED: lambda: fits()[0],
        Name.RANGE: lambda: fits()[1],
        Name.KEYS: lambda: keys_criterion(asked),
        Name.OUTPUTS: lambda: _finite(trial, result()),
        Name.LOSS: said(Name.LOSS, fill(FORWARD_ONLY)),
        Name.GRADIENTS: said(Name.GRADIENTS, fill(FORWARD_ONLY)),
        Name.PADDING: lambda: _padding(trial, result()),
        Name.JIT: lambda: paths(Name.JIT),
        Name.VMAP: lambda: paths(Name.VMAP),
        Name.LOOP: said(Name.LOOP, fill(FORMULA_INSTEAD)),
        Name.FORMULA: lambda: layer_formula(trial, result(), look().numpy),
        Name.MODE: said(Name.MODE, fill(ONE_MODE)),
    }
    needs = (Name.SHAPES, Name.OUTPUTS, Name.PADDING, Name.JIT, Name.VMAP, Name.FORMULA)

    return Case(
        page=wanted.page,
        title=fill(TITLE, cell=inputs.cell, direction=inputs.direction),
        about=fill(
            ABOUT, length=length, batch=batch, features=features, hidden=inputs.hidden_features, masking=inputs.masking
        ),
        settings=settings_of(wanted, LOOKED_AT | BESIDE),
        inputs=listed(_inputs(trial, over, wanted)),
        contract=contract,
        begin=() if over else paths.begin,
        work=all_work(work, needs, missing),
        negatives=layer_negatives(trial, over),
        seeds=tuple(_seeds(inputs)),
        asked=asked,
        asked_cut=log.cut,
        timed=None if over or not length else partial(layer_timed, trial),
        not_timed=fill(OVER) if over else ("" if length else fill(NO_STEPS)),
    )


def built(trial: SequenceTrial) -> None:
    """Build each cell of a layer as Flax does, one after the other: for who listens to their requests for keys."""
    for seed in seeds_of(trial):
        KINDS[trial.kind].cell(
            int(trial.inputs.shape[-1]),
            trial.hidden_features,
            rngs=nnx.Rngs(seed),
            kernel_init=kernel,
            recurrent_kernel_init=recurrent_kernel,
            bias_init=zeros,
        )


def layer_negatives(trial: SequenceTrial, over: bool) -> tuple[Negative, ...]:
    """Wrong uses of the very layer; where it is over a limit, of a small cell of its kind."""
    tests = cell_negatives(trial.kind)
    if over:
        return tests
    wider = np.zeros((1, 1, int(trial.inputs.shape[-1]) + 1), np.float32)
    return (negative(fill(WIDE_LAYER), "TypeError", lambda: layer_of(trial)(wider)), *tests)


def _seeds(inputs: SequenceInputs) -> Iterator[Seed]:
    if inputs.used is None:
        yield Seed(PARAMETERS, inputs.seed, "jax")
    if inputs.used is None and inputs.direction == "bidirectional":
        yield Seed(BACKWARD, inputs.seed + 1, "jax")
    if inputs.source == NOISE:
        yield Seed(DATA, inputs.data_seed, "numpy")
    if inputs.padding == NOISE and inputs.source != TYPED:
        yield Seed(FILLER, inputs.data_seed + FILLER_SEED, "numpy")
    if inputs.init == LEFT_OVER:
        yield Seed(EARLIER, inputs.data_seed + EARLIER_SEED, "numpy")
    if inputs.init == NORMAL:
        yield Seed(CARRY, inputs.init_seed, "numpy")


def _inputs(trial: SequenceTrial, over: bool, wanted: Wanted) -> Iterator[Input]:
    values = wanted.with_values
    yield input_of("x", trial.inputs, trial.axes, values=values)
    if over:
        return
    if trial.lengths is not None:
        given = np.asarray(lengths_given(trial) if lengths_given(trial) is not None else trial.lengths)
        if given.dtype.kind in "iuf":
            yield input_of("lengths", given, "B", values=values)
    if trial.mask is not None:
        yield input_of("mask", trial.mask, "BT", values=values)
    if trial.init is not None:
        for n, part in enumerate(trial.init):
            yield input_of(f"init[{n}]", part, "BH", values=values)
    if trial.previous is not None:
        yield input_of("previous", trial.previous, trial.axes, values=values)
    yield from layer_parameters(trial, values=values)


def layer_parameters(trial: SequenceTrial, *, values: bool = False) -> Iterator[Input]:
    """The parameters of each cell of a layer, with the trial's changes made."""
    names = ("forward", "backward") if trial.bidirectional else ("cell",)
    for name, parts in zip(names, cells_of(trial), strict=True):
        yield from parameters_of(name, parts.cell(), values=values)


# --- criteria -------------------------------------------------------------------------------------------------------


def _leaves(trial: SequenceTrial, result: SequenceResult) -> Iterator[Leaf]:
    """Outputs (T, B, H) and final carries (B, H), by the true axes of the data."""
    batch, length, hidden = trial.batch, trial.length, trial.hidden_features
    ways = 2 if trial.bidirectional else 1
    outputs = result.outputs
    yield Leaf("ys", type_text(outputs.shape, outputs.dtype.name), type_text((length, batch, ways * hidden), "float32"))
    for index, direction in enumerate(result.directions):
        for n, part in enumerate(direction.final):
            name = f"final carry{f' ({index})' if ways > 1 else ''}[{n}]"
            yield Leaf(name, type_text(part.shape, part.dtype.name), type_text((batch, hidden), "float32"))


def _finite(trial: SequenceTrial, result: SequenceResult) -> Criterion:
    """What counts: the outputs of valid steps, and the carries that are returned."""
    outputs = [direction.outputs[direction.valid] for direction in result.directions]
    return finite(Name.OUTPUTS, (outputs, [d.final for d in result.directions]), (trial.inputs, trial.init))


def _padding(trial: SequenceTrial, result: SequenceResult) -> Criterion:
    """`PADDING`: the four checks of what padding does; the first that fails names the place."""
    found = padding_checks(trial, result)
    made = [one for one in found if one.agrees is not None]
    padded = [one for one in found if one.name in (CheckName.LARGE, CheckName.NAN) and one.agrees is not None]
    if not padded:
        return no_matter(Name.PADDING, found[-1].reason)
    largest = max(one.largest for one in made)
    used = [one.tolerance for one in made if one.tolerance is not None]
    bound = max(used, key=lambda t: (t.rtol, t.atol)).text if used else "exact"
    bad = [one for one in made if not one.agrees and not one.only_rounding]
    if bad:
        return Criterion(Name.PADDING, Status.FAIL, largest, bound, _moved(bad[0]))
    return Criterion(Name.PADDING, Status.PASS, largest, bound, fill(STILL))


def _moved(check: SequenceCheck) -> str:
    what, place = fill(WORDS[check.name]), check.first
    if place is None:
        return fill(MOVED_SHAPE, what=what)
    return fill(MOVED, what=what, leaf=place.leaf, example=place.example, got=place.got, want=place.want)


def layer_formula(trial: SequenceTrial, result: SequenceResult, apart: Difference | None) -> Criterion:
    """`FORMULA`: the NumPy equations, step by step. `apart`: of `against_numpy`, where it is known."""
    apart = against_numpy(trial, result) if apart is None else apart
    words, rounding = fill(NUMPY, length=result.length), ""
    if not apart.within and np.isfinite(apart.largest):
        of_float32 = numpy_rounding(trial, result)
        if is_rounding(apart.largest, of_float32):
            rounding = fill(ROUNDING, rounding=of_float32)
    return of_difference(Name.FORMULA, apart, words, rounding=rounding)


# --- time -----------------------------------------------------------------------------------------------------------


def layer_timed(trial: SequenceTrial) -> Timed:
    """The layer under jit, data, lengths or mask and parameters its arguments."""
    what = fill(LAYER_TIMED, length=trial.length)
    starts = [carry_of(KINDS[trial.kind], start) for start in starts_of(trial, int(trial.read.shape[1]))]
    if masking_of(trial) is Masking.MASK:
        return Timed(what, *_masked(trial, starts))
    graph, state = nnx.split(layer_of(trial))
    given = lengths_given(trial)
    lengths = None if given is None else jnp.asarray(given)
    start: Any = tuple(starts) if trial.bidirectional else starts[0]

    def run(state: Any, x: Any, start: Any, lengths: Any) -> Any:
        return nnx.merge(graph, state)(x, initial_carry=start, seq_lengths=lengths)

    return Timed(what, run, (state, canonical(trial.inputs), start, lengths))


def _masked(trial: SequenceTrial, starts: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    """The scan with a mask, as a learner would write it."""
    mask = np.asarray(trial.mask, bool)
    keep = mask if trial.misread else mask.swapaxes(0, 1)
    cells = cells_of(trial)
    along = Slip.FEATURE_MASK in trial.slips
    ways = (False, True) if trial.bidirectional else (trial.reverse,)

    def run(leaves: Any, xs: Any, keep: Any, starts: Any) -> Any:
        out = []
        for parts, own, start, backwards in zip(cells, leaves, starts, ways, strict=True):

            def step(carry: Any, x: Any, parts: Any = parts, own: Any = own) -> Any:
                new, y = parts.cell(own)(carry, x[0])
                return hold(carry, new, x[1], along), y

            out.append(lax.scan(step, start, (xs, keep), reverse=backwards, unroll=trial.unroll))
        return out

    return run, (tuple(parts.leaves for parts in cells), canonical(trial.read), keep, tuple(starts))
