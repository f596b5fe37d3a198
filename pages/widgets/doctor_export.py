"""What leaves the Doctor's page: a link, the script, the report as JSON, and an issue ready to be pasted."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.base.avals import LeafType
from core.base.outcome import Report
from core.base.places import Span
from core.base.text import fill
from core.doctor.answer import LINK, Answer, ScanPanel
from core.doctor.gallery import example_of
from core.doctor.link import PAGE
from core.doctor.prep import Kind
from core.doctor.report import SCHEMA, plain, versions
from core.export.document import Document
from core.export.script_program import STEM, script_document
from core.report.wanted import SCRIPT, Wanted
from pages.widgets.doctor_check import Look
from pages.widgets.doctor_shown import Shown
from pages.widgets.doctor_state import DoctorState
from pages.widgets.export_menu import Offer, program_offers, strip_menus
from pages.widgets.page_exports import report_offer

LINK_SAYS = "Whoever opens it gets this script; it is run only when they press Run."
LINK_OURS = "It is one of ours: it runs as soon as it is opened."
LINK_EMPTY = "There is nothing in the editor yet."
JSON_FILE, ISSUE_FILE = "carry-lab.json", "carry-lab-issue.md"
JSON_LABEL, ISSUE_LABEL = "Checkup (.json)", "Issue (.md)"
COPY_ISSUE = "Copy as issue"
NO_ISSUE = "Run the script first: then it comes as an issue with shapes, verdict, proof, fix and versions."
#: Pixels of the issue's text before it scrolls.
_ISSUE_HEIGHT = 260


def link_of(state: DoctorState) -> str:
    """The address that leads back to this script; "" when there is none, or it would be too long."""
    params = state.table.to_link(state.values).params
    here = (st.context.url or "").partition("?")[0]
    return f"{here}?{urlencode(params)}" if params and here else ""


def menus(state: DoctorState, look: Look, now: Shown, slot: DeltaGenerator, before: Callable[[], None]) -> None:
    """The row beside the strip: what `before` draws, the link, and script, notebook, report and issue."""
    answer = look.answer
    issue = "" if answer is None else answer.issue.replace(LINK, link_of(state))
    ready = answer is not None and now.report is not None
    program = None if look.empty or look.too_long else partial(_document, look)
    offers = (
        *program_offers(fill(STEM), program),
        Offer(
            "json",
            fill(JSON_LABEL),
            JSON_FILE,
            "application/json",
            partial(_json, answer) if answer is not None and ready else None,
        ),
        report_offer(PAGE, partial(Wanted, SCRIPT, text=look.text) if program is not None else None),
        Offer("issue", fill(ISSUE_LABEL), ISSUE_FILE, "text/markdown", (lambda: issue) if issue else None),
    )
    strip_menus(
        slot,
        PAGE,
        offers,
        before=before,
        below=partial(_issue, issue),
        link_says=fill(LINK_SAYS if example_of(state.script.text) is None else LINK_OURS),
        link_problem=state.link_problem or ("" if link_of(state) else fill(LINK_EMPTY)),
        pictures=False,
    )


def _issue(issue: str) -> None:
    if not issue:
        st.caption(fill(NO_ISSUE))
        return
    st.caption(fill(COPY_ISSUE))
    st.code(issue, language="markdown", wrap_lines=True, height=_ISSUE_HEIGHT)


def _document(look: Look) -> Document | None:
    """The script that was found in what was pasted, with what is known of it."""
    answer = look.answer
    if answer is None or answer.kind in (Kind.ERROR, Kind.TEXT, Kind.EMPTY):
        return script_document(look.text, None)
    return script_document(answer.script, answer.report)


def _json(answer: Answer) -> str:
    return json.dumps(report_json(answer), indent=2)


# --- JSON -----------------------------------------------------------------------------------------------------------


def report_json(answer: Answer) -> dict[str, Any]:
    """The report of schema 1, as ``python -m core.doctor FILE.py --format json`` writes it."""
    report = answer.report
    return {
        "schema": SCHEMA,
        "outcome": report.outcome.value,
        "error": _error(report),
        "versions": versions(),
        "stdout": answer.stdout,
        "scans": [_scan(panel) for panel in answer.scans],
        "violations": _violations(answer),
    }


def _error(report: Report) -> dict[str, Any] | None:
    error = report.error
    if error is None:
        return None
    line, col = (error.place.line, error.place.col) if isinstance(error.place, Span) else (None, None)
    return {"type": error.type, "message": error.message, "line": line, "col": col}


def _violations(answer: Answer) -> list[dict[str, Any]]:
    out = []
    for violation, sources in zip(answer.report.violations, answer.sources, strict=True):
        place = violation.place if isinstance(violation.place, Span) else None
        out.append(
            {
                "code": violation.code,
                "severity": violation.severity.value,
                "message": violation.message,
                "line": place and place.line,
                "col": place and place.col,
                "end_line": place and place.end_line,
                "end_col": place and place.end_col,
                "expected": _leaves(violation.expected),
                "got": _leaves(violation.got),
                "why": violation.why,
                "jax_said": violation.jax_said,
                "fixes": [
                    {"title": fix.title, "source": source, "verified": True}
                    for fix, source in zip(violation.fixes, sources, strict=True)
                ],
            }
        )
    return out


def _leaves(leaves: tuple[LeafType, ...]) -> dict[str, str]:
    return {leaf.path: str(leaf) for leaf in leaves}


def _scan(panel: ScanPanel) -> dict[str, Any]:
    result = panel.result
    return {
        "line": panel.line,
        "length": panel.length,
        "carry": dict(panel.carry),
        "ys": dict(panel.ys),
        "final": {} if result is None else {s.path: plain(s.values[-1]) for s in result.carries},
    }
