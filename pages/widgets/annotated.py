"""What stands in for the code editor: a plain text area, and below it the code with faults and shapes at their lines.

For machines where the editor could not be built, and for people who prefer a plain text area. Also useful on its own:
`annotated_html` draws any checked code that is only to be read.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence

import streamlit as st

from core.base.text import fill
from pages.widgets.cards import ICON, WORD, badge, inline
from pages.widgets.diagnostic import Diagnostic, EditorEvent, one_line_ends

AREA = "Python code"
WITH_NOTES = "The code with its faults and shapes, line by line"
STALE = "Of the text before the last edit"
_AREA_HEIGHT = 300
#: Where the session keeps which revision the text area has been given.
_REVISION = "{key}:revision"


def annotated_editor(
    text: str,
    *,
    key: str,
    revision: int,
    diagnostics: Sequence[Diagnostic] = (),
    shapes: Sequence[tuple[int, str]] = (),
    placeholder: str = "",
    height: int = _AREA_HEIGHT,
    checked: str | None = None,
    label: str = "",
    read_only: bool = False,
    on_change: Callable[[], None] | None = None,
) -> EditorEvent:
    """The text area and the annotated code; arguments and result as of `code_editor`, only that `run` stays 0.

    The text arrives when the area is left or on Ctrl+Enter, which Streamlit does not tell apart.
    """
    st.session_state[key] = annotated_event(text, key=key, revision=revision).text
    st.session_state[_REVISION.format(key=key)] = revision
    area = st.text_area(
        label or AREA,
        key=key,
        height=min(height, _AREA_HEIGHT),
        placeholder=placeholder,
        disabled=read_only,
        label_visibility="collapsed",
        on_change=on_change,
    )
    st.html(_AREA_CSS.format(key=key))
    typed = one_line_ends(area or "")
    of = text if checked is None else checked
    if of.strip() and (diagnostics or shapes):
        st.html(annotated_html(of, diagnostics=diagnostics, shapes=shapes, stale=of != typed))
    return EditorEvent(typed, revision)


def annotated_event(text: str, *, key: str, revision: int) -> EditorEvent:
    """What is in the text area, or `text` where that is newer or nothing is drawn yet."""
    typed = st.session_state.get(key)
    known = isinstance(typed, str) and st.session_state.get(_REVISION.format(key=key)) == revision
    return EditorEvent(one_line_ends(typed) if known else text, revision)


def annotated_html(
    text: str,
    *,
    diagnostics: Sequence[Diagnostic] = (),
    shapes: Sequence[tuple[int, str]] = (),
    stale: bool = False,
) -> str:
    """Checked code as HTML, everything escaped: a list of numbered lines, each with its shapes and what is wrong in it.

    Args:
        text: the code.
        diagnostics: as of `code_editor`.
        shapes: as of `code_editor`.
        stale: the code has been edited since.
    """
    lines = text.split("\n")
    by_line: dict[int, list[Diagnostic]] = {}
    for one in diagnostics:
        by_line.setdefault(_within(one.span.line, lines), []).append(one)
    said: dict[int, list[str]] = {}
    for line, shape in shapes:
        said.setdefault(line, []).append(shape)
    items = "".join(
        _ITEM.format(
            number=number,
            code=_marked(line, by_line.get(number, [])) or "\u200b",
            shape=_shape(" · ".join(said.get(number, [])), by_line.get(number, [])),
            messages="".join(_message(one) for one in by_line.get(number, [])),
        )
        for number, line in enumerate(lines, 1)
    )
    css, note = ("cl-annotated cl-stale", f"<p>{fill(STALE)}</p>") if stale else ("cl-annotated", "")
    return f'<style>{_CSS}</style><figure class="{css}" aria-label="{fill(WITH_NOTES)}">{note}<ol>{items}</ol></figure>'


def _within(line: int, lines: Sequence[str]) -> int:
    return min(max(line, 1), len(lines))


def _marked(line: str, faults: Sequence[Diagnostic]) -> str:
    """A line of code with its faulty stretches marked; where two overlap, the first one's mark stays whole."""
    out, at = [], 0
    for start, end, one in sorted(_stretches(line, faults), key=lambda found: found[0]):
        if start < at:
            continue
        out += [
            html.escape(line[at:start]),
            _MARK.format(severity=one.severity.value, code=html.escape(line[start:end])),
        ]
        at = end
    return "".join([*out, html.escape(line[at:])])


