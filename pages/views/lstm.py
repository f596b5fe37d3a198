"""The LSTM cell page: one cell, one step, drawn, worked out four ways, and checked."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

import streamlit as st

from core.base.text import fill
from core.base.violation import FieldEdit, Severity
from core.inputs.cell_fields import FIELDS, PAGE
from core.inputs.cell_inputs import CellInputs
from core.inputs.cell_page import CellLook, look_at
from core.inputs.cell_source import source_changes
from pages.widgets.baseline_panel import baseline_panel
from pages.widgets.cards import Mark, field_marks, link_refusals, violation_cards
from pages.widgets.cell_breaks import break_row, says
from pages.widgets.cell_controls import cell_controls
from pages.widgets.cell_result import check_table, drawn_step, keep_in_range, number_table, shape_table
from pages.widgets.cell_verdict import cell_verdict
from pages.widgets.export_menu import strip_menus
from pages.widgets.frame import calm
from pages.widgets.pace import paced, paced_verdict, waiting_line
from pages.widgets.page_exports import cell_offers
from pages.widgets.state import PageState
from pages.widgets.verdict import State, Verdict, verdict_slots, verdict_strip
from pages.widgets.weights_panel import weights_panel
from pages.widgets.weights_state import file_for, weights_marks

LSTM_INTRO = (
    "A cell takes a carry and an input and gives a new carry and an output. An LSTM's carry is the pair (c, h): "
    "the gates say how much of c is kept, what is added to it, and how much of it shows as h."
)
INTROS = {
    "LSTMCell": LSTM_INTRO,
    "OptimizedLSTMCell": LSTM_INTRO,
    "GRUCell": "A cell takes a carry and an input and gives a new carry and an output. A GRU's carry is one array, h, "
    "and the output is the new h: r says how much of h goes into the candidate n, z how much of h is kept instead of n.",
    "SimpleCell": "A cell takes a carry and an input and gives a new carry and an output. A simple cell's carry is one "
    "array, h, and the output is the new h: tanh of the input and h, each through its weights. It has no gates.",
}


def page() -> None:
    """Read, look, draw."""
    slot, menus = verdict_slots()
    state = PageState(PAGE, lambda _: FIELDS)
    values = state.begin()
    inputs = CellInputs.of(values, file_for(PAGE, values))
    if not _known(inputs):
        verdict_strip(slot, Verdict(State.RUNNING))
    started = time.perf_counter()
    look = _look(inputs)
    took = (time.perf_counter() - started) * 1000
    good: CellLook | None = st.session_state.get(_GOOD)
    verdict_strip(slot, paced_verdict(cell_verdict(look, good, took)))
    shown = look if look.step is not None or look.raised is not None else good
    if shown is not None and shown.step is not None:
        keep_in_range(state, shown.step)
    link_refusals(state)
    left, right = st.columns([0.31, 0.69], gap="medium")
    output = right.container(key=f"{PAGE}_output")
    # What one looks at is sent first; all else has its place in the page already, and is filled in after it.
    with output, calm(f"{PAGE}:result"):
        above = st.container(key=f"{PAGE}_above")
        if shown is not None:
            drawn_step(state, shown, stale=shown is not look)
    strip_menus(menus, PAGE, cell_offers(look), pictures=False)
    with left, calm(f"{PAGE}:inputs"):
        cell_controls(state, inputs, _marks(look), look.program)
    with above, calm(f"{PAGE}:above"):
        _above(state, inputs, look)
    with output, calm(f"{PAGE}:result"):
        if shown is not None:
            _below(state, inputs, look, shown)
        baseline_panel(PAGE, inputs.values, file=inputs.file, ready=look.step is not None)


_LAST, _GOOD = f"{PAGE}:last", f"{PAGE}:good"


def _settled(inputs: CellInputs) -> CellInputs:
    """The inputs without what is merely looked at: another unit or example is the same step."""
    return replace(inputs, unit=0, example=0)


def _known(inputs: CellInputs) -> bool:
    last = st.session_state.get(_LAST)
    return last is not None and last.inputs == _settled(inputs)


def _look(inputs: CellInputs) -> CellLook:
    """What became of the inputs; kept from the last run when they are the same."""
    if _known(inputs):
        last: CellLook = st.session_state[_LAST]
        return last
    settled = _settled(inputs)
    waiting = CellLook(settled)
    if (look := paced(lambda: look_at(settled), lambda: waiting, first=_LAST not in st.session_state)) is waiting:
        return waiting
    st.session_state[_LAST] = look
    if look.step is not None:
        st.session_state[_GOOD] = look
    return look


def _marks(look: CellLook) -> dict[str, list[Mark]]:
    marks = field_marks(look.report)
    for problem in look.problems:
        marks.setdefault(f"{PAGE}_{problem.field}", []).append(Mark(Severity.ERROR, problem.text))
    marks.setdefault(f"{PAGE}_seed", []).extend(weights_marks(look.inputs))
    return marks


def _code_changes(inputs: CellInputs, edit: FieldEdit) -> tuple[tuple[str, str], ...]:
    return source_changes(inputs, CellInputs.of({**inputs.values, **edit.values}, inputs.file))


def _above(state: PageState, inputs: CellInputs, look: CellLook) -> None:
    st.html(f'<p class="cl-quiet">{fill(INTROS[inputs.cell])}</p>')
    break_row(state, inputs)
    waiting_line()
    if look.report is not None and (inputs.switched or look.report.broken):
        says(look.report, look.raised, look.step)
    violation_cards(look.report, state, fix_all=look.all_fixed, diff=partial(_code_changes, inputs))


def _below(state: PageState, inputs: CellInputs, look: CellLook, shown: CellLook) -> None:
    if shown.step is not None:
        columns = st.columns([0.4, 0.6], gap="medium")
        with columns[0]:
            check_table(shown.step)
        with columns[1]:
            shape_table(shown.step)
        number_table(shown.step, int(state.values["example"]))
    weights_panel(state, inputs, ready=look.step is not None)


page()
