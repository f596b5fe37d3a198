"""A contract report as it stands on a page: the verdict, the criteria, the latency, what it does not prove."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Final

import streamlit as st

from core.base.text import fill
from core.report.markdown import (
    COMPILE,
    CRITERION,
    LATENCY,
    LATENCY_OF,
    MEDIAN,
    MS,
    NEGATIVES,
    NO_LATENCY,
    NOT_PROVED,
    NUMBER,
    P90,
    P99,
    RESULT,
    TRACE,
    number_text,
    verdict_line,
)
from core.report.model import TITLES, ContractReport, Criterion, Status
from pages.widgets.tables import scroll_box, table_html

#: A mark that needs no colour, the class of its colour, and the words.
MARKS: Final = {
    Status.PASS: ("✓", "cl-ok", "pass"),
    Status.FAIL: ("✗", "cl-no", "fail"),
    Status.NOT_APPLICABLE: ("–", "cl-quiet", "not applicable"),
    Status.NOT_RUN: ("?", "cl-no", "not run"),
}
RAISED = "{what} It raised {raised}, as it must."
NOT_RAISED = "{what} It must raise {expected}, and raised {raised}."
NOTHING = "nothing"
MUST_BE = "must be: {bound}"


def report_head(report: ContractReport) -> None:
    """The verdict in a sentence."""
    css = {"pass": "cl-ok", "fail": "cl-no"}.get(report.verdict, "cl-no")
    _, verdict, rest = (html.escape(part) for part in verdict_line(report).split("**", 2))
    st.html(f'<p role="status"><span class="{css}">{verdict}</span>{rest}</p>')


def report_table(page: str, report: ContractReport) -> None:
    """The criteria, the negative tests, the latency, and what is not proved; the files have all of it."""
    head = (RESULT, CRITERION, NUMBER)
    top = "".join(f'<th scope="col">{html.escape(fill(word))}</th>' for word in head)
    rows = "".join(map(_row, report.criteria))
    with st.container(key=f"{page}_report_table"):
        st.html(
            f'{scroll_box(head)}<table class="cl-table"><thead><tr>{top}</tr></thead><tbody>{rows}</tbody></table></div>'
        )
    st.html("".join(_below(report)))


def _row(one: Criterion) -> str:
    mark, css, words = MARKS[one.status]
    detail = f'<div class="cl-quiet">{html.escape(one.detail)}</div>' if one.detail else ""
    bound = f'<div class="cl-quiet">{html.escape(fill(MUST_BE, bound=one.bound))}</div>' if one.bound else ""
    return (
        f'<tr><td><span class="{css}">{mark} {html.escape(fill(words))}</span></td>'
        f'<th scope="row">{html.escape(fill(TITLES[one.name]))}{detail}</th>'
        f"<td>{html.escape(number_text(one))}{bound}</td></tr>"
    )


def _below(report: ContractReport) -> Iterator[str]:
    yield f"<h3>{html.escape(fill(NEGATIVES))}</h3><ul>"
    for one in report.negatives:
        mark, css, _ = MARKS[Status.PASS if one.ok else Status.FAIL]
        template = RAISED if one.ok else NOT_RAISED
        said = fill(template, what=one.what, expected=one.expected, raised=one.raised or fill(NOTHING))
        yield f'<li><span class="{css}">{mark}</span> {html.escape(said)}</li>'
    yield f"</ul><h3>{html.escape(fill(LATENCY))}</h3>"
    times = report.latency
    if times is None:
        yield f'<p class="cl-quiet">{html.escape(fill(NO_LATENCY, reason=report.latency_missing))}</p>'
    else:
        said = fill(LATENCY_OF, what=times.what, runs=times.runs, warm_up=times.warm_up)
        yield f'<p class="cl-quiet">{html.escape(said)}</p>'
        values = (times.median_ms, times.p90_ms, times.p99_ms, times.trace_ms, times.compile_ms)
        first, *more = (html.escape(fill(MS, ms=ms)) for ms in values)
        yield table_html((MEDIAN, P90, P99, TRACE, COMPILE), [[first, *more]])
    yield f"<h3>{html.escape(fill(NOT_PROVED))}</h3><ul>"
    yield from (f"<li>{html.escape(line)}</li>" for line in report.not_proved)
    yield "</ul>"
