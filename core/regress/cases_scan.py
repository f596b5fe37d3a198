"""The Scan page: its cases, and one run of it as the page runs it, with the gradient of a stated sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
from jax import tree_util

from core.base.avals import aval_of
from core.base.parting import Stage
from core.base.results import ScanResult
from core.base.scan_gradients import Target
from core.base.text import fill
from core.base.violation import Severity
from core.contract import rule
from core.contract.engine import diagnose_facts
from core.contract.facts import facts_of
from core.contract.subject import ScanCall
from core.inputs.fields import Value
from core.inputs.parse import UnreadableError, parse_leaf, parse_sequence
from core.inputs.preset import init_leaves, opening_numbers, step_of, takes_numbers
from core.inputs.scan_check import evaluate
from core.inputs.scan_fields import follow, opening, scan_fields
from core.inputs.scan_inputs import build, from_values
from core.regress.case import Became, Case, CaseName, Made, Rows, broken, refused
from core.regress.data import STEPS, WRITTEN, boundary, leaf_text, other_sizes, rows_text, seeded
from core.regress.trees import plain
from core.runners.memo import one_check
from core.runners.parting_scan import Scanned
from core.runners.scan import run_call
from core.runners.scan_gradients import NoGradientError, scan_gradient
from core.steps.step import Step, XKind
from core.weights.cell import CellWeights

CARRY, YS, FINAL, INIT, XS, KEYS, LOSS, GRAD_INIT, GRAD_XS = (
    "carry", "ys", "final carry", "init", "xs", "keys", "loss", "grad init", "grad xs"
)  # fmt: skip

#: The scalar that is differentiated, by what is summed.
SUM_OF: Final = {Target.FINAL: "the sum of the final carry", Target.YS: "the sum of ys"}
ONE_STEP, ONE_EXAMPLE = "one step", "one example"
FIRST_STEPS = "the first {steps} steps"
LONGER = "length={length}, but xs has {have} steps"
NO_LENGTH = "neither xs nor length"

type Values = Mapping[str, Value]


def cases(values: Values) -> Iterator[Case]:
    """The small set of a state of the page."""
    yield Case(CaseName.STANDARD, values)
    yield _one(values)
    yield Case(CaseName.ZEROS, _filled(values, lambda shape, dtype: np.zeros(shape, dtype)))
    short, words = _short(values)
    yield Case(CaseName.BOUNDARY, _filled(short, lambda shape, dtype: boundary(shape, dtype.name)), words)
    yield _uneven(values)
    yield Case(CaseName.EMPTY, _of_length(values, 0))
    yield _invalid(values)


def tidy(values: Values, file: CellWeights | None = None) -> dict[str, Value]:  # noqa: ARG001  # as in `run`
    """The values without typed numbers that nothing is made of just now."""
    step = step_of(values["step"])
    unused = values["source"] == "generate" or not takes_numbers(step)
    return {**values, "numbers": opening_numbers(step)} if unused else dict(values)


def hidden(values: Values, seed: int) -> tuple[dict[str, Value], tuple[str, ...]]:
    """The values with typed numbers replaced by seeded ones of the same shape and dtype; and the fields that were.

    What stands as the step opens it was typed by nobody, and stays. Text that cannot be read stays too: such a state
    does not run, so no baseline is made of it.
    """
    step, out, names = step_of(values["step"]), dict(values), []
    typed = values["source"] != "generate" and takes_numbers(step) and values["numbers"] != opening_numbers(step)
    try:
        if typed:
            shape = parse_sequence(str(values["numbers"])).shape
            out |= {"source": "paste", "numbers": rows_text(seeded(shape, str(values["dtype"]), seed))}
            names.append("numbers")
        table = scan_fields(values)
        for count, leaf in enumerate(init_leaves(step)):
            if values[leaf.name] != table.field(leaf.name).default:
                shape = parse_leaf(str(values[leaf.name])).shape
                new = seeded(shape, str(values[f"{leaf.name}_dtype"]), seed + 1 + count)
                out[leaf.name] = leaf_text(new)
                names.append(leaf.name)
    except UnreadableError:
        return dict(values), ()
    return out, tuple(names)


# --- cases ----------------------------------------------------------------------------------------------------------


def _xs(values: Values) -> Any:
    """The sequence that these values mean, as NumPy array; None where the step takes no numbers or they cannot be read."""
    call = build(from_values(values)).call
    if call is None or not takes_numbers(step_of(values["step"])):
        return None
    return np.asarray(call.xs) if not hasattr(call.xs, "weak_type") else None


def _typed(values: Values, xs: Any) -> dict[str, Value]:
    """The values with this sequence typed; an init that followed xs still does."""
    free = {"length_argument": ""} if len(xs) != values["length"] else {}
    return follow(values, {"source": "paste", "numbers": rows_text(xs), **free})


def _of_length(values: Values, length: int) -> dict[str, Value]:
    """The values with so many steps, from the first on."""
    step = step_of(values["step"])
    if step.x is XKind.NONE:
        return {**values, "length_argument": str(length)}
    free: dict[str, Value] = {} if not values["length_argument"] else {"length_argument": str(length)}
    if step.x is XKind.KEY or values["source"] == "generate":
        return follow(values, {"length": length, **free})
    xs = _xs(values)
    return dict(values) if xs is None else {**_typed(values, xs[:length]), **free}


def _one(values: Values) -> Case:
    """One example where there is a batch, else one step."""
    if values["source"] == "generate" and int(values["batch"]) > 0 and takes_numbers(step_of(values["step"])):
        return Case(CaseName.ONE, follow(values, {"batch": 1}), fill(ONE_EXAMPLE))
    return Case(CaseName.ONE, _of_length(values, 1), fill(ONE_STEP))


def _short(values: Values) -> tuple[dict[str, Value], str]:
    """The values with fewer steps, where they have more numbers than are written out; and words that say so."""
    xs = _xs(values)
    if xs is None or xs.size <= WRITTEN:
        return dict(values), ""
    steps = max(1, min(STEPS, WRITTEN // (xs.size // len(xs))))
    return _of_length(values, steps), fill(FIRST_STEPS, steps=steps)


def _filled(values: Values, make: Any) -> dict[str, Value]:
    """The values with other numbers in xs; where xs has none, in init."""
    xs = _xs(values)
    if xs is not None:
        return _typed(values, make(xs.shape, xs.dtype))
    call = build(from_values(values)).call
    if call is None:
        return dict(values)
    out = dict(values)
    for leaf, value in zip(init_leaves(step_of(values["step"])), tree_util.tree_leaves(call.init), strict=True):
        array = np.asarray(value)
        kind = np.dtype(str(values[f"{leaf.name}_dtype"])) if array.dtype.kind in "biuf" else array.dtype
        out[leaf.name] = leaf_text(make(array.shape, kind))
    return out


def _uneven(values: Values) -> Case:
    """All sizes different, with the step's own init for them."""
    step = step_of(values["step"])
    same = {name: v for name, v in values.items() if name.startswith("param_") or name in ("reverse", "unroll", "seed")}
    base = follow(opening(step.id), same)
    sizes = _sizes(step, base)
    if step.x is XKind.NONE:
        edit: dict[str, Value] = {"length_argument": str(sizes["length"])}
    elif step.x is XKind.KEY:
        edit = {"length": sizes["length"]}
    else:
        edit = {"source": "generate", "generator": "noise", "dtype": values["dtype"], "axes": "time", **sizes}
    words = ", ".join(f"{letter} = {sizes[name]}" for name, letter in _LETTERS.items() if sizes.get(name))
    return Case(CaseName.UNEVEN, follow(base, edit), words)


