"""How the server is: its pages, what was found in people's inputs, programs, workers and their walls. Numbers of ours only."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Iterator

import psutil
import streamlit as st

from core.base.measures import (
    BUCKETS,
    CHECKS,
    CUT,
    FAILURES,
    FAULTS,
    NUMERIC,
    OTHER,
    PAGES,
    SLOWED,
    TIMES,
    Part,
    Spread,
    seconds_up,
)
from core.base.text import fill
from core.measures.prometheus import LOOPBACK, PORT_VARIABLE, served
from core.sandbox.pool_ticket import PoolStatus
from pages.widgets.cards import rule_of
from pages.widgets.frame import section
from pages.widgets.measured import programs_now, sessions_now
from pages.widgets.tables import table_html
from pages.widgets.verdict import State, Verdict

WELL, TROUBLED = "In order", "Not in order"
UP = "Up for {time}"
MINUTES, HOURS, DAYS = "{m} min", "{h} h {m} min", "{d} d {h} h"
NOW = "{sessions} open · {workers} · {memory} MB in the server"
ONE_SESSION, SESSIONS = "1 session", "{n} sessions"
BUSY, WAITING = "{running} of {limit} workers busy", "{running} of {limit} workers busy, waiting: {queued}"
FAILED = "failures of ours: {count}"

PAGE_TITLE, PAGE_HINT = "Pages", "since the start; time in the server, without network and browser"
PAGE_HEAD = (
    "page",
    "runs",
    "half take less than",
    "95 % take less than",
    "cut short",
    "slowed",
    "inputs checked",
    "with a fault",
)
PART_TITLE, PART_HINT = "Where the time goes", "parts of those runs"
PART_HEAD = ("part", "page", "how often", "half take less than", "95 % take less than")
PARTS = {
    Part.CHECK: "the rules, with the fixes they try",
    Part.COMPILE: "compiling one program",
    Part.QUEUED: "a job waiting for a worker",
    Part.WORKER: "a job in its worker",
}
FAULT_TITLE, FAULT_HINT = "What was found", "share of all checked inputs; numeric faults in {count} of {all}"
FAULT_HEAD = ("code", "mistake", "inputs", "share")
NO_FAULTS = "Nothing yet."
PROGRAM_TITLE, PROGRAM_HINT = "Compiled programs", "shared by everybody; they hold types, no values"
PROGRAM_HEAD = ("of", "kept", "was there", "compiled", "dropped for newer")
KINDS = {"values": "values", "gradients": "gradients"}
MEASURES_OFF = "The same numbers in Prometheus’ format: off; `{variable}` switches them on."
MEASURES_HERE = "The same numbers in Prometheus’ format: on port {port}, for this machine only."
MEASURES_ALL = "The same numbers in Prometheus’ format: on port {port}."
MS, SECONDS, OVER = "{value:.0f} ms", "{value:.1f} s", "over {value:.1f} s"
NONE = "–"
SHARE = "{value:.0%}"
#: The most frequent codes that are listed.
_MOST = 15
_MB = 1_000_000


def strip_of(pool: PoolStatus) -> Verdict:
    """All in a line."""
    process = psutil.Process()
    workers = fill(WAITING if pool.queued else BUSY, running=pool.running, limit=pool.limit, queued=pool.queued)
    sessions = sessions_now()
    summary = fill(
        NOW,
        sessions=fill(ONE_SESSION if sessions == 1 else SESSIONS, n=sessions),
        workers=workers,
        memory=round(process.memory_info().rss / _MB),
    )
    failures = sum(FAILURES.values().values())
    bad = bool(pool.trouble or failures)
    if failures:
        summary += " · " + fill(FAILED, count=failures)
    up = fill(UP, time=_duration(seconds_up()))
    return Verdict(
        State.WARNED if bad else State.KEPT, words=fill(TROUBLED if bad else WELL), summary=f"{up} · {summary}"
    )


def _duration(seconds: float) -> str:
    minutes = int(seconds // 60)
    days, hours = divmod(minutes // 60, 24)
    form = DAYS if days else HOURS if hours else MINUTES
    return fill(form, d=days, h=hours, m=minutes % 60)


def pages_table() -> None:
    """Each page that was run: how often, how long, and how many inputs had a fault."""
    section(fill(PAGE_TITLE), hint=fill(PAGE_HINT))
    st.html(table_html(PAGE_HEAD, _page_rows()))


def _page_rows() -> Iterator[list[str]]:
    times = TIMES.values()
    for page in (*PAGES, OTHER):
        spread, cut = times.get((page, Part.PAGE), Spread()), CUT.total(page=page)
        if not (spread.count or cut):
            continue
        slowed = SLOWED.total(page=page)
        checked = CHECKS.total(page=page)
        sound = CHECKS.total(page=page, outcome="ok")
        yield [
            html.escape(page), _number(spread.count), *_times(spread), _number(cut), _number(slowed), _number(checked),
            _share(checked - sound, checked),
        ]  # fmt: skip


def parts_table() -> None:
    """What takes the time, by part and page."""
    rows = list(_part_rows())
    if rows:
        section(fill(PART_TITLE), hint=fill(PART_HINT))
        with st.container(key="status_parts"):
            st.html(table_html(PART_HEAD, rows))


def _part_rows() -> Iterator[list[str]]:
    times = TIMES.values()
    for part, said in PARTS.items():
        for page in (*PAGES, OTHER):
            spread = times.get((page, part), Spread())
            if spread.count:
                yield [html.escape(fill(said)), html.escape(page), _number(spread.count), *_times(spread)]


def faults_table() -> None:
    """The codes found most often."""
    every = sum(CHECKS.values().values())
    numeric = sum(NUMERIC.values().values())
    section(fill(FAULT_TITLE), hint=fill(FAULT_HINT, count=_number(numeric), all=_number(every)))
    counts: Counter[str] = Counter()
    for (_, code), count in FAULTS.values().items():
        counts[code] += count
    if not counts:
        st.caption(fill(NO_FAULTS))
        return
    with st.container(key="status_faults"):
        st.html(table_html(FAULT_HEAD, (_fault(code, count, every) for code, count in counts.most_common(_MOST))))


def _fault(code: str, count: int, every: int) -> list[str]:
    rule = rule_of(code)
    return [html.escape(code), html.escape(fill(rule.title)) if rule else NONE, _number(count), _share(count, every)]


def programs_table() -> None:
    """The stores of compiled programs."""
    section(fill(PROGRAM_TITLE), hint=fill(PROGRAM_HINT))
    rows = (
        [html.escape(fill(KINDS[kind])), *_numbers((s.programs, s.hits, s.compiles, s.evictions))]
        for kind, s in programs_now().items()
    )
    st.html(table_html(PROGRAM_HEAD, rows))


def measures_line() -> None:
    """Where the same numbers can be had by a machine."""
    place = served()
    if place is None:
        st.caption(fill(MEASURES_OFF, variable=PORT_VARIABLE))
    else:
        st.caption(fill(MEASURES_HERE if place.host == LOOPBACK else MEASURES_ALL, port=place.port))


def _times(spread: Spread) -> tuple[str, str]:
    return _seconds(spread.quantile(0.5)), _seconds(spread.quantile(0.95))


def _seconds(value: float | None) -> str:
    if value is None:
        return NONE
    if value >= BUCKETS[-1]:
        return fill(OVER, value=value)
    return fill(SECONDS, value=value) if value >= 1 else fill(MS, value=1_000 * value)


def _number(value: int) -> str:
    return f"{value:,}"


def _numbers(values: Iterable[int]) -> list[str]:
    return [_number(value) for value in values]


def _share(part: int, whole: int) -> str:
    return fill(SHARE, value=part / whole) if whole else NONE
