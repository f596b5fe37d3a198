"""Beneath the plot: final carries with and without a mask, and the layer worked out in other ways. Both come after it."""

from __future__ import annotations

import html
from collections.abc import Iterable

import streamlit as st

from core.base.sequences import Masking
from core.base.text import fill
from core.inputs.sequence_page import SequenceLook, check_slowly
from core.plots.cell_equations import brief
from core.plots.sequence_tables import (
    CheckRow,
    MaskRow,
    MaskTable,
    check_rows,
    mask_table,
    tolerance_text,
)
from core.runners.sequence_reference import SequenceChecks
from pages.widgets.frame import calm, section
from pages.widgets.sequence_result import chosen_of
from pages.widgets.sequence_verdict import not_finite
from pages.widgets.state import PageState
from pages.widgets.tables import scroll_box

MASKS, MASKS_HINT = "With and without a mask", "final carry of unit {unit}; red: moved by the padding"
NO_PADDING = "No step of this batch is padding. Turn one off in the grid, or make a length shorter."
CANNOT = "The layer takes the batch for time, so there is no padding to compare."
CHECKS, CHECKS_HINT = "Worked out in other ways", "the same numbers by other programs"
PADDING_CHECKS = "What the padding does"
ALL = "Check all {length} steps of the loop"
EXAMPLE, STEPS, END = "example", "{steps} of {length}", "after its last real step"
TOLD = {Masking.LENGTHS: "told its lengths", Masking.MASK: "told by a mask", Masking.NONE: "told"}
UNTOLD = "told nothing"
MOVED = "units moved by up to {largest}"
FINITE, YES, NO = "every number finite", "yes", "no"
TOLERANCE = "tolerance"
OK, BAD = "✓", "✗"
WRAP = "white-space: normal; overflow-wrap: anywhere"

_KEPT = "sequence:checks"


@st.fragment
def late_panels(state: PageState, look: SequenceLook) -> None:
    """Both panels, beside each other."""
    left, right = st.columns([0.54, 0.46], gap="medium")
    with left, calm("sequence masks"):
        _masks(state, look)
    with right, calm("sequence checks"):
        _checks(state, look)


# --- with and without a mask ----------------------------------------------------------------------------------------


def _masks(state: PageState, look: SequenceLook) -> None:
    if look.trial is None or look.result is None:
        return
    chosen = chosen_of(state, look.result)
    table = mask_table(look.trial, look.result, chosen)
    section(fill(MASKS), hint=fill(MASKS_HINT, unit=chosen.unit) if table else "")
    with st.container(border=True, key=state.key("masks_card")):
        if table is None:
            st.html(f'<p class="cl-quiet">{fill(CANNOT if look.trial.misread else NO_PADDING)}</p>')
        else:
            st.html(_mask_html(table))


def _mask_html(table: MaskTable) -> str:
    words = (fill(EXAMPLE), fill(END), fill(TOLD[table.by]), fill(UNTOLD))
    head = "".join(f"<th>{html.escape(word)}</th>" for word in words)
    body = "".join(_mask_row(table, row) for row in table.rows)
    return (
        f'{scroll_box(words)}<table class="cl-table cl-masks"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _mask_row(table: MaskTable, row: MaskRow) -> str:
    cells = (
        _values(table.parts, row.end, None, judged=False)
        + _values(table.parts, row.told, row.told_moves)
        + _values(table.parts, row.untold, row.untold_moves)
    )
    steps = fill(STEPS, steps=row.steps, length=table.length)
    return f'<tr><th scope="row">{row.example} <small class="cl-quiet">{steps}</small></th>{cells}</tr>'


def _values(parts: tuple[str, ...], texts: tuple[str, ...], moves: float | None, *, judged: bool = True) -> str:
    """Both parts of one way, in their colours; in the alarm colour, with a sign, where any unit moved."""
    sign = "" if not judged else fill(OK if moves is None else BAD)
    tone = "cl-ok" if moves is None else "cl-no"
    mark = f' <b class="{tone}">{sign}</b>' if sign else ""
    lines = [
        f'<span class="{"cl-no" if moves is not None else f"cl-role-{part}"}">{part} = {text}{"" if i else mark}</span>'
        for i, (part, text) in enumerate(zip(parts, texts, strict=True))
    ]
    more = "" if moves is None else f'<div class="cl-no"><small>{fill(MOVED, largest=brief(moves))}</small></div>'
    return f'<td class="cl-mono">{"<br>".join(lines)}{more}</td>'


# --- checks ---------------------------------------------------------------------------------------------------------


def _checks(state: PageState, look: SequenceLook) -> None:
    section(fill(CHECKS), hint=fill(CHECKS_HINT))
    checks = _checked(look)
    if checks is None or look.result is None:
        return
    finite = not not_finite(look.result)
    rows = [*check_rows(checks, padding=False), CheckRow(fill(FINITE), fill(YES if finite else NO), finite)]
    about = check_rows(checks, padding=True)
    with st.container(border=True, key=state.key("checks_card")):
        tolerance = f'<tr><th scope="row">{fill(TOLERANCE)}</th><td class="cl-mono" colspan="2">{tolerance_text(checks)}</td></tr>'
        more = (
            f'<tr><th scope="rowgroup" colspan="3" class="cl-group">{fill(PADDING_CHECKS)}</th></tr>{_rows(about)}'
            if about
            else ""
        )
        st.html(f'<table class="cl-table cl-checks"><tbody>{_rows(rows)}{tolerance}{more}</tbody></table>')
        if not checks.complete:
            st.button(fill(ALL, length=checks.length), key=state.key("check_all"), on_click=_check, args=(look, None))


def _rows(rows: Iterable[CheckRow]) -> str:
    return "".join(
        f'<tr><th scope="row">{html.escape(row.name)}{_more(row.more)}</th>'
        f'<td class="cl-mono" style="{WRAP}">{html.escape(row.result)}</td><td>{_sign(row.agrees)}</td></tr>'
        for row in rows
    )


def _more(text: str) -> str:
    return f'<div class="cl-quiet">{html.escape(text)}</div>' if text else ""


def _sign(agrees: bool | None) -> str:
    if agrees is None:
        return ""
    return f'<span class="cl-ok">{OK}</span>' if agrees else f'<span class="cl-no">{BAD}</span>'


def _checked(look: SequenceLook) -> SequenceChecks | None:
    """The checks of this very run, kept until another one is shown."""
    kept = st.session_state.get(_KEPT)
    if kept is None or kept[0] is not look.result:
        _check(look)
        kept = st.session_state[_KEPT]
    checks: SequenceChecks | None = kept[1]
    return checks


def _check(look: SequenceLook, *steps: int | None) -> None:
    st.session_state[_KEPT] = (look.result, check_slowly(look, *steps))
