"""The Sequence page: a recurrent layer over a ragged batch, its carry over time, and what padding does to it."""

from __future__ import annotations

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.base.text import fill
from core.base.violation import FieldEdit, Severity
from core.inputs.sequence_breaks import on
from core.inputs.sequence_compare import Comparison
from core.inputs.sequence_fields import PAGE, sequence_fields, sequence_link_fields
from core.inputs.sequence_follow import follow
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_page import SequenceLook, look_at
from core.inputs.sequence_source import source_changes
from pages.widgets.baseline_panel import baseline_panel
from pages.widgets.cards import Mark, field_marks, link_refusals, violation_cards
from pages.widgets.export_menu import strip_menus
from pages.widgets.frame import calm, section
from pages.widgets.pace import paced, paced_verdict, waiting_line
from pages.widgets.page_exports import sequence_offers
from pages.widgets.parting_panel import parting_of_layer
from pages.widgets.sequence_breaks import break_row
from pages.widgets.sequence_controls import SequenceControls
from pages.widgets.sequence_extras import code_panel, compare_panel, second_run
from pages.widgets.sequence_panels import late_panels
from pages.widgets.sequence_result import drawn_layer, equation_card, keep_in_range
from pages.widgets.sequence_verdict import says, sequence_verdict
from pages.widgets.state import PageState
from pages.widgets.verdict import State, Verdict, verdict_slots, verdict_strip
from pages.widgets.weights_panel import weights_panel
from pages.widgets.weights_state import file_for, weights_marks

INTRO = (
    "A layer runs one cell over every example of a batch, step by step, and hands its carry along. Examples differ in "
    "length, so the short ones are padded, and the layer has to be told."
)
PARTING, PARTING_HINT = "Where paths part", "eager, loop, jit and more"

_LAST, _GOOD = f"{PAGE}:last", f"{PAGE}:good"


def page() -> None:
    """Read, look, draw."""
    slot, menus = verdict_slots()
    state = PageState(PAGE, sequence_fields, link_table=sequence_link_fields, follow=follow)
    values = state.begin()
    inputs = SequenceInputs.of(values, file_for(PAGE, values))
    if not _known(inputs):
        verdict_strip(slot, Verdict(State.RUNNING))
    look = _look(inputs)
    good: SequenceLook | None = st.session_state.get(_GOOD)
    verdict_strip(slot, paced_verdict(sequence_verdict(look, good)))
    shown = look if look.result is not None or look.raised is not None else good
    if shown is not None and shown.result is not None:
        keep_in_range(state, shown.result)
    link_refusals(state)
    second = None if shown is None else second_run(inputs, shown)
    left, right = st.columns([0.29, 0.71], gap="medium")
    output = right.container(key=f"{PAGE}_output")
    # What one looks at is sent first; all else has its place in the page already, and is filled in after it.
    with output, calm(f"{PAGE}:result"):
        # One box, so that grid and plot keep their place when cards come and go: they are not made anew.
        above = st.container(key=f"{PAGE}_above")
        if shown is not None:
            drawn_layer(state, inputs, shown, second, stale=shown is not look)
    strip_menus(menus, PAGE, sequence_offers(look))
    with left, calm(f"{PAGE}:inputs"):
        SequenceControls(state, inputs, _marks(look, second)).draw()
    with output, calm(f"{PAGE}:result"):
        _rest(above, state, inputs, look, shown, second)
        baseline_panel(PAGE, inputs.values, file=inputs.file, ready=look.result is not None)


def _known(inputs: SequenceInputs) -> bool:
    last = st.session_state.get(_LAST)
    return last is not None and last.inputs == inputs.run


def _look(inputs: SequenceInputs) -> SequenceLook:
    """What became of the inputs; kept from the last run when they are the same."""
    if _known(inputs):
        last: SequenceLook = st.session_state[_LAST]
        return last
    waiting = SequenceLook(inputs.run)
    if (look := paced(lambda: look_at(inputs.run), lambda: waiting, first=_LAST not in st.session_state)) is waiting:
        return waiting
    st.session_state[_LAST] = look
    if look.result is not None:
        st.session_state[_GOOD] = look
    return look


def _marks(look: SequenceLook, second: Comparison | None) -> dict[str, list[Mark]]:
    marks = field_marks(look.report)
    for problem in (*look.problems, *(() if second is None else second.problems)):
        marks.setdefault(f"{PAGE}_{problem.field}", []).append(Mark(Severity.ERROR, problem.text))
    marks.setdefault(f"{PAGE}_seed", []).extend(weights_marks(look.inputs))
    return marks


def _code_changes(inputs: SequenceInputs, edit: FieldEdit) -> tuple[tuple[str, str], ...]:
    return source_changes(inputs, SequenceInputs.of({**inputs.values, **edit.values}, inputs.file))


def _rest(
    above: DeltaGenerator,
    state: PageState,
    inputs: SequenceInputs,
    look: SequenceLook,
    shown: SequenceLook | None,
    second: Comparison | None,
) -> None:
    broken = look.report is None or bool(look.report.broken) or look.result is None
    cards = partial(violation_cards, look.report, state, fix_all=look.all_fixed, diff=partial(_code_changes, inputs))
    with above:
        st.html(f'<p class="cl-quiet">{fill(INTRO)}</p>')
        break_row(state, inputs)
        waiting_line()
        if look.report is not None and (on(inputs) or look.report.broken):
            says(look.report, look.raised, look)
        if broken:
            cards()
    if shown is not None:
        equation_card(state, shown)
    if not broken:
        cards()
    compare_panel(state, second)
    if shown is not None and shown.result is not None:
        late_panels(state, shown)
    weights_panel(state, inputs, ready=look.result is not None)
    code_panel(state, inputs, look, shown)
    if shown is not None and shown.trial is not None and shown.result is not None:
        section(fill(PARTING), hint=fill(PARTING_HINT))
        parting_of_layer(PAGE, shown.inputs, shown.trial)


page()
