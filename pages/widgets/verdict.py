"""The verdict strip: kept or broken, in words, an icon and a colour; always in view at the top of a page.

Use in a view::

    strip = verdict_slot()                     # once, first thing on the page
    verdict_strip(strip, Verdict(State.RUNNING))
    ...
    verdict_strip(strip, Verdict(state_of(report), summary="final carry 6", program="cached"))
"""

from __future__ import annotations

import enum
import html
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.base.violation import Severity


class State(enum.StrEnum):
    """What the strip can say; the value is also its CSS class."""

    KEPT = "kept"
    NOTES = "notes"
    BROKEN = "broken"
    WARNED = "warned"
    LIMIT = "limit"
    ERROR = "error"
    STALE = "stale"
    RUNNING = "running"
    UNCHECKED = "unchecked"
    SHAPES = "shapes"


_ICON = {
    State.KEPT: "✓",
    State.NOTES: "✓",
    State.BROKEN: "✗",
    State.WARNED: "⚠",
    State.LIMIT: "⊘",
    State.ERROR: "✗",
    State.STALE: "◷",
    State.RUNNING: "…",
    State.UNCHECKED: "○",
    State.SHAPES: "≈",
}
WORDS = {
    State.KEPT: "Contract kept",
    State.NOTES: "Contract kept, {count}",
    State.BROKEN: "Contract broken: {count}",
    State.WARNED: "Contract broken silently: {count}",
    State.LIMIT: "Over a limit",
    State.ERROR: "JAX raised an error no rule explains",
    State.STALE: "Stale",
    State.RUNNING: "Running",
    State.UNCHECKED: "Not checked yet",
    State.SHAPES: "Shapes agree",
}
ERRORS = ("{n} error", "{n} errors")
WARNINGS = ("{n} warning", "{n} warnings")
NOTES = ("{n} note", "{n} notes")
VERSIONS = "jax {jax} · jaxlib {jaxlib} · flax {flax} · cpu"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the strip says.

    Attributes:
        state: see `State`.
        count: errors and warnings (or notes) in words, from `counted`.
        summary: the result in a few words, ``final carry 6 · ys [1, 3, 6] · equals the loop``.
        program: about the program, ``cached · padded to 4 · 2 ms``.
        hint: a tooltip that explains `program`.
        words: instead of the state's own, where a page can say it better.
    """

    state: State
    count: str = ""
    summary: str = ""
    program: str = ""
    hint: str = ""
    words: str = ""


def state_of(report: Report | None) -> State:
    """The state that a report means; None is not checked yet."""
    if report is None:
        return State.UNCHECKED
    if report.outcome is Outcome.OK:
        return State.NOTES if report.notes else State.KEPT
    if report.outcome is Outcome.VIOLATIONS and all(v.severity is Severity.WARNING for v in report.broken):
        return State.WARNED
    return {Outcome.VIOLATIONS: State.BROKEN, Outcome.LIMIT: State.LIMIT, Outcome.ERROR: State.ERROR}[report.outcome]


def counted(report: Report | None) -> str:
    """``1 error, 2 warnings``; the notes when nothing is broken; "" for nothing."""
    violations = report.violations if report else ()
    parts = []
    for severity, forms in ((Severity.ERROR, ERRORS), (Severity.WARNING, WARNINGS)):
        parts += _plural(sum(v.severity is severity for v in violations), forms)
    return ", ".join(parts or _plural(sum(v.severity is Severity.NOTE for v in violations), NOTES))


def _plural(n: int, forms: tuple[str, str]) -> list[str]:
    return [fill(forms[n != 1], n=n)] if n else []


@cache
def versions() -> str:
    """The versions that run, in one line."""
    return fill(VERSIONS, **{name: version(name) for name in ("jax", "jaxlib", "flax")})


def verdict_slot() -> DeltaGenerator:
    """Reserve the strip at the top of the page, in the container with key ``verdict``; fill it by `verdict_strip`."""
    return st.container(key="verdict").empty()


def verdict_slots() -> tuple[DeltaGenerator, DeltaGenerator]:
    """The same with a second place beside the strip, for `export_menu.strip_menus`."""
    with st.container(key="verdict"):
        return st.empty(), st.empty()


def verdict_strip(slot: DeltaGenerator, verdict: Verdict) -> None:
    """Write the strip (again): the last call in a run is what stays."""
    words = verdict.words or fill(WORDS[verdict.state], count=verdict.count)
    aside = " · ".join(part for part in (verdict.program, versions()) if part)
    slot.html(
        _STRIP.format(
            state=verdict.state.value,
            icon=_ICON[verdict.state],
            words=html.escape(words),
            summary=html.escape(verdict.summary),
            aside=html.escape(aside),
            hint=html.escape(verdict.hint, quote=True),
        )
    )


_STRIP = (
    '<div class="cl-strip cl-{state}" role="status" aria-live="polite">'
    '<strong class="cl-words"><span aria-hidden="true">{icon}</span> {words}</strong>'
    '<span class="cl-summary">{summary}</span><span class="cl-aside" title="{hint}">{aside}</span></div>'
)
