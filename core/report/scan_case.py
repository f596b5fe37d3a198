"""A report of the Scan page: a preset's step over typed or generated data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

from core.base.avals import aval_of
from core.base.outcome import Outcome
from core.base.text import fill
from core.contract.engine import check as check_call
from core.contract.facts import ScanFacts, facts_of
from core.inputs.generate import generator_of
from core.inputs.preset import takes_numbers
from core.inputs.scan_check import Checked, evaluate
from core.inputs.scan_inputs import ScanInputs, from_values
from core.report import calls
from core.report.calls import listed
from core.report.case import (
    FORWARD_ONLY,
    NO_PADDING_HERE,
    ONE_MODE,
    OVER,
    RAISED,
    Case,
    Paths,
    UnreportableError,
    all_work,
    finite,
    not_run,
    rules,
    said,
)
from core.report.declared import check_declared, data_of, read_declared, with_known
from core.report.formulas import NO_STEPS, formula_criterion
from core.report.model import Criterion, Declared, Name, Seed
from core.report.wanted import Wanted, settings_of
from core.runners.parting_scan import Scanned
from core.steps.step import XKind

TITLE = "A scan: {title}"
ABOUT = "{formula}"
XS = "xs"
#: What generated numbers lie between, whatever the sizes; others have no bound that is known.
BOUNDS: Final = {"ones": (1.0, 1.0), "sine": (-1.0, 1.0), "impulse": (0.0, 1.0), "alternating": (-1.0, 1.0)}


def scan_case(wanted: Wanted) -> Case:
    """The case of complete field values.

    Raises:
        UnreportableError: an input cannot be read.
        DeclaredError: what was declared cannot be.
    """
    declared = read_declared(wanted.declared)
    checked = evaluate(wanted.values)
    call, report = checked.built.call, checked.report
    if call is None or report is None:
        raise UnreportableError(" ".join(text for _, text in checked.built.problems))
    inputs = from_values(wanted.values)
    if declared.axes and not isinstance(call.xs, list) and len(declared.axes) == len(getattr(call.xs, "shape", ())):
        call = replace(call, axes={**call.axes, "xs": declared.axes})
        report = check_call(call)  # what was said of the axes is part of the contract: the rules are asked again
    facts = facts_of(call)
    if not isinstance(facts, ScanFacts):
        raise TypeError(facts)
    over = report.outcome is Outcome.LIMIT
    generated = takes_numbers(inputs.step) and inputs.source == "generate"
    low, high = BOUNDS.get(inputs.generator, (None, None)) if generated and inputs.dtype == "float32" else (None, None)
    aval = aval_of(call.xs) if takes_numbers(inputs.step) else None
    known = Declared(call.axes.get("xs", ""), dtype="" if aval is None else aval.dtype, low=low, high=high)
    contract = with_known(declared, known)
    seeds = []
    if inputs.step.x is XKind.KEY:
        seeds.append(Seed(XS, inputs.seed, "jax"))
    elif generated and generator_of(inputs.generator).seeded:
        seeds.append(Seed(XS, inputs.seed, "numpy"))
    result = checked.result
    paths = Paths({"": Scanned(call)})
    reason = fill(OVER) if over else fill(RAISED, type=_raised(checked, facts))

    def fits() -> tuple[Criterion, Criterion]:
        return check_declared(contract, data_of(XS, call.xs))

    work: dict[Name, Callable[[], Criterion]] = {
        Name.RULES: lambda: rules(report),
        Name.SHAPES: lambda: not_run(Name.SHAPES, reason) if over else calls.call_shapes(facts, result),
        Name.DECLARED: lambda: fits()[0],
        Name.RANGE: lambda: fits()[1],
        Name.LOSS: said(Name.LOSS, fill(FORWARD_ONLY)),
        Name.GRADIENTS: said(Name.GRADIENTS, fill(FORWARD_ONLY)),
        Name.PADDING: said(Name.PADDING, fill(NO_PADDING_HERE)),
        Name.MODE: said(Name.MODE, fill(ONE_MODE)),
        Name.JIT: lambda: paths(Name.JIT),
        Name.VMAP: lambda: paths(Name.VMAP),
    }
    needs = (Name.KEYS, Name.OUTPUTS, Name.LOOP, Name.FORMULA)
    if result is None:
        work |= {name: said(name, reason) for name in needs}
    else:
        ran = result
        work |= {
            Name.KEYS: lambda: calls.call_keys(call),
            Name.OUTPUTS: lambda: finite(Name.OUTPUTS, (ran.final, ran.ys), (call.xs, call.init)),
            Name.LOOP: lambda: calls.call_loop(call, ran),
            Name.FORMULA: lambda: formula_criterion(inputs.step.id, call, ran),
        }
    missing = reason if result is None else ""
    return Case(
        page=wanted.page,
        title=fill(TITLE, title=inputs.step.title),
        about=fill(ABOUT, formula=inputs.step.formula),
        settings=settings_of(wanted, _unused(inputs, wanted)),
        inputs=listed(calls.call_inputs(call, values=wanted.with_values)),
        contract=contract,
        begin=() if missing else paths.begin,
        work=all_work(work, (*needs, Name.JIT, Name.VMAP), lambda: missing),
        negatives=calls.call_negatives(call),
        seeds=tuple(seeds),
        dtypes=_dtypes(checked),
        timed=None if result is None or not result.length else partial(calls.call_timed, call, result.length),
        not_timed=reason if result is None else ("" if result.length else fill(NO_STEPS)),
    )


def _unused(inputs: ScanInputs, wanted: Wanted) -> frozenset[str]:
    """Fields that say nothing with this source of xs."""
    if not takes_numbers(inputs.step):
        return frozenset({"source", "numbers", "generator", "features", "batch", "axes", "dtype", "as_list"})
    if inputs.source == "generate":
        return frozenset({"numbers"} if generator_of(inputs.generator).seeded else {"numbers", "seed"})
    return frozenset({"generator", "length", "features", "batch", "seed"} & set(wanted.values))


def _raised(checked: Checked, facts: ScanFacts) -> str:
    if checked.report is not None and checked.report.error is not None:
        return checked.report.error.type
    return facts.jax.type if facts.jax is not None else "an error"


def _dtypes(checked: Checked) -> tuple[str, ...]:
    result: Any = checked.result
    if result is None:
        return ("float32",)
    return tuple(dict.fromkeys(s.values.dtype.name for s in (*result.carries, *result.ys_series)))
