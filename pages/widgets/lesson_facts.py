"""What a page says of itself to the lesson that is open on it: one hook, called where its cards are drawn."""

from __future__ import annotations

import streamlit as st

from core.base.outcome import Report
from core.lessons.checks import PageFacts
from pages.widgets.classroom import classroom
from pages.widgets.measured import told_report
from pages.widgets.state import PageState

_FACTS, _STATE, _SEEN = "lesson:facts", "lesson:state", "lesson:seen"


def tell_report(state: PageState, report: Report | None) -> None:
    """Called once in a run of a page. `report`: of the inputs as they stand; None when there is none for them (yet)."""
    told_report(report)
    lesson = classroom().lesson
    if lesson is None:
        return
    step, seen = st.session_state.get(_SEEN, (None, frozenset()))
    if step != (lesson, state.page):
        seen = frozenset()  # what another step has shown is not mended in this one
    facts = PageFacts.of_report(state.page, state.values, report, seen)
    st.session_state[_SEEN] = (lesson, state.page), facts.seen
    st.session_state[_FACTS], st.session_state[_STATE] = facts, state


def forget_report() -> None:
    """Before a page runs: what it said in the run before is not what it says now."""
    st.session_state.pop(_FACTS, None)
    st.session_state.pop(_STATE, None)


def told() -> tuple[PageFacts | None, PageState | None]:
    """What the page said in this run, and its inputs."""
    return st.session_state.get(_FACTS), st.session_state.get(_STATE)
