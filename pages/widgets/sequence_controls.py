"""The inputs of the Sequence page: cell, batch, layer, padding, initial carry, the run to compare with; marks beside each."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.base.text import fill
from core.inputs.sequence_data import FORMULAS
from core.inputs.sequence_fields import (
    BIDIRECTIONAL,
    BTF,
    CELL,
    COMPARES,
    DIRECTIONS,
    FORWARD,
    HIDDEN,
    INITS,
    KEPT,
    LEFT_OVER,
    LENGTHS,
    LOOKED_AT,
    MASK,
    MASKINGS,
    NAN,
    NOISE,
    NONE,
    NORMAL,
    REPEAT,
    REVERSE,
    SEED,
    SOURCES,
    SUMMED_MASK,
    TBF,
    TYPED,
    ZEROS,
)
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_words import explains
from core.runners.cell_formulas import KINDS
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.frame import section
from pages.widgets.state import PageState

CELL_TITLE, BATCH, LAYER, PADDING, INIT, COMPARE = "Cell", "Batch x", "Layer", "Padding", "Initial carry", "Compare"
CELL_HELP = "The recurrent cells of Flax NNX. The layer steps the same cell, with the same weights, at every t."
HELPS: Mapping[str, str] = {
    "hidden_features": "H: how many units c and h have.",
    "seed": "nnx.Rngs(seed) for the cell: its kernels are drawn from it. A backward cell gets the next seed.",
    "batch": "B: how many examples there are. They never meet: each has a carry of its own.",
    "length": "T: how many steps the longest example has. The others are padded to it.",
    "in_features": "F: how many numbers x holds at each step.",
    "data_seed": "The noise is drawn from it; so is noise in the padding.",
    "unroll": "How many steps one turn of the compiled loop does. It changes speed, not values.",
    "init_seed": "Each part of the carry is drawn from a standard normal distribution by this seed.",
    "compare_seed": "The same layer with parameters drawn from another seed.",
    "compare_hidden": "The same layer with another number of units; those that both have are laid over each other.",
}
SOURCE_HELP = "Where the numbers come from. Turn to typed and those that were there can be edited."
SOURCE_WORDS: Mapping[str, str] = {"sine": "sine", "ramp": "ramp", "impulse": "impulse", NOISE: "noise", TYPED: "typed"}
NUMBERS_HELP = (
    "Nested lists with three axes in the order below, or a line for each step of one example. nan and inf too."
)
AXES_HELP = (
    "What the axes of the data really are: nothing in an array says it. The layer is told by time_major; where the two "
    "disagree it takes examples for steps, and JAX says nothing."
)
AXES_WORDS: Mapping[str, str] = {BTF: "(B, T, F)", TBF: "(T, B, F)"}
TIME_MAJOR = "time_major: axis 0 is time"
TIME_MAJOR_HELP = "What the layer is told: nnx.RNN takes axis 1 for time unless this is set."
DIRECTION_HELP = (
    "forward reads t = 0 first; reverse reads the last step first; bidirectional is two layers, one each way."
)
DIRECTION_WORDS: Mapping[str, str] = {FORWARD: "forward", REVERSE: "reverse", BIDIRECTIONAL: "both ways"}
KEEP_ORDER = "keep_order: ys stand where x stands"
KEEP_ORDER_HELP = (
    "nnx.RNN(reverse=True) returns ys in the order it visited them: ys[0] belongs to the last x. With keep_order=True "
    "they are turned back, so that ys[t] belongs to x[t]. lax.scan(reverse=True) always does that."
)
MASKING_HELP = (
    "none: every step counts, padding too. lengths: nnx.RNN picks the carry after each example's last valid step. mask: a "
    "scan whose step keeps the carry where the mask is 0; it may have holes."
)
MASKING_WORDS: Mapping[str, str] = {NONE: "nothing", LENGTHS: "lengths", MASK: "mask"}
LENGTHS_HELP = (
    "One length for each example. They stay known when the layer is told nothing: the data are padded all the same."
)
MASK_HELP = "A row of 0s and 1s for each example, commas between: 11100, 10110. Runs may be written 1*40 0*24."
FILL_HELP = "What stands in the steps that are padding. It must not matter: try it with a mask, and without."
FILL_WORDS: Mapping[str, str] = {
    ZEROS: "zeros",
    REPEAT: "the last real step",
    NOISE: "noise",
    NAN: "NaN",
    KEPT: "data go on",
}
INIT_HELP = (
    "What the first step starts from. Left over: the final carry of another sequence, as if nobody had reset it."
)
INIT_WORDS: Mapping[str, str] = {ZEROS: "zeros", NORMAL: "normal", TYPED: "typed", LEFT_OVER: "left over"}
ROWS_HELP = "A line for each example, a number for each unit."
COMPARE_HELP = "A second run over the same batch, laid over the first in dashes, with a table of differences."
COMPARE_WORDS: Mapping[str, str] = {NONE: "nothing", SEED: "seed", HIDDEN: "H", CELL: "cell"}
COMPARE_CELL_HELP = "The same layer with another cell; the parts that both carry are laid over each other."
HEIGHT = 92


class SequenceControls:
    """The controls of one run of the page. What a run does not draw is hidden, so that it keeps its value."""

    def __init__(self, state: PageState, inputs: SequenceInputs, marks: Mapping[str, list[Mark]]) -> None:
        self._state = state
        self._inputs = inputs
        self._marks = marks
        self._explains = explains(inputs)
        self._drawn: set[str] = set()

    def draw(self) -> None:
        """All of them, a card for each subject."""
        for title, card in (
            (CELL_TITLE, self._cell),
            (BATCH, self._batch),
            (PADDING, self._padding),
            (LAYER, self._layer),
            (INIT, self._init),
            (COMPARE, self._compare),
        ):
            section(fill(title))
            with st.container(border=True, gap="small", key=f"{self._state.page}_card_{title.split()[0].lower()}"):
                card()
        self._state.hide(*(set(self._state.values) - self._drawn - LOOKED_AT))

    # --- cards

    def _cell(self) -> None:
        self._select("cell", {name: name for name in KINDS}, CELL_HELP)
        self._pair("hidden_features", "seed")

    def _batch(self) -> None:
        typed = self._inputs.source == TYPED
        self._select("source", {name: SOURCE_WORDS[name] for name in SOURCES}, SOURCE_HELP)
        if typed:
            self._area("numbers", NUMBERS_HELP)
        else:
            st.caption(fill(FORMULAS[self._inputs.source]))
            self._pair("batch", "length")
            self._pair("in_features", "data_seed")
        self._explained("source", "length")
        self._segments("axes", AXES_WORDS, AXES_HELP)
        self._explained("axes")

    def _padding(self) -> None:
        inputs = self._inputs
        self._segments("masking", {name: MASKING_WORDS[name] for name in MASKINGS}, MASKING_HELP)
        self._explained("masking")
        if inputs.masked:
            self._area("mask", MASK_HELP)
        if not inputs.masked or not inputs.mask.strip():
            self._text("lengths", LENGTHS_HELP)
        if inputs.slip == SUMMED_MASK:
            self._under("slip")
        if inputs.source != TYPED:
            self._select("padding", FILL_WORDS, FILL_HELP)
            self._explained("padding")

    def _layer(self) -> None:
        self._flag("time_major", TIME_MAJOR, TIME_MAJOR_HELP)
        self._segments("direction", {name: DIRECTION_WORDS[name] for name in DIRECTIONS}, DIRECTION_HELP)
        if self._inputs.direction == REVERSE:
            self._flag("keep_order", KEEP_ORDER, KEEP_ORDER_HELP)
        self._explained("direction")
        self._whole("unroll")
        self._under("slip")

    def _init(self) -> None:
        self._segments("init", {name: INIT_WORDS[name] for name in INITS}, INIT_HELP)
        self._explained("init")
        if self._inputs.init == NORMAL:
            self._whole("init_seed")
        if self._inputs.init == TYPED:
            for part in KINDS[self._inputs.cell].parts:
                self._area(f"init_{part}", ROWS_HELP)

    def _compare(self) -> None:
        self._segments("compare", {name: COMPARE_WORDS[name] for name in COMPARES}, COMPARE_HELP)
        match self._inputs.compare:
            case "seed":
                self._whole("compare_seed")
            case "hidden":
                self._whole("compare_hidden")
            case "cell":
                self._select("compare_cell", {name: name for name in KINDS}, COMPARE_CELL_HELP)

    # --- one input

    def _pair(self, *names: str) -> None:
        for column, name in zip(st.columns(2, gap="small"), names, strict=True):
            with column:
                self._whole(name, marks=False)
        self._under(*names)

    def _whole(self, name: str, *, marks: bool = True) -> None:
        field = self._state.table.field(name)
        seeds = field.low == 0
        st.number_input(
            fill(field.label),
            key=self._key(name),
            disabled=self._state.locked(name),
            step=1,
            min_value=0 if seeds else None,
            max_value=int(field.high) if seeds and field.high is not None else None,
            help=fill(HELPS[name]),
        )
        if marks:
            self._under(name)

    def _select(self, name: str, words: Mapping[str, str], text: str) -> None:
        st.selectbox(
            self._label(name),
            tuple(words),
            key=self._key(name),
            disabled=self._state.locked(name),
            format_func=lambda option: fill(words[option]),
            help=fill(text),
        )
        self._under(name)

    def _segments(self, name: str, words: Mapping[str, str], text: str) -> None:
        st.segmented_control(
            self._label(name),
            tuple(words),
            key=self._key(name),
            disabled=self._state.locked(name),
            format_func=lambda option: fill(words[option]),
            required=True,
            help=fill(text),
        )
        self._under(name)

    def _flag(self, name: str, label: str, text: str) -> None:
        st.checkbox(fill(label), key=self._key(name), disabled=self._state.locked(name), help=fill(text))
        self._under(name)

    def _text(self, name: str, text: str) -> None:
        st.text_input(self._label(name), key=self._key(name), disabled=self._state.locked(name), help=fill(text))
        self._under(name)

    def _area(self, name: str, text: str) -> None:
        st.text_area(
            self._label(name), key=self._key(name), disabled=self._state.locked(name), height=HEIGHT, help=fill(text)
        )
        self._under(name)

    def _label(self, name: str) -> str:
        return fill(self._state.table.field(name).label)

    def _key(self, name: str) -> str:
        self._drawn.add(name)
        return self._state.key(name)

    def _explained(self, *names: str) -> None:
        for name in names:
            if name in self._explains:
                st.caption(self._explains[name])

    def _under(self, *names: str) -> None:
        draw_marks(self._marks, *(self._state.key(name) for name in names))
