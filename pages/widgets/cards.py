"""Violation cards: what is wrong, why, the proof, and fixes that were tried; and the short mark under an input.

Use in a view::

    violation_cards(report, state, fix_all=engine.fix_all(call, bench))
    ...
    marks = field_marks(report)
    draw_marks(marks, state.key("init"))       # under the widget with that key
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st

from core.base.outcome import RawError, Report
from core.base.places import Field, Place, Span
from core.base.text import fill
from core.base.violation import FieldEdit, Fix, Proof, Severity, Violation
from core.contract.rule import Rule, all_rules
from pages.widgets.lesson_facts import tell_report
from pages.widgets.state import PageState

ICON = {Severity.ERROR: "✗", Severity.WARNING: "⚠", Severity.LIMIT: "⊘", Severity.NOTE: "ℹ"}
WORD = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.LIMIT: "limit", Severity.NOTE: "note"}
SILENT = "JAX is silent"
APPLY = "Apply: {title} (checked: {checked})"
APPLY_ALL = "Apply all (checked: runs clean)"
GONE = "{code} gone"
GONE_AT = "{code} at {path} gone"
GONE_HERE = "this {code} gone"
ANOTHER = "another {code}"
REMAINS = ", {codes} remains"
REMAIN = ", {codes} remain"
EXPECTED, GOT = "expected", "got"
LEAF, TYPE, WEAK = "leaf", "type", "weak type"
AT_FIELD = "at “{label}”"
AT_LINE = "line {line}"
BECAUSE_AT = "{text} (“{label}”)"
BECAUSE_AT_LINE = "Line {line}: {text}"
PROOF = "JAX: no error. Carry Lab: wrong, because this number moved."
PROOF_NOTE = "JAX: no error. Carry Lab: look at this number."
PROOF_BEFORE = "now {before}"
PROOF_AFTER = "after the fix {after}"
PROOF_EXPECTED = "when the contract is kept {expected}"
ONE_NOTE, SOME_NOTES = "1 note: {titles}", "{n} notes: {titles}"
WHY = "Why"
PAGE = "#### {code}: {page}"
JAX_SAID = "What JAX said"
RAW_TITLE = "JAX raised an error that no rule explains"
RAW_OPERANDS = "operands: {operands}"

#: What an edit changes, as marked lines (``("−", "x = 1")``), where a page can say it better than by its inputs.
type Diff = Callable[[FieldEdit], tuple[tuple[str, str], ...]]

#: Those that common fonts have: what comes after ⑩ is an empty box on many machines.
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩"
_SHOWN = 120


def badge(number: int) -> str:
    """The number of a fault, the same on its card and under its input; counts from 1."""
    return _CIRCLED[number - 1] if number <= len(_CIRCLED) else f"({number})"


# --- cards ----------------------------------------------------------------------------------------------------------


def violation_cards(
    report: Report | None,
    state: PageState,
    *,
    fix_all: Fix | None = None,
    undo: bool = True,
    diff: Diff | None = None,
    waiting: str = "",
    raw_title: str = "",
    primary: bool = True,
    tell: bool = True,
) -> None:
    """All cards of a report, in the container with key ``violations``, with the line that undoes the last fix.

    Args:
        report: None when nothing was checked yet: only the undo line is drawn.
        state: the page's inputs: a fix's `FieldEdit` is written into it, by field name.
        fix_all: the verified edit that mends everything; drawn once, under the cards.
        undo: draw the undo line here too; a page that wants it elsewhere calls `undo_line`.
        diff: the lines that show what a fix changes; the inputs it changes where this is None or gives none.
        waiting: what stands where a fault's fixes would, while they are being tried; "" for nothing.
        raw_title: over an exception that no rule explains, in the page's own words.
        primary: whether "Apply all" may be the page's one primary button.
        tell: whether a lesson hears of this report; a page that knows better tells it itself.
    """
    if tell:
        tell_report(state, report)
    with st.container(key="violations"):
        if undo:
            undo_line(state)
        if report is None:
            return
        notes = []
        for number, violation in enumerate(report.violations, 1):
            if violation.severity is Severity.NOTE:
                notes.append((number, violation))
            else:
                _card(number, violation, state, diff, waiting)
        if report.error is not None:
            with st.container(border=True, key=f"{state.page}_card_error_raw"):
                st.html(_raw_html(report.error, raw_title or fill(RAW_TITLE)))
        if fix_all is not None and isinstance(fix_all.edit, FieldEdit):
            st.button(
                fill(APPLY_ALL),
                key=f"{state.page}_apply_all",
                type="primary" if primary else "secondary",
                on_click=state.edit,
                args=(fix_all.edit, fix_all.title),
            )
        _notes(notes, state, diff)


def _notes(notes: list[tuple[int, Violation]], state: PageState, diff: Diff | None = None) -> None:
    """Worth knowing, and in nobody's way: one closed line, open on demand."""
    if not notes:
        return
    titles = ", ".join(f"{violation.code} {_title(violation)}" for _, violation in notes)
    label = fill(ONE_NOTE if len(notes) == 1 else SOME_NOTES, n=len(notes), titles=escape(titles))
    with st.expander(label, icon=":material/info:", key=f"{state.page}_notes"):
        for number, violation in notes:
            _card(number, violation, state, diff)


