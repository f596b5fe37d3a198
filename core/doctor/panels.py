"""The scans of a script that ran, to be drawn: types always, values where there are some and they are not too many."""

from __future__ import annotations

from collections.abc import Mapping

from jax import tree_util

from core.base.avals import aval_of
from core.base.limits import LIMITS
from core.base.places import Span
from core.base.results import ScanResult
from core.base.text import fill
from core.base.violation import Severity
from core.contract.script_record import ScanSite
from core.doctor.answer import ScanPanel
from core.doctor.check import Checkup
from core.doctor.report import ys_types
from core.doctor.script import ScriptRun

ABSTRACT = "Only its shapes were worked out; Run computes its values."
OVER = "The script is over a limit: only its shapes were worked out."
RAISED = "It raised."
STOPPED = "The script was stopped before it was through."
TRACED = "It ran inside another trace (`jit`, `vmap`, `grad` or an outer scan), where a carry has a type and no value."
LONG = "{length:,} steps are more than are drawn ({limit:,})."
LARGE = "{count:,} numbers are more than are drawn ({limit:,})."
MANY = "Only the first {limit} scans are drawn."
UNKEPT = "Its carries were too large to be kept."


def panels_of(checkup: Checkup) -> tuple[ScanPanel, ...]:
    """One panel for each scan, in the order of their calls; values for the first few."""
    run = checkup.run
    if run is None:
        return ()
    out: list[ScanPanel] = []
    drawn = 0
    over = any(violation.severity is Severity.LIMIT for violation in checkup.report.violations)
    for site in run.record.scans:
        result, reason = _values(site, run, drawn, over)
        drawn += result is not None
        place = checkup.given.place(site.facts.places.find("scan"))
        out.append(
            ScanPanel(
                line=place.line if isinstance(place, Span) else None,
                length=site.facts.length,
                carry={leaf.path: str(leaf) for leaf in site.facts.carry_in},
                xs={leaf.path: str(leaf) for leaf in site.facts.xs_types},
                ys=ys_types(site),
                result=result,
                reason=reason,
                names=_names(site),
            )
        )
    return tuple(out)


def _values(site: ScanSite, run: ScriptRun, drawn: int, over: bool) -> tuple[ScanResult | None, str]:
    """The values to be drawn; None with a sentence that says why there are none."""
    result = run.looks[site.index].result if site.index < len(run.looks) else None
    if result is None:
        return None, _why_none(site, run, over)
    if result.length > LIMITS["drawn_steps"].value:
        return None, fill(LONG, length=result.length, limit=LIMITS["drawn_steps"].value)
    count = sum(int(s.values.size) for s in (*result.carries, *result.xs, *result.ys_series))
    if count > LIMITS["elements"].value:
        return None, fill(LARGE, count=count, limit=LIMITS["elements"].value)
    if drawn >= LIMITS["drawn_scans"].value:
        return None, fill(MANY, limit=LIMITS["drawn_scans"].value)
    return result, ""


def _why_none(site: ScanSite, run: ScriptRun, over: bool) -> str:
    if site.error is not None:
        return fill(RAISED)
    if run.record.abstract:
        return fill(STOPPED if run.record.stopped else OVER if over else ABSTRACT)
    if site.traced:
        return fill(TRACED)
    return fill(STOPPED if site.result is None else UNKEPT)


def _names(site: ScanSite) -> Mapping[str, str]:
    """``c`` and ``h`` for the two leaves of an LSTM's carry."""
    paths = [leaf.path for leaf in site.facts.carry_in]
    types = [leaf.aval for leaf in site.facts.carry_in]
    lstm = any(
        "LSTM" in type(step.cell).__name__ and [aval_of(v) for v in tree_util.tree_leaves(step.carry)] == types
        for step in site.facts.cells.steps
    )
    return dict(zip(paths, ("c", "h"), strict=True)) if lstm and paths == ["carry[0]", "carry[1]"] else {}
