"""The LSTM cell page's verdict: what went into the step, what came out, and what JAX and the formula say of it."""

from __future__ import annotations

from core.base.outcome import Outcome
from core.base.text import fill
from core.inputs.cell_page import CellLook
from core.plots.cell_tables import agreement
from core.runners.cells import CellStep
from pages.widgets.verdict import State, Verdict, counted, state_of

UNREADABLE = "An input cannot be read: what is shown belongs to the last inputs that could be."
NEVER = "An input cannot be read, so there is nothing to show yet."
SUMMARY = "{cell}: carry in{given} → new carry {after}, output {output} · {checks}"
GIVEN, ONE_ARRAY = " {shapes}", ": one array {shapes}"
NO_ERROR = "JAX: no error"
OVER = "{limit} Nothing was run; the result below is that of the last inputs within the limits."
OVER_AT_ONCE = "{limit} Nothing was run, so there is nothing to show yet."
RAISED = "JAX raises {type}"
FINITE, NOT_FINITE = "all finite", "not finite"
TIMING = "{program} · {ms} ms"
COMPILED, CACHED = "compiled", "cached"


def cell_verdict(look: CellLook, good: CellLook | None, took: float) -> Verdict:
    """The strip for one look; `good` is the last one that ran, `took` the milliseconds of this run."""
    if look.report is None:
        return Verdict(State.STALE, summary=fill(UNREADABLE if good else NEVER))
    summary = program = ""
    if look.report.outcome is Outcome.LIMIT:
        limit = " ".join(violation.message for violation in look.report.broken)
        summary = fill(OVER if good else OVER_AT_ONCE, limit=limit)
    elif look.raised is not None:
        summary = fill(RAISED, type=look.raised.type)
    elif look.step is not None:
        step = look.step
        summary = _went(step, broken=bool(look.report.broken))
        program = fill(TIMING, program=fill(COMPILED if step.compiled else CACHED), ms=round(took))
    return Verdict(state_of(look.report), counted(look.report), summary, program)


def _went(step: CellStep, *, broken: bool) -> str:
    """What went into the step and what came out. Beside a broken contract nothing that sounds as if all were well."""
    shapes = ", ".join(str(t.aval.shape) for t in step.carry if t.aval is not None)
    alone = len(step.carry) != len(step.kind.parts)
    checks = [] if step.finite and broken else [fill(FINITE if step.finite else NOT_FINITE)]
    return fill(
        SUMMARY,
        cell=step.kind.name,
        given=fill(ONE_ARRAY if alone else GIVEN, shapes=shapes),
        after=", ".join(str(part.shape) for part in step.after),
        output=step.output.shape,
        checks=" · ".join([*checks, fill(NO_ERROR) if broken else agreement(step)]),
    )