_LETTERS: Final = {"length": "T", "batch": "B", "features": "F"}


def _sizes(step: Step, values: Values) -> dict[str, int]:
    """T, B and F where the step takes them; its parameters that are sizes are taken already."""
    taken = tuple(int(values[f"param_{p.name}"]) for p in step.params if p.whole and not p.argument)
    features = 0
    if step.x in (XKind.VECTOR, XKind.ANY):
        features = step.x_width or other_sizes((*taken, 5, 3), 1)[0]
    batch = 3 if step.x is XKind.ANY or (step.x is XKind.VECTOR and step.batched) else 0
    length, other = other_sizes((*taken, features), 2)
    return {"length": length, "batch": other if batch else 0, "features": features}


def _invalid(values: Values) -> Case:
    """A length that is not that of xs; where there is no xs, none at all."""
    step = step_of(values["step"])
    if step.x is XKind.NONE:
        return Case(CaseName.INVALID, {**values, "length_argument": ""}, fill(NO_LENGTH))
    length = int(values["length"])
    words = fill(LONGER, length=length + 1, have=length)
    return Case(CaseName.INVALID, {**values, "length_argument": str(length + 1)}, words)


# --- running --------------------------------------------------------------------------------------------------------


def run(values: Values, file: CellWeights | None = None) -> Made:  # noqa: ARG001  # no file is for this page
    """Run it as the page does, and differentiate the sum of the final carry (of ys, where that holds no floats)."""
    built = build(from_values(values))
    call = built.call
    if call is None:
        return refused(*(name for name, _ in built.problems))
    with one_check():
        if diagnose_facts(facts_of(call), None, (rule.Stage.LIMIT,)).found:
            return broken("X601")
        try:
            result = run_call(call)
        except Exception:  # noqa: BLE001  # whatever JAX raises for this call: the page's rules say what it means
            return wrong(values)
        return made(call, result)