def _title(violation: Violation) -> str:
    rule = rule_of(violation.code)
    return violation.title or (rule.title if rule is not None else violation.name)


def undo_line(state: PageState) -> None:
    """What the last button did, and the button that takes it back."""
    undo = state.undo
    if undo is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key=f"{state.page}_undo_line"):
        css = "cl-done" if undo.good else "cl-undone"
        st.html(f'<span class="{css}" role="status">{html.escape(undo.said)}</span>')
        st.button(escape(undo.button), key=f"{state.page}_undo", on_click=state.undo_last)


def _card(number: int, violation: Violation, state: PageState, diff: Diff | None = None, waiting: str = "") -> None:
    with st.container(border=True, key=f"{state.page}_card_{violation.severity.value}_{number}"):
        st.html(_card_html(number, violation))
        if waiting and not violation.fixes:
            st.html(f'<p class="cl-waiting">{html.escape(waiting)}</p>')
        for index, fix in enumerate(violation.fixes):
            if isinstance(fix.edit, FieldEdit):
                _fix(fix, fix.edit, violation, state, key=f"{state.page}_apply_{number}_{index}", diff=diff)
        _foot(number, violation, state)


def _fix(
    fix: Fix, edit: FieldEdit, violation: Violation, state: PageState, *, key: str, diff: Diff | None = None
) -> None:
    lines = diff(edit) if diff is not None else ()
    st.html(_lines_html(lines) if lines else _diff_html(state.changes(edit)))
    st.button(
        escape(fill(APPLY, title=fix.title, checked=checked(fix, violation))),
        key=key,
        on_click=state.edit,
        args=(edit, fix.title),
    )


def _foot(number: int, violation: Violation, state: PageState) -> None:
    rule = rule_of(violation.code)
    with st.container(gap=None, key=f"{state.page}_card_foot_{number}"):
        if rule is not None and rule.page:
            # Opens within the card: a popover would lie on what it explains.
            with st.expander(fill(WHY), type="compact", key=f"{state.page}_why_{number}"):
                st.markdown(page_of(rule))
        if violation.jax_said:
            st.html(_details(fill(JAX_SAID), violation.jax_said))


def rule_of(code: str) -> Rule | None:
    """The rule with this code; its `page` is the catalogue page in Markdown."""
    return next((rule for rule in all_rules() if rule.code == code), None)


def page_of(rule: Rule) -> str:
    """The catalogue page of a rule as Markdown under its title; names with double underscores are code, not bold."""
    parts = re.split(r"(``[^`]+``|`[^`]+`|^ {4}.*$)", rule.page, flags=re.MULTILINE)
    parts[::2] = [re.sub(r"[\w.]*__\w+__\w*", r"`\g<0>`", part) for part in parts[::2]]
    return fill(PAGE, code=rule.code, page="".join(parts))


