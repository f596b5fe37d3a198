"""The right side of the Doctor: cards with fixes to apply, what may be made up, what was printed, what an error means."""

from __future__ import annotations

import html
import re

import streamlit as st

from core.base.text import fill
from core.base.violation import FieldEdit
from core.doctor import stand_in
from core.doctor.answer import Answer, StandIn, Wish
from core.doctor.prep import Kind
from pages.widgets.cards import escape, inline, page_of, rule_of, violation_cards
from pages.widgets.doctor_check import Look
from pages.widgets.doctor_shown import Shown, changed_lines
from pages.widgets.doctor_state import DoctorState
from pages.widgets.frame import section
from pages.widgets.lesson_facts import tell_report

FIXES_COMING = "Fixes are being tried: each is applied and the whole check run again before it is shown."
FIXES_BROKEN_OFF = "There was no time to try its fixes; Run tries again."
FIXES_CUT = "There was no time to try all of its fixes; Run tries again."
FIXES_ON_RUN = "Run tries fixes, and measures on your numbers."
RAISED_TITLE = "It raised {type}, which no rule explains"
UNREADABLE_TITLE = "Python cannot read this"
NO_CODE_TITLE = "There is no code in it"
PRINTED, PRINTED_CUT = "What it printed", "What it printed, as much as is kept"
STAND_INS = "Not here, and can be made up"
STAND_INS_HINT = "random numbers, so that the rest can be checked"
SHAPE, DTYPE, SEED, USE = "shape", "dtype", "seed", "Put it in"
STOOD_IN = "a stand-in for {name}"
BAD_SHAPE = "A shape is whole numbers with commas between them: 8, 3"
CANNOT = "That could not be put in; nothing was changed."
SKIPPED = "Not looked at without values: {lines}. Run looks at them."
ONE_LINE, SOME_LINES = "line {lines}", "lines {lines}"
#: Pixels of what was printed before it scrolls.
_PRINTED_HEIGHT = 240
#: Stand-ins that are offered at once.
_MOST_STAND_INS = 4
_READING = frozenset({"SyntaxError", "IndentationError", "TabError"})

_SAID = "doctor:stand_in_said"


def cards(state: DoctorState, look: Look, now: Shown) -> None:
    """All that was found, worst first."""
    answer = look.answer
    matched = answer is not None and answer.kind is Kind.ERROR and answer.matched is not None
    report = None if matched else now.report
    # What only shapes were looked at of is not mended yet: it was not run.
    checked = report is not None and not now.stale and answer is not None
    ran = checked and answer is not None and (bool(report and report.broken) or answer.wish is not Wish.SHAPES)
    tell_report(state, report if ran else None)
    with st.container(key="doctor_cards_stale" if now.stale else "doctor_cards"):
        violation_cards(
            report,
            state,
            fix_all=now.fix_all,
            undo=False,
            diff=lambda edit: _diff(state, answer, edit),
            waiting=_waiting(look),
            raw_title=_raw_title(answer),
            primary=False,
            tell=False,
        )


def _waiting(look: Look) -> str:
    if look.answer is None:
        return ""
    if look.answer.cut:
        return fill(FIXES_CUT)
    if look.answer.fixed:
        return ""
    if look.unfixed:
        return fill(FIXES_BROKEN_OFF)
    if look.job is not None and look.job.wish is Wish.FIXES:
        return fill(FIXES_COMING)
    return fill(FIXES_ON_RUN) if look.answer.wish is Wish.SHAPES else ""


def _raw_title(answer: Answer | None) -> str:
    error = None if answer is None else answer.report.error
    if error is None or answer is None:
        return ""
    if answer.kind in (Kind.EMPTY, Kind.TEXT, Kind.ERROR):
        return fill(NO_CODE_TITLE)
    return fill(UNREADABLE_TITLE) if error.type in _READING else fill(RAISED_TITLE, type=error.type)


def _diff(state: DoctorState, answer: Answer | None, edit: FieldEdit) -> tuple[tuple[str, str], ...]:
    values = state.values
    before = {name: str(values[name]) for name in ("step", "init", "xs")}
    # Fixes are of the script in the paste: without its prompts and fences.
    before["text"] = answer.script if answer is not None else ""
    return changed_lines(edit, before, {name: field.label for name, field in state.labels.items()})