def wrong(values: Values) -> Made:
    """What the page says of a scan that does not run."""
    checked = evaluate(values)
    if checked.report is None:
        return refused(*(name for name, _ in checked.built.problems))
    errors = [v.code for v in checked.report.violations if v.severity in (Severity.ERROR, Severity.LIMIT)]
    raised = [] if checked.report.error is None else [checked.report.error.type]
    return broken(*(errors or raised or checked.report.codes))


def made(call: ScanCall, result: ScanResult, target: Target = Target.FINAL) -> Made:
    """The stages of a call that ran."""
    stages: dict[Stage, Any] = {}
    keys = [leaf for leaf in tree_util.tree_leaves(call.xs) if (a := aval_of(leaf)) and a.dtype.startswith("key<")]
    data = {INIT: plain(call.init)}
    if keys:
        stages[Stage.KEYS] = {KEYS: plain(call.xs)}
    elif call.xs is not None:
        data[XS] = plain(call.xs)
    stages[Stage.DATA] = data
    _, tree = tree_util.tree_flatten(result.final)
    _, ys_tree = tree_util.tree_flatten(result.ys)
    carries = tree_util.tree_unflatten(tree, [series.values for series in result.carries])
    ys = tree_util.tree_unflatten(ys_tree, [series.values for series in result.ys_series])
    stages[Stage.FORWARD] = {CARRY: carries, YS: ys, FINAL: result.final}
    loss = ""
    for summed in dict.fromkeys((target, Target.YS)):
        try:
            gradient = scan_gradient(call, summed)
        except NoGradientError:
            continue
        loss = fill(SUM_OF[summed])
        stages[Stage.LOSS] = {LOSS: np.float32(gradient.value)}
        found = {leaf.type.path: leaf.values for leaf in gradient.leaves if leaf.values is not None}
        of_xs = {GRAD_XS: found.pop(XS)} if XS in found else {}
        stages[Stage.GRADIENTS] = {GRAD_INIT: found, **of_xs}
        break
    return Made(
        Became.RAN,
        stages={stage: {root: plain(tree) for root, tree in trees.items()} for stage, trees in stages.items()},
        rows={XS: Rows.T, KEYS: Rows.T, GRAD_XS: Rows.T, CARRY: Rows.CARRIES, YS: Rows.VISITS},
        backwards=result.length if result.reverse else 0,
        computed=Scanned(call).computed,
        loss=loss,
    )
