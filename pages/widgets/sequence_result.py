"""The result on the Sequence page: the batch as a grid, the carry and the gates beneath it on the same axis of time."""

from __future__ import annotations

import html
import re

import streamlit as st

from core.base.sequences import SequenceResult
from core.base.text import fill
from core.base.violation import FieldEdit
from core.inputs.sequence_compare import Comparison
from core.inputs.sequence_fields import HEATMAP, LINES, SIDES, TYPED, VIEWS
from core.inputs.sequence_follow import clicked
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_page import SequenceLook
from core.plots.drawn import drawn
from core.plots.sequence_grid import grid_payload
from core.plots.sequence_point import PointWords, point_words
from core.plots.sequence_view import Chosen, sequence_view
from core.runners.layers import parameters
from core.runners.sequence_point import point
from pages.widgets.chart_config import chart_config
from pages.widgets.classroom import presented
from pages.widgets.frame import section
from pages.widgets.sequence_grid import sequence_grid
from pages.widgets.state import PageState

TITLE = "The batch, and the carry over time"
TITLE_EXAMPLE = "example {example}"
EQUATIONS = "The equations of one point, with its numbers"
EQUATIONS_HINT = "t = {position}, unit {unit}, example {example}; click another point of the plot"
NUMBERS = "The numbers as a table"
NUMBERS_NOTE = "Of example {example}. The gates are those of unit {unit}; t = 0 is the initial carry."
SPELLED = "The products, term by term"
VIEW, VIEW_HELP = "view", "Each unit as a line, or as a row of colour: blue below zero, orange above."
VIEW_WORDS = {LINES: "lines", HEATMAP: "heatmap"}
SIDE, SIDE_HELP = "direction", "A bidirectional layer is two layers: each has carries and gates of its own."
SIDE_WORDS = dict(zip(SIDES, ("forward", "backward"), strict=True))
OF = "{name} (0 to {last})"
EXAMPLE, TIME, UNIT = "example", "t", "unit"
EXAMPLE_HELP = "Whose carries are drawn. A click on a row's number in the grid chooses it too."
TIME_HELP = "Carry t: 0 is the initial one, and t is what step t − 1 made. A click on a point of the plot chooses it."
UNIT_HELP = "The unit that is drawn bold, with its gates and its equations."
TOGGLED = "a step turned over in the grid"
WIDTH = 118
#: Rows of the table of numbers that are shown at once; more scroll.
ROWS = 8
FILE = "carry-lab-sequence"


def chosen_of(state: PageState, result: SequenceResult | None) -> Chosen:
    """What is looked at, brought into what the result has."""
    values = state.values
    side = SIDES.index(str(values["side"]))
    chosen = Chosen(int(values["example"]), int(values["t"]), int(values["unit"]), side)
    return chosen if result is None else chosen.within(result)


def keep_in_range(state: PageState, result: SequenceResult) -> None:
    """Bring example, t and unit into what this result has; called before any input is drawn.

    What was brought in comes back when there is room again, unless something else was chosen since.
    """
    brought: dict[str, tuple[int, int]] = st.session_state.setdefault(f"{state.page}:brought", {})
    now = {name: int(state.values[name]) for name in ("example", "t", "unit")}
    wanted = {
        name: brought[name][0] if brought.get(name, (0, -1))[1] == value else value for name, value in now.items()
    }
    fitting = Chosen(wanted["example"], wanted["t"], wanted["unit"], chosen_of(state, result).side).within(result)
    for name, value in (("example", fitting.example), ("t", fitting.position), ("unit", fitting.unit)):
        brought[name] = wanted[name], value
        if now[name] != value:
            state.set_quietly(name, value)


def drawn_layer(
    state: PageState, inputs: SequenceInputs, look: SequenceLook, second: Comparison | None, *, stale: bool
) -> None:
    """Grid and plot in one card, so that they share their axis of time.

    Args:
        state: the page's inputs.
        inputs: the same as they now are.
        look: what is drawn; its trial is there.
        second: another run to lay over it.
        stale: what is drawn belongs to earlier inputs.
    """
    result, trial = look.result, look.trial
    if trial is None:
        return
    chosen = chosen_of(state, result)
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom", key=f"{state.page}_head"
    ):
        section(fill(TITLE))
        if result is not None:
            _choose(state, result)
    chart = state.key("chart")
    page = f"{state.page}_plot_card" + ("_stale" if stale else "")
    with st.container(border=True, key=page):
        sequence_grid(
            grid_payload(
                trial,
                result,
                chosen,
                chart=chart,
                editable=not stale and inputs.source != TYPED and not _mask_locked(state),
                stale=stale,
            ),
            key=state.key("grid"),
            on_toggle=lambda: _take_toggle(state),
            on_example=lambda: _take_example(state),
            on_point=lambda: _take_point(state),
        )
        if result is not None:
            _plot(state, look, result, chosen, second, chart)