# --- an error alone -------------------------------------------------------------------------------------------------


def error_explained(look: Look) -> None:
    """Of a pasted error text: the code it belongs to, and that code's page."""
    answer = look.answer
    if answer is None or answer.kind is not Kind.ERROR or answer.matched is None:
        return
    code, sentence = answer.matched
    rule = rule_of(code)
    with st.container(border=True, key="doctor_card_note_matched"):
        st.html(f'<p class="cl-quiet">{inline(sentence)}</p>')
        if rule is not None and rule.page:
            st.markdown(page_of(rule))


# --- what may be made up --------------------------------------------------------------------------------------------


def stand_in_forms(state: DoctorState, look: Look) -> None:
    """For each thing that is not here a small form; what it puts in is an edit like any other, with its undo."""
    answer = look.answer
    said = st.session_state.pop(_SAID, "")
    if answer is None or not answer.stand_ins or state.mode != "script":
        return
    section(fill(STAND_INS), hint=fill(STAND_INS_HINT))
    if said:
        st.warning(escape(said))
    for number, one in enumerate(answer.stand_ins[:_MOST_STAND_INS]):
        with st.form(f"doctor_stand_in_{number}", border=True):
            st.html(f'<p class="cl-matched">{inline(one.reason)}</p>')
            shape, dtype, seed, use = st.columns([0.34, 0.26, 0.16, 0.24], vertical_alignment="bottom", gap="small")
            shape.text_input(fill(SHAPE), ", ".join(map(str, one.shape)), key=f"doctor_stand_in_shape_{number}")
            options = list(stand_in.DTYPES)
            at = options.index(one.dtype) if one.dtype in options else 0
            dtype.selectbox(fill(DTYPE), options, at, key=f"doctor_stand_in_dtype_{number}")
            seed.number_input(fill(SEED), 0, 9999, 0, key=f"doctor_stand_in_seed_{number}")
            use.form_submit_button(
                fill(USE), key=f"doctor_stand_in_use_{number}", on_click=_stand_in, args=(state, answer, one, number)
            )


def _stand_in(state: DoctorState, answer: Answer, one: StandIn, number: int) -> None:
    get = st.session_state.get
    shape = read_shape(str(get(f"doctor_stand_in_shape_{number}", "")))
    if shape is None:
        st.session_state[_SAID] = fill(BAD_SHAPE)
        return
    dtype, seed = str(get(f"doctor_stand_in_dtype_{number}")), int(get(f"doctor_stand_in_seed_{number}", 0))
    try:
        text = stand_in.apply(answer.script, one, shape, dtype, seed)
    except Exception:  # noqa: BLE001  # whatever a stranger's script makes of it, the page says so and keeps the text
        st.session_state[_SAID] = fill(CANNOT)
        return
    state.edit(FieldEdit({"text": text}), fill(STOOD_IN, name=one.name))


def read_shape(text: str) -> tuple[int, ...] | None:
    """``(8, 3)``, ``8, 3`` or ``8 3``; None for anything else."""
    parts = re.fullmatch(r"\s*[(\[]?\s*((?:\d{1,6}\s*[, ]?\s*)*)[)\]]?\s*", text, re.ASCII)
    return None if parts is None else tuple(int(n) for n in re.findall(r"\d+", parts[1]))


# --- the rest -------------------------------------------------------------------------------------------------------


def printed(look: Look) -> None:
    """Its output, and the lines that only a run looks at."""
    answer = look.answer
    if answer is None:
        return
    if answer.skipped and answer.wish is Wish.SHAPES:
        lines = ", ".join(map(str, answer.skipped))
        st.caption(fill(SKIPPED, lines=fill(ONE_LINE if len(answer.skipped) == 1 else SOME_LINES, lines=lines)))
    if answer.stdout:
        section(fill(PRINTED_CUT if answer.stdout_cut else PRINTED))
        css = f"max-height:{_PRINTED_HEIGHT}px"
        st.html(f'<pre class="cl-code-block cl-printed" style="{css}">{html.escape(answer.stdout)}</pre>')
