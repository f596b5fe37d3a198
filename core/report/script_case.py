"""A report of a script: it is run once under the Doctor's recorders, and then its scans are asked one by one.

A stranger's script is run in a worker only; from the command line it is a person's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import jax.numpy as jnp
import numpy as np
from jax import core as jax_core
from jax import lax, tree_util

from core.base.limits import LIMITS
from core.base.outcome import Report
from core.base.places import Span
from core.base.results import ScanResult
from core.base.text import fill
from core.base.violation import Severity
from core.contract.record import StepEvent
from core.contract.script_record import Called, ScanSite
from core.contract.subject import ScanCall
from core.doctor.check import Checkup, Terms, examine
from core.doctor.script import ScriptRun
from core.report import calls
from core.report.arrays import digest_text, inputs_of
from core.report.asking import Log, asking, keys_criterion
from core.report.calls import listed
from core.report.case import (
    FORWARD_ONLY,
    ONE_MODE,
    RAISED,
    Case,
    Leaf,
    Paths,
    UnreportableError,
    finite,
    negative,
    no_matter,
    not_run,
    of_difference,
    rules,
    shapes,
    type_text,
)
from core.report.cell_case import cell_negatives
from core.report.declared import check_declared, data_of, read_declared, with_known
from core.report.model import Criterion, Declared, Input, Name, Negative, Setting, Status
from core.report.wanted import Wanted
from core.runners.cell_formulas import KINDS, formula_step, gate_weights
from core.runners.cells import apart, parts_of
from core.runners.parting_scan import Scanned

TITLE = "A script"
ABOUT = "{lines} lines; {scans} scans and {cells} steps of cells at its top level."
LINES, HASH = "lines", "SHA-256 of the text"
AT_LINE = "line {line}, "
LINE_SAYS = "Line {line}: "
SCAN_AT = "the scan of line {line}"
NO_SCANS = "There is no lax.scan whose values are known."
NO_FORMULA = "No independent formula is known of a step of yours. A cell of NNX that is called outside a scan has one."
CELLS_AGREE = "{count} steps of cells of NNX by their equations in NumPy."
KEY_RULES = "{codes}."
NOT_SEEN = "What a gradient came to was not seen."
PADDING_RULES = "{codes}."
PADDING_UNSEEN = "Only the rules look at the padding of a script, and they found nothing."
MODE_RULE = "{code}."
MODE_SAID = "It has layers that behave otherwise in training, and no rule found their mode unsaid."
WIDER = "A carry that gains an axis in the step, in a scan of ours: the script has none to be tried."
LIMIT = "It was stopped at a limit of time, memory or size."

_KEYS: Final = ("R401", "R402", "R404", "R405")
_PADDING: Final = ("L310", "L311", "L312", "L321")
_MODE: Final = "L318"
_GRADS: Final = frozenset({"jax.grad", "jax.value_and_grad", "flax.nnx.grad", "flax.nnx.value_and_grad"})
_STOCHASTIC: Final = re.compile(r"\b(Dropout|BatchNorm|train|eval|deterministic|use_running_average)\b")


@dataclass(frozen=True, slots=True, eq=False)
class _Scan:
    """A scan of the script whose values are known."""

    site: ScanSite
    call: ScanCall
    result: ScanResult
    line: int


def script_case(wanted: Wanted, terms: Terms) -> Case:
    """The case of a script. Its `close` takes back what the script left in libraries.

    Args:
        wanted: with the text.
        terms: how scripts are run here.

    Raises:
        UnreportableError: there is no script in the text.
        DeclaredError: what was declared cannot be.
    """
    declared = read_declared(wanted.declared)
    log = Log()
    with asking(log):
        checkup = examine(wanted.text, replace(terms, proofs=False))
    run = checkup.run
    if run is None:
        checkup.close()
        error = checkup.report.error
        raise UnreportableError("" if error is None else error.message)
    try:
        return _case(wanted, declared, checkup, run, log)
    except BaseException:
        checkup.close()
        raise


def _case(wanted: Wanted, declared: Declared, checkup: Checkup, run: ScriptRun, log: Log) -> Case:
    scans = [_said(one, declared) for one in _scans(checkup, run)]
    steps = [event for event in run.record.events.steps if _concrete(event)]
    script, report = checkup.given.script, checkup.report
    first = scans[0] if scans else None
    contract = with_known(declared, Declared("" if first is None else first.call.axes.get("xs", "")))
    paths = Paths({fill(SCAN_AT, line=one.line): Scanned(one.call) for one in scans})
    reason = _reason(run, report)

    data = first.call.xs if first is not None else (steps[0].inputs if steps else None)

    def fits() -> tuple[Criterion, Criterion]:
        return check_declared(contract, data_of("xs" if first is not None else "x", data))

    def one_of(name: Name) -> Callable[[], Criterion]:
        def one() -> Criterion:
            if scans:
                return paths(name)
            return not_run(name, reason) if reason else no_matter(name, fill(NO_SCANS))

        return one

    def loops() -> Criterion:
        found = [calls.call_loop(one.call, one.result) for one in scans if one.result.length]
        if found:
            return _worst(found)
        return not_run(Name.LOOP, reason) if reason else no_matter(Name.LOOP, fill(NO_SCANS))

    work: dict[Name, Callable[[], Criterion]] = {
        Name.RULES: lambda: rules(report),
        Name.SHAPES: lambda: _shapes(scans, steps, run, reason),
        Name.DECLARED: lambda: fits()[0],
        Name.RANGE: lambda: fits()[1],
        Name.KEYS: lambda: _keys(scans, log, report),
        Name.OUTPUTS: lambda: _outputs(scans, steps, run, reason),
        Name.LOSS: lambda: _derived(run, report)[0],
        Name.GRADIENTS: lambda: _derived(run, report)[1],
        Name.PADDING: lambda: _padding(report),
        Name.JIT: one_of(Name.JIT),
        Name.VMAP: one_of(Name.VMAP),
        Name.LOOP: loops,
        Name.FORMULA: lambda: _formula(steps),
        Name.MODE: lambda: _mode(report, script),
    }
    timed = next((one for one in scans if one.result.length), None)
    return Case(
        page=wanted.page,
        title=fill(TITLE),
        about=fill(ABOUT, lines=script.count("\n") + 1, scans=len(scans), cells=len(steps)),
        settings=(
            Setting(fill(LINES), str(script.count("\n") + 1)),
            Setting(fill(HASH), digest_text(script)),
            *([Setting(TITLE.lower(), script[:19_000])] if wanted.with_values else []),
        ),
        inputs=listed(_inputs(scans, steps, wanted)),
        contract=contract,
        begin=paths.begin,
        ahead={name: paths.ahead(name) for name in (Name.JIT, Name.VMAP)},
        work=work,
        negatives=_negatives(scans, run),
        asked=tuple(log.asked),
        asked_cut=log.cut,
        timed=None
        if timed is None
        else partial(calls.call_timed, timed.call, timed.result.length, fill(AT_LINE, line=timed.line)),
        not_timed="" if timed is not None else (reason or fill(NO_SCANS)),
        close=checkup.close,
    )


def _scans(checkup: Checkup, run: ScriptRun) -> Iterator[_Scan]:
    """Scans at the top level that ran, up to the limit."""
    most = LIMITS["report_scans"].value
    for site, result in zip(run.record.scans, run.results, strict=False):
        if result is None or site.traced or site.parent is not None or site.changed or most == 0:
            continue
        place = checkup.given.place(site.facts.places.find("scan"))
        most -= 1
        yield _Scan(site, site.call, result, place.line if isinstance(place, Span) else 0)


def _said(one: _Scan, declared: Declared) -> _Scan:
    """With the axes that were declared, where they fit."""
    shape = getattr(one.call.xs, "shape", ())
    if not declared.axes or len(shape) != len(declared.axes):
        return one
    return replace(one, call=replace(one.call, axes={**one.call.axes, "xs": declared.axes}))


def _concrete(event: StepEvent) -> bool:
    leaves = (event.inputs, event.result)
    return event.error is None and not any(isinstance(leaf, jax_core.Tracer) for leaf in tree_util.tree_leaves(leaves))


def _reason(run: ScriptRun, report: Report) -> str:
    """Why values are missing; "" where the script came to its end."""
    failure = run.record.failure
    if failure is not None:
        return fill(RAISED, type=type(failure.error).__name__)
    if (
        run.record.abstract
        or run.record.stopped is not None
        or any(v.severity is Severity.LIMIT for v in report.violations)
    ):
        return fill(LIMIT)
    return ""


# --- what went in ---------------------------------------------------------------------------------------------------


def _inputs(scans: list[_Scan], steps: list[StepEvent], wanted: Wanted) -> Iterator[Input]:
    for one in scans:
        yield from calls.call_inputs(one.call, fill(AT_LINE, line=one.line), values=wanted.with_values)
    for n, event in enumerate(steps):
        yield from inputs_of(f"step {n}, carry", event.carry, values=wanted.with_values)
        yield from inputs_of(f"step {n}, x", event.inputs, values=wanted.with_values)


def _negatives(scans: list[_Scan], run: ScriptRun) -> tuple[Negative, ...]:
    """Wrong uses of the script's own first scan and of the cells it builds; else of a scan of ours."""
    out: list[Negative] = []
    if scans:
        out += calls.call_negatives(scans[0].call, fill(LINE_SAYS, line=scans[0].line))
    kinds = dict.fromkeys(type(one.cell).__name__ for one in run.record.events.builds if one.cell is not None)
    for kind in kinds:
        if kind in KINDS:
            out += cell_negatives(kind)
    if not out:
        out.append(negative(fill(WIDER), "TypeError", lambda: lax.scan(_wider, 0.0, jnp.zeros(2))))
    return tuple(out)


