"""What the pages tell the measures (`core.base.measures`): their runs, how a check ended, sessions; never what is in them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import streamlit as st

from core.base.measures import CHECKS, FAILURES, FAULTS, NUMERIC, PAGES, SESSIONS, Reading, on_page, page_here, watch
from core.base.outcome import Report
from core.contract.rule import all_rules
from core.runners.cache import PROGRAMS, Stats
from core.runners.gradient_source import GRADIENT_PROGRAMS
from core.sandbox.pool_ticket import PoolStatus, StopReason
from pages.widgets.pace import paying

#: How the codes of numeric faults begin.
NUMERIC_CODES = "N"


class _Told(threading.local):
    """The report of the run that this thread is busy with."""

    report: Report | None = None


_told = _Told()


@contextmanager
def measured(url_path: str) -> Iterator[None]:
    """Around a page's run. `url_path`: its address as the navigation has it, "" for the root."""
    page = url_path or PAGES[0]
    _present()
    _told.report = None
    with on_page(page), paying():
        yield
    _count(page)


def told_report(report: Report | None) -> None:
    """How the check of the inputs ended in this run; what is said last counts, once."""
    _told.report = report


def failed_here() -> None:
    """A failure of ours was shown calmly."""
    FAILURES.add(page=page_here())


def _count(page: str) -> None:
    report, _told.report = _told.report, None
    if report is None:
        return
    CHECKS.add(page=page, outcome=report.outcome)
    codes = set(report.codes)
    for code in codes:
        FAULTS.add(page=page, code=code)
    if any(code.startswith(NUMERIC_CODES) for code in codes):
        NUMERIC.add(page=page)


# --- sessions -------------------------------------------------------------------------------------------------------


def _left(_: bool) -> None:
    SESSIONS.add(what="ended")


@st.cache_resource(show_spinner=False, scope="session", on_release=_left)
def _present() -> bool:
    """Once a session; let go of when its browser is gone."""
    SESSIONS.add(what="began")
    return True


def sessions_now() -> int:
    """Sessions that began and did not end."""
    return SESSIONS.total(what="began") - SESSIONS.total(what="ended")


# --- what others keep -----------------------------------------------------------------------------------------------


def programs_now() -> dict[str, Stats]:
    """The stores of compiled programs, by what they compute."""
    return {"values": PROGRAMS.stats, "gradients": GRADIENT_PROGRAMS.stats}


def watch_programs() -> None:
    """The compiled programs that are kept, and how often that helped."""
    watch(Reading("carry_lab_sessions_now", "Sessions that are open.", "", lambda: {"": sessions_now()}))
    for name, said, field, grows in (
        ("carry_lab_programs", "Compiled programs kept.", "programs", False),
        ("carry_lab_program_hits", "Programs that were there already.", "hits", True),
        ("carry_lab_compiles", "Programs that were compiled.", "compiles", True),
        ("carry_lab_program_evictions", "Programs dropped for newer ones.", "evictions", True),
    ):
        watch(Reading(name, said, "of", _reader(field), grows))


def _reader(field: str) -> Callable[[], Mapping[str, float]]:
    def read() -> Mapping[str, float]:
        return {kind: getattr(stats, field) for kind, stats in programs_now().items()}

    return read


def watch_pool(status: Callable[[], PoolStatus]) -> None:
    """What the workers do; `status` is asked when the measures are."""
    states = ("running", "warming", "spare", "reserved", "kept")

    def workers() -> Mapping[str, float]:
        now = status()
        return {state: getattr(now, state) for state in states}

    def stopped() -> Mapping[str, float]:
        counts = status().stopped
        return {str(reason): counts.get(reason, 0) for reason in StopReason}

    watch(Reading("carry_lab_workers", "Worker processes by what they do.", "state", workers))
    watch(Reading("carry_lab_jobs_queued", "Jobs that wait.", "", lambda: {"": status().queued}))
    watch(Reading("carry_lab_jobs_stopped", "Jobs without an answer, by reason.", "reason", stopped, grows=True))
    watch(Reading("carry_lab_workers_made", "Workers forked.", "", lambda: {"": status().made}, grows=True))
    watch(Reading("carry_lab_workers_ended", "Workers ended.", "", lambda: {"": status().lost}, grows=True))
    watch(Reading("carry_lab_worker_bytes", "Resident bytes in all workers.", "", lambda: {"": status().memory}))


FAULTS.allow("code", (rule.code for rule in all_rules()))
watch_programs()
