"""The Gradients page: what cells remember of their inputs, the gradient of a scan, one update of a model."""

from __future__ import annotations

from functools import partial

import streamlit as st

from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.base.violation import FieldEdit
from core.inputs.gradient_fields import CELLS, FIELDS, PAGE, PRESET
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import program_of
from core.inputs.gradient_scan import code_changes
from pages.widgets import gradient_scan as scan
from pages.widgets import gradient_training as training
from pages.widgets.baseline_panel import baseline_panel
from pages.widgets.cards import link_refusals, undo_line, violation_cards
from pages.widgets.export_menu import strip_menus
from pages.widgets.frame import calm
from pages.widgets.gradient_cells import (
    keep_in_range,
    try_row,
)
from pages.widgets.gradient_controls import cell_controls, code_panel, sliders, view_choice
from pages.widgets.gradient_result import plots, rest
from pages.widgets.gradient_state import Shown, gradient_style, hide_undrawn, known, marks_of, shown
from pages.widgets.gradient_verdict import verdict_of
from pages.widgets.lesson_facts import tell_report
from pages.widgets.pace import paced_verdict, waiting_line
from pages.widgets.page_exports import gradient_offers
from pages.widgets.state import PageState
from pages.widgets.verdict import State, Verdict, verdict_slots, verdict_strip

CELLS_INTRO = (
    "Which input does the result still remember? A small change of an early input is handed from step to step and "
    "multiplied each time: by less than 1 it vanishes, by more than 1 it explodes."
)
SCAN_INTRO = "A scan is differentiated like any function: backwards, from the last step to the first, and then init."


def page() -> None:
    """Read, look, draw; then compare."""
    gradient_style()
    slot, menus = verdict_slots()
    state = PageState(PAGE, lambda _: FIELDS)
    inputs = GradientInputs.of_values(state.begin())
    if not known(inputs):
        verdict_strip(slot, Verdict(State.RUNNING))
    now = shown(inputs)
    verdict_strip(slot, paced_verdict(verdict_of(now)))
    if now.good is not None and now.good.cells is not None:
        keep_in_range(state, now.good.cells)
    hide_undrawn(state, inputs, results=now.good is not None)
    link_refusals(state)
    view_choice(state)
    left, right = st.columns([0.29, 0.71], gap="medium")
    output = right.container(key="gradients_output", gap="xsmall")
    # What one looks at is sent first; all else has its place in the page already, and is filled in after it.
    with output, calm(f"{PAGE}:result"):
        above = st.container(key="gradients_above", gap="xsmall")
        results = st.container(key="gradients_stale" if now.stale else "gradients_shown", gap="xsmall")
        if now.good is not None:
            with results:
                plots(state, inputs, now.good)
    strip_menus(menus, PAGE, gradient_offers(now.look, inputs.row))
    with left.container(key="gradients_inputs", gap="xsmall"), calm(f"{PAGE}:inputs"):
        _inputs(state, inputs, now)
    with above, calm(f"{PAGE}:above"):
        _above(state, inputs, now)
    with output, calm(f"{PAGE}:result"):
        if now.good is not None:
            with results:
                rest(inputs, now.good)
        baseline_panel(PAGE, dict(state.values), ready=now.look.ran)
    verdict_strip(slot, paced_verdict(verdict_of(now)))


def _inputs(state: PageState, inputs: GradientInputs, now: Shown) -> None:
    marks = marks_of(now.look)
    if inputs.of == CELLS:
        cell_controls(state, inputs, marks)
    elif inputs.of == PRESET:
        scan.scan_controls(state, marks)
    else:
        training.training_controls(state, inputs, marks)
    code_panel(program_of(now.look))


def _above(state: PageState, inputs: GradientInputs, now: Shown) -> None:
    """What the view is about, what can be tried, what is broken."""
    intro = {CELLS: CELLS_INTRO, PRESET: SCAN_INTRO}.get(inputs.of, training.INTRO)
    st.html(f'<p class="cl-quiet">{fill(intro)}</p>')
    waiting_line()
    if inputs.of == CELLS:
        try_row(state)
        sliders(state, marks_of(now.look))
        tell_report(state, now.look.report or (Report(Outcome.OK) if now.look.cells is not None else None))
        return
    if inputs.of == PRESET:
        scan.break_row(state)
    else:
        training.break_row(state)
    undo_line(state)
    violation_cards(now.look.report, state, undo=False, diff=partial(_code_changes, inputs))


def _code_changes(inputs: GradientInputs, edit: FieldEdit) -> tuple[tuple[str, str], ...]:
    return code_changes(edit, inputs.preset)


with calm(f"{PAGE} page"):
    page()