def _stretches(line: str, faults: Sequence[Diagnostic]) -> Iterator[tuple[int, int, Diagnostic]]:
    for one in faults:
        span = one.span
        start = min(max(span.col, 0), len(line))
        end = len(line) if span.end_line > span.line else min(span.end_col, len(line))
        if end <= start:
            start, end = max(min(start, len(line) - 1), 0), min(start + 1, len(line))
        if end > start:
            yield start, end, one


def _shape(shape: str, faults: Sequence[Diagnostic]) -> str:
    if not shape:
        return ""
    for one in faults:
        before, differs, after = shape.partition(one.differs) if one.differs else (shape, "", "")
        if differs:
            marked = _DIFFERS.format(severity=one.severity.value, part=html.escape(differs))
            return f"<small>{html.escape(before)}{marked}{html.escape(after)}</small>"
    return f"<small>{html.escape(shape)}</small>"


def _message(one: Diagnostic) -> str:
    return _MESSAGE.format(
        severity=one.severity.value,
        icon=ICON[one.severity],
        word=fill(WORD[one.severity]),
        head=html.escape(" ".join(part for part in (badge(one.number) if one.number else "", one.code) if part)),
        text=inline(one.message),
    )


_ITEM = '<li value="{number}"><div><code>{code}</code>{shape}</div>{messages}</li>'
_MARK = '<span class="cl-squiggle cl-{severity}">{code}</span>'
_DIFFERS = '<b class="cl-{severity}">{part}</b>'
_MESSAGE = (
    '<p class="cl-{severity}"><span aria-hidden="true">{icon}</span><span class="cl-word">{word}</span> '
    "<b>{head}</b> {text}</p>"
)
_AREA_CSS = "<style>.st-key-{key} textarea {{ font: 0.86rem/1.55 var(--cl-mono); }}</style>"
_CSS = """
.cl-annotated { margin: 0; padding: 0.4rem 0; border: 1px solid var(--cl-line); border-radius: 8px; background: var(--cl-soft); }
.cl-annotated > p { margin: 0 0.8rem; font-size: 0.8rem; color: var(--cl-muted); }
.cl-annotated ol { margin: 0; padding: 0 0.8rem 0 3.2em; font: 0.82rem/1.6 var(--cl-mono); }
.cl-annotated li { margin: 0; padding: 0; font-size: inherit; }
.cl-annotated li::marker { color: var(--cl-muted); }
.cl-annotated li > div { display: flex; flex-wrap: wrap; justify-content: space-between; column-gap: 1.5rem; }
.cl-annotated code { padding: 0; font: inherit; color: inherit; background: none; white-space: break-spaces; overflow-wrap: anywhere; }
.cl-annotated small { margin-left: auto; min-width: 28%; padding-left: 0.7em; border-left: 1px solid var(--cl-line); color: var(--cl-muted); font-size: 0.92em; overflow-wrap: anywhere; }
.cl-annotated p.cl-error, .cl-annotated b.cl-error { --hue: var(--cl-bad); --tint: var(--cl-bad-bg); }
.cl-annotated p.cl-warning, .cl-annotated b.cl-warning { --hue: var(--cl-warn); --tint: var(--cl-warn-bg); }
.cl-annotated p.cl-note, .cl-annotated p.cl-limit, .cl-annotated b.cl-note, .cl-annotated b.cl-limit { --hue: var(--cl-note); --tint: var(--cl-note-bg); }
.cl-annotated li > p { margin: 0.1rem 0 0.25rem; padding: 0.3rem 0.7rem; border-left: 3px solid var(--hue); background: var(--tint); font: 0.86rem/1.45 "Source Sans", sans-serif; }
.cl-annotated li > p code { font: 0.95em var(--cl-mono); }
.cl-annotated li > p > span:first-child { color: var(--hue); font-weight: 700; }
.cl-annotated small b { color: var(--hue); }
.cl-annotated .cl-word { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.cl-squiggle { text-decoration: underline wavy 1.5px var(--cl-bad); text-underline-offset: 3px; text-decoration-skip-ink: none; }
.cl-squiggle.cl-warning { text-decoration-color: var(--cl-warn); }
.cl-squiggle.cl-note, .cl-squiggle.cl-limit { text-decoration: underline dotted 2px var(--cl-note); text-underline-offset: 3px; }
.cl-stale li > p, .cl-stale small { opacity: 0.5; }
.cl-stale .cl-squiggle { text-decoration: none; }
"""
