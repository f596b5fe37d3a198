"""The Doctor's strip: what is known of the script as it stands, in words; beside it cancel, link and export."""

from __future__ import annotations

import time

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.base.limits import LIMITS
from core.base.outcome import Outcome, Report
from core.base.places import Field, Span
from core.base.text import fill
from core.doctor.answer import Answer, Wish
from core.doctor.prep import Kind
from core.plots.scan_view import summary
from core.sandbox.pool_ticket import StopReason
from pages.widgets.doctor_check import Halt, Look, cancel
from pages.widgets.doctor_export import menus
from pages.widgets.doctor_shown import Shown
from pages.widgets.doctor_state import DoctorState
from pages.widgets.verdict import State, Verdict, counted, state_of, verdict_strip

EMPTY = "Paste a script or an error, or try a broken one."
TOO_LONG = "{count:,} characters are more than the {limit:,} that are checked here. Nothing is lost: take some out."
WORKING = {
    Wish.SHAPES: "Working out the shapes",
    Wish.CHECK: "Running",
    Wish.FIXES: "Trying the fixes",
}
QUEUED = "number {place} in the queue"
SINCE = "{seconds} s of {limit}"
WAITS = "in a worker of your own"
STALE = "Of the text before the last edit."
ONE_LINE, MORE_LINES = "line {last}", "lines {first} and {last}"
RAN, NOT_RUN = "ran in a worker", "nothing was run yet: Ctrl+Enter"
SHAPES_ONLY = "from the shapes alone; nothing was run yet"
NOTHING = "Nothing to check: no scan or cell ran"
SHAPES_BELOW = "what is shown is from the shapes alone"
SHAPES_STILL = "shapes are checked all the same"
TOOK = "{ms} ms"
WITH_X64 = "64-bit"
FIXING = "trying the fixes"
UNREADABLE_SCRIPT = "Python cannot read this script"
RAISED = "It raised {type}"
NO_RULE = "no rule explains it"
NO_CODE = {
    Kind.ERROR: "An error message, without its code",
    Kind.TEXT: "Words, no code",
    Kind.EMPTY: "No code in it",
}
PASTE_CODE = "Paste the script that it came from."
CANCEL = "Cancel"
#: Why a job gave nothing, by the pool's reason: what the strip is, its words, and what more there is to say.
HALTS = {
    StopReason.TIME: (State.LIMIT, "Out of time", "The worker was stopped after {seconds} s; nobody else noticed."),
    StopReason.MEMORY: (State.LIMIT, "Out of memory", "The worker was stopped at {memory} MB; nobody else noticed."),
    StopReason.OUTPUT: (State.LIMIT, "Too much to show", "Its answer was larger than is taken. Print or scan less."),
    StopReason.DIED: (State.ERROR, "The worker broke off", "The script ended its worker, which has been replaced."),
    StopReason.CANCELLED: (State.UNCHECKED, "Cancelled", "Nothing was changed; Run starts again."),
    StopReason.REPLACED: (State.UNCHECKED, "Not run", "Something newer of yours took its place; Run starts again."),
    StopReason.BUSY: (State.LIMIT, "Too many at once", "All workers and the queue are full. Run again in a moment."),
    None: (State.ERROR, "The worker's answer could not be read", "The worker has been replaced; run again."),
}
#: The same where only the shapes were being worked out: nothing of the script had run.
HALTS_OF_SHAPES = {
    StopReason.TIME: "Working out the shapes was stopped after {seconds} s; nothing was run.",
    StopReason.MEMORY: "Working out the shapes was stopped at {memory} MB; nothing was run.",
}
#: Exceptions of reading a script, by name.
_READING = frozenset({"SyntaxError", "IndentationError", "TabError"})


def strip_row(state: DoctorState, look: Look, now: Shown, slot: DeltaGenerator) -> None:
    """What stands beside the strip."""

    def before() -> None:
        if look.job is not None:
            st.button(fill(CANCEL), key="doctor_cancel", on_click=cancel, icon=":material/stop_circle:")

    menus(state, look, now, slot, before)


def tell(slot: DeltaGenerator, look: Look, report: Report | None) -> None:
    """Write the strip, now."""
    verdict_strip(slot, verdict_of(look, report))


