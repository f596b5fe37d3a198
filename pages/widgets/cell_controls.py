"""The inputs of the LSTM cell page: the cell, its carry, its input, each with its marks beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import streamlit as st

from core.base.text import fill
from core.inputs.cell_fields import CARRIES, FIELDS, INPUTS, NONE, TYPED
from core.inputs.cell_inputs import CellInputs, build, typed_rows
from core.inputs.cell_numbers import written
from core.inputs.fields import Value
from core.inputs.parse import UnreadableError
from core.runners.cell_formulas import KINDS
from pages.widgets.array_editor import array_editor
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.frame import section
from pages.widgets.state import PageState

CELL, CARRY, INPUT, CODE = "Cell", "Carry", "Input x", "In code"
CELL_HELP = "The recurrent cells of Flax NNX. OptimizedLSTMCell is the same LSTM with its kernels side by side."
SEED_HELP = "nnx.Rngs(seed) for the cell: the kernels are drawn from it."
CARRY_SEED_HELP = "nnx.Rngs(seed) for initialize_carry."
ZEROS_HELP = (
    "initialize_carry wants nnx.Rngs(seed) for zeros too, but draws nothing from it: every seed gives the same zeros. "
    "With a normal carry it counts."
)
BATCH_HELP = "B: the examples that the carry is made for, and that the input has when it is made here."
ROWS_HELP = "A line is an example: numbers with commas or blanks, CSV, or nested lists. nan and inf are numbers here."
CARRY_WORDS: Mapping[str, str] = {"zeros": "zeros", "normal": "normal", "typed": "typed"}
INPUT_WORDS: Mapping[str, str] = {"ones": "ones", "noise": "noise", "table": "table", "paste": "paste"}
EXAMPLE = "example"
TABLE = "The input x as a table: a column for each example, a row for each feature"
TYPED_HEIGHT = 92


def cell_controls(state: PageState, inputs: CellInputs, marks: Mapping[str, list[Mark]], program: str) -> None:
    """All inputs, one card for each argument.

    Args:
        state: the page's inputs.
        inputs: the same as one value.
        marks: by widget key, from the report and from what could not be read.
        program: the lines of Python that the inputs stand for.
    """
    section(fill(CELL), ask="lstm_cell")
    with st.container(border=True, key=state.key("cell_panel")):
        st.selectbox(
            _label("cell"), tuple(KINDS), key=state.key("cell"), disabled=state.locked("cell"), help=fill(CELL_HELP)
        )
        draw_marks(marks, state.key("cell"))
        _pair(state, marks, ("in_features", "hidden_features"))
        _pair(state, marks, ("batch", "seed"), {"batch": fill(BATCH_HELP), "seed": fill(SEED_HELP)})
    section(fill(CARRY), ask="lstm_carry")
    with st.container(border=True, key=state.key("carry_panel")):
        _carry(state, inputs, marks)
    section(fill(INPUT), ask="lstm_input")
    with st.container(border=True, key=state.key("input_panel")):
        _input(state, inputs, marks)
    if program:
        section(fill(CODE))
        with st.container(key=state.key("code_panel")):
            st.code(program, language="python")


def _label(name: str) -> str:
    return fill(FIELDS.field(name).label)


def _pair(
    state: PageState, marks: Mapping[str, list[Mark]], names: tuple[str, str], helps: Mapping[str, str] | None = None
) -> None:
    for column, name in zip(st.columns(2), names, strict=True):
        with column:
            _whole(state, name, (helps or {}).get(name))
    draw_marks(marks, *(state.key(name) for name in names))


def _whole(state: PageState, name: str, text: str | None = None, *, disabled: bool = False) -> None:
    field = FIELDS.field(name)
    seeds = field.low == 0
    st.number_input(
        _label(name),
        key=state.key(name),
        step=1,
        min_value=0 if seeds else None,
        max_value=int(field.high) if seeds and field.high is not None else None,
        help=text,
        disabled=disabled or state.locked(name),
    )


def _carry(state: PageState, inputs: CellInputs, marks: Mapping[str, list[Mark]]) -> None:
    st.segmented_control(
        _label("carry"),
        CARRIES,
        key=state.key("carry"),
        disabled=state.locked("carry"),
        format_func=lambda name: fill(CARRY_WORDS[name]),
        required=True,
        on_change=_fill_typed,
        args=(state,),
    )
    draw_marks(marks, state.key("carry"))
    if inputs.carry != "typed":
        zeros = inputs.carry == "zeros"
        _whole(state, "carry_seed", fill(ZEROS_HELP if zeros else CARRY_SEED_HELP), disabled=zeros)
        draw_marks(marks, state.key("carry_seed"))
        return
    for part in KINDS[inputs.cell].parts:
        name = f"carry_{part}"
        st.text_area(
            _label(name), key=state.key(name), disabled=state.locked(name), height=TYPED_HEIGHT, help=fill(ROWS_HELP)
        )
        draw_marks(marks, state.key(name))


def _input(state: PageState, inputs: CellInputs, marks: Mapping[str, list[Mark]]) -> None:
    st.segmented_control(
        _label("input"),
        INPUTS,
        key=state.key("input"),
        disabled=state.locked("input"),
        format_func=lambda name: fill(INPUT_WORDS[name]),
        required=True,
        on_change=_fill_numbers,
        args=(state,),
    )
    draw_marks(marks, state.key("input"))
    if inputs.input == "noise":
        _whole(state, "input_seed")
    if inputs.input == "table":
        array_editor(state, across=fill(EXAMPLE), alt=fill(TABLE))
    if inputs.input == "paste":
        st.text_area(
            _label("numbers"),
            key=state.key("numbers"),
            disabled=state.locked("numbers"),
            height=TYPED_HEIGHT,
            help=fill(ROWS_HELP),
        )
    draw_marks(marks, state.key("numbers"))


# --- what typed inputs begin with -----------------------------------------------------------------------------------


#: Rows and columns that are written down for somebody to edit.
_MOST = 16


def _pending(state: PageState) -> dict[str, Value]:
    """What the widgets hold now: several may have changed since the last run."""
    widgets = {name: st.session_state.get(state.key(name)) for name in state.values}
    return {**state.values, **{name: value for name, value in widgets.items() if value is not None}}


def _fill_typed(state: PageState) -> None:
    """Whoever turns to typed numbers finds zeros of the right shape there, not an empty box and a complaint."""
    values = _pending(state)
    inputs = CellInputs.of(values)
    if inputs.carry == "typed":
        zeros = written(np.zeros((_size(inputs.batch), _size(inputs.hidden_features))))
        empty = [f"carry_{part}" for part in KINDS[inputs.cell].parts if not str(values[f"carry_{part}"]).strip()]
        state.write({**values, **dict.fromkeys(empty, zeros)})


def _fill_numbers(state: PageState) -> None:
    """The same for the input: the ones or the noise that were there. Table and text are two views of one input."""
    before, values = str(state.values["input"]), _pending(state)
    if values["input"] in TYPED and values["input"] != before:
        numbers = _numbers_for(replace(CellInputs.of(values), input=before), table=values["input"] == "table")
        state.write(values if numbers is None else {**values, "numbers": numbers})


def _numbers_for(inputs: CellInputs, *, table: bool) -> str | None:
    """What the typed input begins with; None where it stays as it was typed, with its message if it has one."""
    if inputs.numbers.strip():
        if inputs.input not in TYPED:
            return None
        try:
            return written(typed_rows(inputs, "numbers"), table=table)
        except UnreadableError:
            return None
    made = build(replace(inputs, break_input=NONE)).trial
    if made is not None and max(inputs.in_features, inputs.batch) <= _MOST:
        return written(made.inputs, table=table)
    return written(np.ones((_size(inputs.batch), _size(inputs.in_features))), table=table)


def _size(asked: int) -> int:
    """A size to write down, whatever was asked for."""
    return min(max(asked, 1), _MOST)
