"""The Scan page in one session: its inputs, and the last evaluations, so that a rerun that changes nothing costs nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import streamlit as st

from core.base.outcome import Outcome
from core.base.text import fill
from core.base.violation import Severity, Violation
from core.inputs.fields import Value
from core.inputs.scan_check import Checked, evaluate
from core.inputs.scan_fields import follow, resized, scan_fields, scan_link_fields
from core.inputs.scan_inputs import Built, from_values
from pages.widgets.cards import Mark, field_marks
from pages.widgets.pace import paced
from pages.widgets.state import PageState
from pages.widgets.verdict import State, Verdict, counted, state_of

_NOW, _GOOD = "scan:checked", "scan:good"
#: The typed numbers, and the rows that a shorter T has cut off them.
_CUT = "scan:cut"

COMPILED, CACHED = "compiled", "cached"
PADDED = "{program} for T = {padded}"
PADDED_HINT = (
    "Lengths are padded to a power of two, so that few programs are compiled; only the T steps asked for count."
)
TOOK = "{ms} ms"
CANNOT_READ = "An input cannot be read. What is shown is the result of the inputs before."
UNREADABLE = "An input cannot be read."
CANNOT_RUN = "The step cannot take an input. What is shown is the result of the inputs before."
MISFIT = "The step cannot take an input."
NOT_RUN = "Nothing was computed."
SHOWN_IS_OLD = "What is shown below is the last result that ran."


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What the page draws in this run.

    Attributes:
        checked: the evaluation of the inputs as they stand.
        good: the evaluation whose result is drawn: that one, or the last one that ran.
        ms: how long the evaluation took.
        fresh: it was made in this run.
    """

    checked: Checked
    good: Checked
    ms: float

    @property
    def stale(self) -> bool:
        """What is drawn is not of the inputs as they stand."""
        return self.good is not self.checked


def scan_state() -> PageState:
    """The page's inputs."""
    return PageState("scan", scan_fields, link_table=scan_link_fields, follow=_follow)


def _follow(before: Mapping[str, Value], edits: Mapping[str, Value]) -> dict[str, Value]:
    """As `follow`, but the numbers that a shorter T cuts off are kept in this session until others are typed."""
    of, rest = st.session_state.get(_CUT, ("", ()))
    rest = rest if of == before.get("numbers") else ()
    if "length" in edits and "numbers" not in edits and before["source"] != "generate":
        text, rest = resized(str(before["numbers"]), int(edits["length"]), rest)
        edits = {**edits, "numbers": text}
    after = follow(before, edits)
    if after["step"] != before["step"] or (
        "numbers" in edits and after["length"] not in (before["length"], edits.get("length"))
    ):
        rest = ()
    st.session_state[_CUT] = (after["numbers"], rest)
    return after


def needs_run(state: PageState) -> bool:
    """Whether the inputs differ from those of the last evaluation."""
    kept = st.session_state.get(_NOW)
    return kept is None or kept[0].values != state.values


def shown(state: PageState) -> Shown:
    """The evaluation of the inputs as they stand, made now or kept from the last run of this session."""
    if needs_run(state):
        start = time.perf_counter()
        waiting = Checked(state.values, from_values(state.values).step, Built(None))
        checked = paced(lambda: evaluate(state.values), lambda: waiting, first=_NOW not in st.session_state)
        if checked is waiting:
            return Shown(checked, st.session_state.get(_GOOD, st.session_state[_NOW][0]), 0.0)
        st.session_state[_NOW] = (checked, 1000 * (time.perf_counter() - start))
        if checked.result is not None:
            st.session_state[_GOOD] = checked
    checked, ms = st.session_state[_NOW]
    good: Checked = st.session_state.get(_GOOD, checked)
    # A broken contract is drawn as it is, broken; only what cannot be read or is over a limit leaves the last result.
    keep = checked.built.call is None or state_of(checked.report) is State.LIMIT
    return Shown(checked, good if keep and checked.result is None else checked, ms)


def verdict_of(shown: Shown, summary: str, words: str = "") -> Verdict:
    """The strip: `summary` of the result, and `words` about the loop once it was compared."""
    checked = shown.checked
    if checked.report is None:
        now, before = (MISFIT, CANNOT_RUN) if checked.built.misfit else (UNREADABLE, CANNOT_READ)
        return Verdict(State.STALE if shown.stale else State.UNCHECKED, summary=fill(before if shown.stale else now))
    state, count = state_of(checked.report), counted(checked.report)
    if checked.result is None:
        over = state is State.LIMIT and shown.stale
        return Verdict(state, count, fill(SHOWN_IS_OLD) if over else fill(NOT_RUN))
    run = checked.result
    program = fill(PADDED, program=fill(COMPILED if run.compiled else CACHED), padded=run.padded)
    aside = " · ".join([program, fill(TOOK, ms=f"{shown.ms:.0f}")])
    return Verdict(state, count, " · ".join(part for part in (summary, words) if part), aside, fill(PADDED_HINT))


def marks_of(checked: Checked) -> dict[str, list[Mark]]:
    """What stands under each input: faults, what could not be read, what is not used as it stands."""
    marks = field_marks(checked.report)
    built = checked.built
    for severity, said in ((Severity.ERROR, built.problems), (Severity.NOTE, built.hints)):
        for name, text in said:
            marks.setdefault(f"scan_{name}", []).append(Mark(severity, text))
    for mend in built.mends:
        key = f"scan_{mend.field}"
        marks[key][-1] = replace(marks[key][-1], mend=(mend.title, mend.edit))
    return marks


def keep_late(checked: Checked, late: tuple[Violation, ...]) -> Checked | None:
    """Add what the comparison after the plot found to the evaluation it was made for; None when that was nothing."""
    kept, ms = st.session_state.get(_NOW, (None, 0.0))
    if not late or kept is not checked or checked.report is None:
        return None
    violations = sorted((*checked.report.violations, *late), key=lambda v: v.severity.rank)
    broken = any(v.severity.breaks for v in late)
    report = replace(
        checked.report,
        outcome=Outcome.VIOLATIONS if broken and checked.report.outcome is Outcome.OK else checked.report.outcome,
        violations=tuple(violations),
    )
    checked = replace(checked, report=report)
    st.session_state[_NOW], st.session_state[_GOOD] = (checked, ms), checked
    return checked