def _wider(carry: Any, x: Any) -> Any:
    return jnp.stack([carry, carry]), x


# --- criteria -------------------------------------------------------------------------------------------------------


def _shapes(scans: list[_Scan], steps: list[StepEvent], run: ScriptRun, reason: str) -> Criterion:
    broken = [
        calls.call_shapes(site.facts, None)
        for site in run.record.scans
        if site.error is not None and site.parent is None and not site.traced
    ]
    failed = [one for one in broken if one.status is Status.FAIL]
    if failed:
        return failed[0]
    if reason:
        return not_run(Name.SHAPES, reason)
    leaves: list[Leaf] = []
    for one in scans:
        leaves += calls.call_leaves(one.site.facts, one.result, fill(AT_LINE, line=one.line))
    for n, event in enumerate(steps):
        leaves += _step_leaves(n, event)
    return shapes(leaves) if leaves else no_matter(Name.SHAPES, fill(NO_SCANS))


def _step_leaves(n: int, event: StepEvent) -> Iterator[Leaf]:
    """The carry of a cell keeps its type from step to step; the output is (B, H)."""
    hidden = int(getattr(event.cell, "hidden_features", 0))
    shape = np.shape(event.inputs)
    new, output = event.result
    for at, leaf in enumerate(tree_util.tree_leaves(new)):
        want = (*shape[:-1], hidden)
        yield Leaf(f"step {n}, new carry[{at}]", type_text(leaf.shape, leaf.dtype), type_text(want, leaf.dtype))
    yield Leaf(
        f"step {n}, output", type_text(output.shape, output.dtype), type_text((*shape[:-1], hidden), output.dtype)
    )