def checked(fix: Fix, violation: Violation) -> str:
    """What the check found after the fix: ``S104 gone, L301 remains``."""
    code, path = violation.code, violation.path
    if code not in fix.remaining:
        gone = fill(GONE, code=code)
    else:
        gone = fill(GONE_AT, code=code, path=path) if path else fill(GONE_HERE, code=code)
    if not fix.remaining:
        return gone
    rest = [other if other != code or path else fill(ANOTHER, code=code) for other in fix.remaining]
    return gone + fill(REMAINS if len(rest) == 1 else REMAIN, codes=", ".join(rest))


# --- HTML of a card (everything in it is escaped) -------------------------------------------------------------------


def _card_html(number: int, violation: Violation) -> str:
    severity = violation.severity
    silent = violation.silent and severity in (Severity.ERROR, Severity.WARNING)
    head = [
        f'<span class="cl-code">{badge(number)} {violation.code}</span>',
        f'<span class="cl-severity"><span aria-hidden="true">{ICON[severity]}</span> {fill(WORD[severity])}</span>',
        f'<span class="cl-silent">{fill(SILENT)}</span>' if silent else "",
        f'<span class="cl-place">{html.escape(_where(violation.place))}</span>',
    ]
    because = violation.because
    parts = [
        f'<div class="cl-head">{"".join(head)}</div>',
        f'<div class="cl-title">{html.escape(_title(violation))}</div>',
        f'<p class="cl-message">{inline(violation.message)}</p>',
        _proof_html(violation.proof, severity) if violation.proof else "",
        _types_html(violation),
        f'<p class="cl-because">{inline(_second_place(because.text, because.place))}</p>' if because else "",
        f'<p class="cl-why">{inline(violation.why)}</p>',
    ]
    return f'<section class="cl-card cl-{severity.value}">{"".join(parts)}</section>'