def verdict_of(look: Look, report: Report | None) -> Verdict:
    """What the strip says. `report`: of the script as it stands, as it is shown; None when nothing is known."""
    job, answer = look.job, look.answer
    if look.empty:
        return Verdict(State.UNCHECKED, summary=fill(EMPTY))
    if look.too_long:
        return Verdict(State.LIMIT, summary=fill(TOO_LONG, count=look.too_long, limit=LIMITS["script_text"].value))
    if job is not None and (answer is None or job.wish is Wish.CHECK or job.text != look.text):
        stale = look.before is not None and job.wish is Wish.SHAPES
        words = "" if job.wish is Wish.CHECK else fill(WORKING[job.wish])
        if stale:
            return Verdict(State.STALE, summary=fill(STALE), program=_clock(look))
        return Verdict(State.RUNNING, summary=_clock(look), words=words)
    if look.halted is not None and answer is None:
        return _halted(look.halted)
    if answer is None or report is None:
        return Verdict(State.UNCHECKED, summary=fill(NOT_RUN))
    if look.halted is not None:
        halted = _halted(look.halted)
        return Verdict(halted.state, summary=halted.summary, words=halted.words, program=fill(SHAPES_BELOW))
    return _answered(answer, report, fixing=job is not None)


def _clock(look: Look) -> str:
    job = look.job
    if job is None:
        return ""
    place = job.ticket.place
    if place > 0:
        return fill(QUEUED, place=place)
    seconds = time.monotonic() - job.since
    if job.wish is Wish.SHAPES or seconds < 1:
        return fill(WAITS)
    return fill(SINCE, seconds=int(seconds), limit=LIMITS["worker_seconds"].value)


def _halted(halt: Halt) -> Verdict:
    state, words, more = HALTS[halt.reason]
    if halt.wish is Wish.SHAPES and halt.reason in HALTS_OF_SHAPES:
        more = HALTS_OF_SHAPES[halt.reason]
    text = fill(more, seconds=LIMITS["worker_seconds"].value, memory=LIMITS["worker_memory"].value)
    return Verdict(state, summary=text, words=fill(words))


def _answered(answer: Answer, report: Report, *, fixing: bool) -> Verdict:
    aside = [fill(TOOK, ms=f"{answer.milliseconds:.0f}")]
    if answer.x64:
        aside.insert(0, fill(WITH_X64))
    if fixing:
        aside.insert(0, fill(FIXING))
    program = " · ".join(aside)
    if answer.kind in NO_CODE:
        said = answer.matched[1] if answer.matched is not None else fill(PASTE_CODE)
        return Verdict(State.UNCHECKED, summary=said, program=program, words=fill(NO_CODE[answer.kind]))
    ran = fill(RAN) if answer.ran else fill(SHAPES_ONLY)
    if report.outcome is Outcome.LIMIT:
        ran = fill(SHAPES_STILL) if answer.shapes else ""
    where = _lines(report)
    state, count = state_of(report), counted(report)
    if report.outcome is Outcome.ERROR and report.error is not None:
        unread = report.error.type in _READING
        words = fill(UNREADABLE_SCRIPT) if unread else fill(RAISED, type=report.error.type)
        rest = [where, *([] if unread else [fill(NO_RULE)])]
        return Verdict(State.ERROR, summary=" · ".join(filter(None, rest)), program=program, words=words)
    if report.outcome is Outcome.OK:
        if not answer.ran:
            return Verdict(State.SHAPES, summary=fill(NOT_RUN), program=program)
        if answer.idle:
            summed = " · ".join(filter(None, (count, ran)))
            return Verdict(State.UNCHECKED, summary=summed, program=program, words=fill(NOTHING))
        first = next((p for p in answer.scans if p.result is not None), None)
        result = "" if first is None or first.result is None else summary(first.result, first.names)
        return Verdict(state, count, " · ".join(filter(None, (result, ran))), program)
    return Verdict(state, count, " · ".join(filter(None, (where, ran))), program)


def _lines(report: Report) -> str:
    """The lines (or inputs) of what is broken."""
    places = [v.place for v in report.broken] or [report.error.place if report.error is not None else None]
    lines = sorted({place.line for place in places if isinstance(place, Span)})
    inputs = [place.label for place in places if isinstance(place, Field)]
    if not lines:
        return ", ".join(dict.fromkeys(inputs))
    if len(lines) == 1:
        return fill(ONE_LINE, last=lines[0])
    return fill(MORE_LINES, first=", ".join(map(str, lines[:-1])), last=lines[-1])