def _plot(
    state: PageState,
    look: SequenceLook,
    result: SequenceResult,
    chosen: Chosen,
    second: Comparison | None,
    chart: str,
) -> None:
    misread = look.trial is not None and look.trial.misread
    view = sequence_view(
        result,
        chosen,
        heatmap=state.values["view"] == HEATMAP,
        second=None if second is None else second.result,
        misread=misread,
    )
    st.plotly_chart(
        drawn(presented(view.figure)), key=chart, width="stretch", config=chart_config(fill(FILE)), alt=view.alt
    )
    for note in view.notes:
        st.caption(note)
    shown = st.expander(fill(NUMBERS), key=state.key("numbers_table"), on_change="rerun")
    if shown.open:
        shown.caption(fill(NUMBERS_NOTE, example=chosen.example, unit=chosen.unit))
        rows = len(next(iter(view.table.values())))
        shown.dataframe(view.table, hide_index=True, height=300 if rows > ROWS else "content")


# --- choosing -------------------------------------------------------------------------------------------------------


def _choose(state: PageState, result: SequenceResult) -> None:
    """View, direction, example, t and unit as inputs: for a link, for a keyboard, and for 256 units."""
    length, batch, units = result.forward.outputs.shape
    with st.container(horizontal=True, gap="small", width="content", vertical_alignment="bottom"):
        if result.backward is not None:
            st.segmented_control(
                fill(SIDE),
                SIDES,
                key=state.key("side"),
                disabled=state.locked("side"),
                format_func=lambda name: fill(SIDE_WORDS[name]),
                required=True,
                help=fill(SIDE_HELP),
            )
        st.segmented_control(
            fill(VIEW),
            VIEWS,
            key=state.key("view"),
            disabled=state.locked("view"),
            format_func=lambda name: fill(VIEW_WORDS[name]),
            required=True,
            help=fill(VIEW_HELP),
        )
        for name, word, last, text in (
            ("example", EXAMPLE, batch - 1, EXAMPLE_HELP),
            ("t", TIME, length, TIME_HELP),
            ("unit", UNIT, units - 1, UNIT_HELP),
        ):
            label = fill(OF, name=fill(word), last=last)
            st.number_input(
                label,
                0,
                max(last, 0),
                key=state.key(name),
                disabled=state.locked(name),
                step=1,
                width=WIDTH,
                help=fill(text),
            )


def _said(state: PageState, name: str) -> dict[str, int]:
    told = (st.session_state.get(state.key("grid")) or {}).get(name) or {}
    return {key: int(value) for key, value in told.items() if isinstance(value, int | float)}


def _mask_locked(state: PageState) -> bool:
    """Whether a teacher's link keeps what a click on the grid would change."""
    return any(state.locked(name) for name in ("masking", "mask", "lengths"))


def _take_toggle(state: PageState) -> None:
    told = _said(state, "toggle")
    inputs = SequenceInputs.of(state.values)
    if {"example", "t"} <= told.keys() and not _mask_locked(state):
        state.edit(FieldEdit(clicked(inputs, told["example"], told["t"])), fill(TOGGLED))


def _take_example(state: PageState) -> None:
    told = _said(state, "example")
    if "example" in told:
        st.session_state[state.key("example")] = max(told["example"], 0)


def _take_point(state: PageState) -> None:
    told = _said(state, "point")
    for name in told.keys() & {"t", "unit"}:
        st.session_state[state.key(name)] = max(told[name], 0)


# --- the chosen point -----------------------------------------------------------------------------------------------


def equation_card(state: PageState, look: SequenceLook) -> None:
    """The equations of the chosen point with its numbers in."""
    if look.trial is None or look.result is None:
        return
    chosen = chosen_of(state, look.result)
    hint = fill(EQUATIONS_HINT, position=chosen.position, unit=chosen.unit, example=chosen.example)
    section(fill(EQUATIONS), hint=hint)
    step = None
    if chosen.position:
        step = point(look.trial, look.result, chosen.example, chosen.position, chosen.side)
    words = point_words(look.trial, look.result, chosen, step, dict(parameters(look.trial)[chosen.side]))
    with st.container(border=True, key=state.key("equations")):
        st.html(_point_html(words))


def _point_html(words: PointWords) -> str:
    lines = "".join(
        f'<div class="cl-equation cl-equation-{_role(line.slot)}" data-slot="{html.escape(line.slot)}">'
        f'<div class="cl-symbols">{_indexed(line.symbols)}</div><div class="cl-numbers">{html.escape(line.numbers)}</div></div>'
        for line in words.lines
    )
    agreements = "".join(
        f'<div class="{"cl-ok" if one.agrees else "cl-no"}">{"✓" if one.agrees else "✗"} {html.escape(one.text)}</div>'
        for one in words.agreements
    )
    products = "".join(
        f'<div><b class="cl-symbols">{_indexed(symbols)}</b> = {html.escape(numbers)}</div>'
        for symbols, numbers in words.spelled
    )
    details = (
        f'<details class="cl-details"><summary>{fill(SPELLED)}</summary><div class="cl-products">{products}</div></details>'
        if products
        else ""
    )
    return (
        f'<p class="cl-quiet">{html.escape(words.opening)}</p><div class="cl-equations">{lines}</div>'
        f'<div class="cl-agreements" role="status">{agreements}</div>{details}'
    )


def _role(slot: str) -> str:
    return slot.rstrip("′") if slot in ("c′", "h′") else "gate"


def _indexed(text: str) -> str:
    """``W_{ii}`` with an index below."""
    return re.sub(r"_\{([^}]*)\}", r"<sub>\1</sub>", html.escape(text))