def inline(text: str) -> str:
    """A sentence as HTML: escaped, what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _where(place: Place | None) -> str:
    match place:
        case Field(label=label):
            return fill(AT_FIELD, label=label)
        case Span(line=line):
            return fill(AT_LINE, line=line)
        case _:
            return ""


def _second_place(text: str, place: Place | None) -> str:
    match place:
        case Field(label=label):
            return fill(BECAUSE_AT, text=text, label=label)
        case Span(line=line):
            return fill(BECAUSE_AT_LINE, text=text, line=line)
        case _:
            return text


def _types_html(violation: Violation) -> str:
    rows = [(fill(EXPECTED), "", leaf) for leaf in violation.expected]
    rows += [(fill(GOT), "cl-got", leaf) for leaf in violation.got]
    if not rows:
        return ""
    weak = any(leaf.aval is not None and leaf.aval.weak for _, _, leaf in rows)
    head = f'<tr><td></td><th scope="col">{fill(LEAF)}</th><th scope="col">{fill(TYPE)}</th></tr>'
    body = "".join(
        f'<tr class="{css}"><th scope="row">{word}</th><td>{html.escape(leaf.path)}</td>'
        f"<td>{html.escape(str(leaf))}{_weak(leaf.aval is not None and leaf.aval.weak, weak)}</td></tr>"
        for word, css, leaf in rows
    )
    return f'<table class="cl-types"><thead>{head}</thead><tbody>{body}</tbody></table>'


def _weak(is_weak: bool, any_weak: bool) -> str:
    return f" ({fill(WEAK)})" if is_weak and any_weak else ""


def _proof_html(proof: Proof, severity: Severity) -> str:
    opening = fill(PROOF_NOTE if severity is Severity.NOTE else PROOF)
    numbers = [f'<b class="cl-before">{fill(PROOF_BEFORE, before=number(proof.before))}</b>']
    if proof.after is not None:
        numbers.append(f'<b class="cl-after">{fill(PROOF_AFTER, after=number(proof.after))}</b>')
    else:
        numbers.append(f'<b class="cl-after">{fill(PROOF_EXPECTED, expected=number(proof.expected))}</b>')
    return (
        f'<div class="cl-proof"><b>{html.escape(opening)}</b> {inline(proof.claim)} '
        f'<span class="cl-moved">{" → ".join(numbers)}</span></div>'
    )


def _diff_html(changes: tuple[tuple[str, str, str], ...]) -> str:
    lines = "".join(
        f"<div><del>− {html.escape(label)}: {html.escape(_short(old))}</del></div>"
        f"<div><ins>+ {html.escape(label)}: {html.escape(_short(new))}</ins></div>"
        for label, old, new in changes
    )
    return f'<div class="cl-diff">{lines}</div>'


def _lines_html(lines: tuple[tuple[str, str], ...]) -> str:
    body = "".join(_LINE[mark].format(mark=mark, line=html.escape(line)) for mark, line in lines)
    return f'<div class="cl-diff">{body}</div>'


_LINE = {
    "−": "<div><del>{mark} {line}</del></div>",
    "+": "<div><ins>{mark} {line}</ins></div>",
    " ": "<div>{mark} {line}</div>",
}


def _raw_html(error: RawError, title: str) -> str:
    operands = fill(RAW_OPERANDS, operands=", ".join(error.operands)) if error.operands else ""
    return (
        f'<section class="cl-card cl-error"><div class="cl-head"><span class="cl-severity">'
        f'<span aria-hidden="true">✗</span> {fill(WORD[Severity.ERROR])}</span>'
        f'<span class="cl-place">{html.escape(_where(error.place))}</span></div>'
        f'<div class="cl-title">{html.escape(title)}</div>'
        f'<pre class="cl-said">{html.escape(error.type)}: {html.escape(error.message)}</pre>'
        f'<p class="cl-because">{html.escape(operands)}</p></section>'
    )


def _details(title: str, text: str) -> str:
    return f'<details class="cl-details"><summary>{title}</summary><pre>{html.escape(text)}</pre></details>'


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def number(value: float) -> str:
    """A number for reading: four significant digits, no trailing zeros, a real minus."""
    return f"{value:.4g}".replace("-", "−")


def escape(text: str) -> str:
    """Text as it is, for a label that Streamlit reads as Markdown."""
    return re.sub(r"([\\`*_\[\]$~<]|:(?=\w))", r"\\\1", text)


def link_refusals(state: PageState) -> None:
    """What the link said and the page could not have, by name; gone once something is changed."""
    marks = [Mark(Severity.WARNING, sentence) for sentence in state.refused]
    if state.link_problem:
        marks.append(Mark(Severity.NOTE, state.link_problem))
    if marks:
        with st.container(key=f"{state.page}_link_refusals"):
            st.html("".join(_mark_html(mark) for mark in marks))


# --- marks under inputs ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mark:
    """A short line under an input: the number and code of a fault, or a problem with what was typed.

    `mend`: the words on a button under it, and what that sets.
    """

    severity: Severity
    text: str
    code: str = ""
    number: int = 0
    mend: tuple[str, FieldEdit] | None = None


def field_marks(report: Report | None) -> dict[str, list[Mark]]:
    """The marks of a report by widget key, at both places of a fault: what is wrong, and what it was measured against.

    A note that asks for nothing (it has no fix) has its card only.
    """
    marks: dict[str, list[Mark]] = {}
    for count, violation in enumerate(report.violations if report else (), 1):
        if violation.severity is Severity.NOTE and not violation.fixes:
            continue
        if isinstance(violation.place, Field):
            mark = Mark(violation.severity, violation.message, violation.code, count)
            marks.setdefault(violation.place.key, []).append(mark)
        second = violation.because
        if second is not None and isinstance(second.place, Field) and second.place != violation.place:
            mark = Mark(violation.severity, second.text, violation.code, count)
            marks.setdefault(second.place.key, []).append(mark)
    return marks


def draw_marks(marks: Mapping[str, list[Mark]], *keys: str) -> None:
    """The marks of these widget keys, where you are."""
    found = [mark for key in keys for mark in marks.get(key, ())]
    if found:
        st.html("".join(_mark_html(mark) for mark in found))


def _mark_html(mark: Mark) -> str:
    code = f"{badge(mark.number)} {mark.code} " if mark.code else ""
    return (
        f'<div class="cl-mark cl-{mark.severity.value}" role="alert"><span aria-hidden="true">{ICON[mark.severity]}'
        f"</span> <b>{code}</b>{inline(mark.text)}</div>"
    )
