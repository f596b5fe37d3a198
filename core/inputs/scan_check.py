"""One evaluation of the Scan page: inputs -> call -> check -> result, with all that the page draws of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from core.base.avals import LeafType
from core.base.outcome import Outcome, Report
from core.base.results import ScanResult
from core.base.text import fill
from core.base.violation import Fix, Severity, Violation
from core.contract import engine
from core.contract.facts import ScanFacts
from core.contract.subject import ScanCall
from core.contract.trace import Raised
from core.inputs.fields import Value
from core.inputs.needs import misfits
from core.inputs.scan_bench import ScanBench
from core.inputs.scan_inputs import Built, build, from_values
from core.steps.step import Step

INIT, X, NEW_CARRY, Y, YS = "init", "x", "new carry", "y", "ys"


@dataclass(frozen=True, slots=True)
class LeafRow:
    """A row of the leaf table.

    Attributes:
        role: init, x, new carry, y or ys.
        path: where the leaf is in that tree.
        type: shape, dtype and weak type.
        axes: its axes by letter where they were said, ``(B=2, F=3)``.
        broken: this leaf differs from what the contract holds it to.
    """

    role: str
    path: str
    type: LeafType
    axes: str = ""
    broken: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Checked:
    """What came of some inputs.

    Attributes:
        values: the fields they came from.
        step: the preset.
        built: the call, or what could not be read.
        report: None when there is no call.
        result: None when it did not run.
        leaves: the leaf table, as far as the step could be traced.
        fix_all: the verified edit that mends everything, when there is more than one fault.
    """

    values: Mapping[str, Value]
    step: Step
    built: Built
    report: Report | None = None
    result: ScanResult | None = None
    leaves: tuple[LeafRow, ...] = ()
    fix_all: Fix | None = None


def evaluate(values: Mapping[str, Value]) -> Checked:
    """Check and run what complete, settled values of the Scan page's fields mean. Never raises for what was typed."""
    inputs = from_values(values)
    step, built = inputs.step, build(inputs)
    if built.call is None:
        return Checked(values, step, built)
    bench = ScanBench(values)
    report, facts = engine.examine(built.call, bench)
    if not isinstance(facts, ScanFacts):
        raise TypeError(facts)
    result = _result(report, facts)
    found = misfits(values, built.call) if report.error is not None and report.outcome is Outcome.ERROR else ()
    if found:
        problems = tuple((misfit.field, misfit.sentence) for misfit in found)
        mends = tuple(misfit.mend for misfit in found if misfit.mend is not None)
        return Checked(values, step, Built(None, problems, built.hints, mends, misfit=True))
    fix_all = engine.fix_all(built.call, bench) if len(report.broken) > 1 else None
    return Checked(values, step, built, report, result, tuple(leaf_rows(facts)), fix_all)


def _result(report: Report, facts: ScanFacts) -> ScanResult | None:
    """The run that was checked. None where the check stopped before it."""
    if report.outcome in (Outcome.LIMIT, Outcome.ERROR) or any(_raises(v) for v in report.violations):
        return None
    return None if isinstance(facts.run, Raised) else facts.run


def _raises(violation: Violation) -> bool:
    return violation.severity is Severity.ERROR and not violation.silent


# --- leaf table -----------------------------------------------------------------------------------------------------


def leaf_rows(facts: ScanFacts) -> Iterator[LeafRow]:
    """Every leaf of init, one x, the new carry, one y and the stacked ys, as far as they are known."""
    for leaf in facts.init_types:
        yield LeafRow(INIT, leaf.path, leaf)
    if None in facts.leading:  # something in xs has no axis to walk along: there is no x
        yield from (LeafRow("xs", leaf.path, leaf) for leaf in facts.xs_types)
        return
    for leaf in facts.x_types:
        yield LeafRow(X, leaf.path, leaf, x_axes(facts.call, leaf))
    trace = facts.trace
    if isinstance(trace, Raised):
        return
    held = {leaf.path: leaf for leaf in facts.carry_in}
    for leaf in trace.carry_types():
        want = held.get(leaf.path)
        yield LeafRow(NEW_CARRY, leaf.path, leaf, broken=want is None or not _same(want, leaf))
    length = facts.length
    for leaf in trace.y_types():
        yield LeafRow(Y, leaf.path, leaf)
        if leaf.aval is not None and length is not None:
            yield LeafRow(YS, "ys" + leaf.path.removeprefix("y"), stacked(leaf, length))


def _same(a: LeafType, b: LeafType) -> bool:
    return a.aval is not None and b.aval is not None and (a.aval.shape, a.aval.dtype) == (b.aval.shape, b.aval.dtype)


def stacked(leaf: LeafType, length: int) -> LeafType:
    """The leaf with a leading axis of `length`."""
    aval = leaf.aval
    if aval is None:
        return leaf
    return LeafType("ys" + leaf.path.removeprefix("y"), type(aval)((length, *aval.shape), aval.dtype), leaf.kind)


def x_axes(call: ScanCall, leaf: LeafType) -> str:
    """The axes of one x by letter, from those that were said of xs: ``(B=2, F=3)``; "" where nothing was said."""
    letters = call.axes.get("xs" + leaf.path.removeprefix("x"), call.axes.get("xs", ""))[1:]
    if leaf.aval is None or not letters or len(letters) != len(leaf.aval.shape):
        return ""
    return fill("({axes})", axes=", ".join(f"{k}={n}" for k, n in zip(letters, leaf.aval.shape, strict=True)))