def _keys(scans: list[_Scan], log: Log, report: Report) -> Criterion:
    """Rules on keys, keys that streams gave, and what JAX's own tracking says of each scan."""
    codes = [v.code for v in report.broken if v.code in _KEYS]
    found = [calls.call_keys(one.call) for one in scans]
    bad = [one for one in found if one.status is Status.FAIL]
    # What a rule has found already is counted once.
    more = len(codes) if codes else int(sum(one.number or 0 for one in bad))
    detail = fill(KEY_RULES, codes=", ".join(dict.fromkeys(codes))) if codes else "".join(one.detail for one in bad[:1])
    passed = [one for one in found if one.status is Status.PASS]
    if not more and passed and not any(one.drawn for one in log.asked):
        return passed[0]
    return keys_criterion(log.asked, more, detail)


def _outputs(scans: list[_Scan], steps: list[StepEvent], run: ScriptRun, reason: str) -> Criterion:
    if reason:
        return not_run(Name.OUTPUTS, reason)
    trees = [(one.result.final, one.result.ys) for one in scans]
    trees += [event.result for event in steps]
    given = [(one.call.init, one.call.xs) for one in scans]
    if trees:
        return finite(Name.OUTPUTS, trees, given)
    last = [call.result for call in run.record.calls if not call.traced and call.scan is None]
    return finite(Name.OUTPUTS, [value for value in last[-1:] if hasattr(value, "dtype")])


