"""The inputs of the Gradients page, each with its marks; and the program that they stand for."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.base.text import fill
from core.doctor.link import CODE_URL, pack
from core.inputs.fields import VERSION, VERSION_NAME, Kind
from core.inputs.generate import formula_of, generator_of
from core.inputs.gradient_fields import CELLS, FIELDS, PRESET, SOURCES, TRAINING, TYPED, VIEWS
from core.inputs.gradient_inputs import GradientInputs
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.frame import section
from pages.widgets.state import PageState

VIEW_WORDS: Mapping[str, str] = {CELLS: "What cells remember", PRESET: "A scan", TRAINING: "One update"}
VIEW_LABEL = "Gradient of"
CELL, DATA, CODE = "Cells", "Data", "In code"
FORGET_LABEL, SCALE_LABEL = "forget bias (LSTM)", "recurrent scale (all three)"
SOURCE_WORDS: Mapping[str, str] = {
    "noise": "seeded noise",
    "ones": "ones",
    "sine": "sine",
    "impulse": "impulse",
    "alternating": "alternating",
    TYPED: "typed",
}
FORGET_HELP = "Added to b_f of the LSTM, the only cell here with a forget gate: at 3 about 95 % of c is kept each step."
SCALE_HELP = "Every recurrent kernel of all three cells times this. 1 is as Flax draws them: orthogonal."
SEED_HELP = "nnx.Rngs(seed), the same for every cell."
LENGTH_HELP = "Another T, F or H compiles the three programs anew."
NUMBERS_HELP = "A line is a step: numbers with commas or blanks, or nested lists. nan and inf are numbers here."
OPEN = "Open in Doctor"
TYPED_HEIGHT = 130


def view_choice(state: PageState) -> None:
    """What the gradient is taken of: the three views."""
    st.segmented_control(
        fill(VIEW_LABEL),
        VIEWS,
        key=state.key("of"),
        disabled=state.locked("of"),
        format_func=lambda view: fill(VIEW_WORDS[view]),
        required=True,
        label_visibility="collapsed",
    )


def sliders(state: PageState, marks: Mapping[str, list[Mark]]) -> None:
    """What one turns, beside what it moves."""
    with st.container(border=True, key="gradients_turn_panel"):
        left, right = st.columns(2, gap="medium")
        with left:
            slider(state, marks, "forget_bias", 0.5, fill(FORGET_HELP), label=fill(FORGET_LABEL))
        with right:
            slider(state, marks, "recurrent_scale", 0.1, fill(SCALE_HELP), label=fill(SCALE_LABEL))


def cell_controls(state: PageState, inputs: GradientInputs, marks: Mapping[str, list[Mark]]) -> None:
    """Sizes, then data."""
    section(fill(CELL))
    with st.container(border=True, key="gradients_cell_panel"):
        typed = inputs.source == TYPED
        sizes = ("hidden_features",) if typed else ("length", "hidden_features")
        row(state, marks, sizes, {"length": fill(LENGTH_HELP)})
        row(state, marks, ("seed",) if typed else ("in_features", "seed"), {"seed": fill(SEED_HELP)})
    section(fill(DATA))
    with st.container(border=True, key="gradients_data_panel"):
        _data(state, inputs, marks)


def _data(state: PageState, inputs: GradientInputs, marks: Mapping[str, list[Mark]]) -> None:
    seeded = inputs.source == "noise"
    columns = st.columns(2) if seeded else [st.container()]
    with columns[0]:
        st.selectbox(
            label_of("source"),
            SOURCES,
            key=state.key("source"),
            disabled=state.locked("source"),
            format_func=lambda source: fill(SOURCE_WORDS[source]),
            on_change=_fill_numbers,
            args=(state,),
        )
    if seeded:
        with columns[1]:
            whole(state, "data_seed")
    if inputs.source == TYPED:
        st.text_area(
            label_of("numbers"),
            key=state.key("numbers"),
            disabled=state.locked("numbers"),
            height=TYPED_HEIGHT,
            help=fill(NUMBERS_HELP),
        )
    elif not generator_of(inputs.source).seeded:
        st.caption(formula_of(inputs.source, 0, max(inputs.in_features, 1)))
    draw_marks(marks, state.key("source"), state.key("data_seed"), state.key("numbers"))


#: What whoever turns to typed numbers finds: three features over six steps.
BEGIN = "1, 0, 0\n0, 1, 0\n0, 0, 1\n1, 1, 0\n0, 1, 1\n1, 0, 1"


def _fill_numbers(state: PageState) -> None:
    if st.session_state.get(state.key("source")) == TYPED and not str(state.values["numbers"]).strip():
        state.set_quietly("numbers", BEGIN)


def code_panel(program: str) -> None:
    """The program, and the way to the Doctor with it."""
    if not program:
        return
    section(fill(CODE))
    st.code(program, language="python", height=360 if program.count("\n") > 18 else "content")
    st.page_link(
        "pages/views/doctor.py",
        label=fill(OPEN),
        icon=":material/stethoscope:",
        query_params={VERSION_NAME: VERSION, CODE_URL: pack(program)},
    )


# --- single inputs --------------------------------------------------------------------------------------------------


def label_of(name: str) -> str:
    """The words on a field's label."""
    return fill(FIELDS.field(name).label)


def slider(
    state: PageState, marks: Mapping[str, list[Mark]], name: str, step: float, text: str, *, label: str = ""
) -> None:
    """A number between its bounds."""
    field = FIELDS.field(name)
    if field.kind is Kind.WHOLE:
        st.slider(
            label or label_of(name),
            int(field.low or 0),
            int(field.high or 1),
            step=int(step),
            key=state.key(name),
            disabled=state.locked(name),
            help=text,
        )
    else:
        low, high = float(field.low or 0), float(field.high or 1)
        st.slider(
            label or label_of(name),
            low,
            high,
            step=float(step),
            key=state.key(name),
            disabled=state.locked(name),
            help=text,
        )
    draw_marks(marks, state.key(name))


def whole(state: PageState, name: str, text: str | None = None) -> None:
    """A whole number; how large is answered by the page."""
    field = FIELDS.field(name)
    seed = field.low == 0
    st.number_input(
        label_of(name),
        key=state.key(name),
        disabled=state.locked(name),
        step=1,
        min_value=0 if seed else None,
        max_value=int(field.high) if seed and field.high is not None else None,
        help=text,
    )


def row(state: PageState, marks: Mapping[str, list[Mark]], names: tuple[str, ...], helps: Mapping[str, str]) -> None:
    """Whole numbers side by side, with their marks beneath."""
    for column, name in zip(st.columns(len(names)), names, strict=True):
        with column:
            whole(state, name, helps.get(name))
    draw_marks(marks, *(state.key(name) for name in names))