def _derived(run: ScriptRun, report: Report) -> tuple[Criterion, Criterion]:
    """`LOSS` and `GRADIENTS`: what the functions that ``jax.grad`` and its like made gave."""
    made = [call for call in run.record.calls if call.name in _GRADS]
    if not made:
        forward = fill(FORWARD_ONLY)
        return no_matter(Name.LOSS, forward), no_matter(Name.GRADIENTS, forward)
    losses, gradients = [], []
    for maker in made:
        for call in run.record.calls:
            if call.func is maker.result and call.func is not None and not call.traced:
                values, slopes = _apart(maker, call)
                losses += values
                gradients += slopes
    loss = finite(Name.LOSS, losses) if losses else no_matter(Name.LOSS, fill(NOT_SEEN))
    if gradients:
        return loss, finite(Name.GRADIENTS, gradients)
    if any(v.code == "N502" for v in report.broken):
        return loss, Criterion(Name.GRADIENTS, Status.FAIL, 1.0, "0", "N502")
    return loss, not_run(Name.GRADIENTS, fill(NOT_SEEN))


def _apart(maker: Called, call: Called) -> tuple[list[Any], list[Any]]:
    """Losses and gradients of one call."""
    result = call.result
    if str(maker.name).endswith("value_and_grad") and isinstance(result, tuple) and len(result) == 2:
        return [result[0]], [result[1]]
    return [], [result]


def _padding(report: Report) -> Criterion:
    codes = [v.code for v in report.broken if v.code in _PADDING]
    if codes:
        said = fill(PADDING_RULES, codes=", ".join(dict.fromkeys(codes)))
        return Criterion(Name.PADDING, Status.FAIL, float(len(codes)), "0", said)
    return no_matter(Name.PADDING, fill(PADDING_UNSEEN))


def _mode(report: Report, script: str) -> Criterion:
    if any(v.code == _MODE for v in report.violations):
        return Criterion(Name.MODE, Status.FAIL, None, "", fill(MODE_RULE, code=_MODE))
    if _STOCHASTIC.search(script):
        return Criterion(Name.MODE, Status.PASS, None, "", fill(MODE_SAID))
    return no_matter(Name.MODE, fill(ONE_MODE))


def _formula(steps: list[StepEvent]) -> Criterion:
    """Steps of plain cells of NNX by their equations; a subclass computes what it likes."""
    found = []
    for event in steps:
        kind = KINDS.get(type(event.cell).__name__)
        if kind is None or type(event.cell) is not kind.cell:
            continue
        carry = tuple(np.asarray(part) for part in parts_of(kind, event.carry))
        want = formula_step(kind, gate_weights(kind, event.cell), carry, np.asarray(event.inputs))
        new, output = event.result
        found.append(apart((parts_of(kind, new), output), (want.carry, want.output)))
    if not found:
        return no_matter(Name.FORMULA, fill(NO_FORMULA))
    worst = max(found, key=lambda one: (not one.within, one.largest))
    return of_difference(Name.FORMULA, worst, fill(CELLS_AGREE, count=len(found)))


def _worst(found: list[Criterion]) -> Criterion:
    """The one that fails, else the one that is farthest."""
    return max(found, key=lambda one: (one.status is Status.FAIL, one.number or 0.0))
