"""What cells remember: the headline, the curves, the map, and the comparisons after them."""

from __future__ import annotations

import html
import math

import streamlit as st

from core.base.gradients import MemoryCheck
from core.base.text import fill
from core.base.tolerance import Difference
from core.base.violation import FieldEdit
from core.inputs.gradient_fields import CELL_NAMES, TRICKS
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_measure import Decay, below, decay_of, power_text
from core.inputs.gradient_page import CellsResult
from core.inputs.gradient_rows import map_npz, row_csv
from core.plots.drawn import drawn
from core.plots.gradient_curves import COLOURS, SIGNS, Picture, memory_curves
from core.plots.gradient_map import blocks_of, memory_heatmap
from pages.widgets.cards import escape, undo_line
from pages.widgets.chart_config import chart_config
from pages.widgets.classroom import presented
from pages.widgets.frame import section
from pages.widgets.gradient_state import checked
from pages.widgets.gradient_tiles import headline_html, tile
from pages.widgets.state import PageState
from pages.widgets.tables import table_html

TITLE = "h{s} remembers x₀"
SAID = "‖∂h{s}/∂x₀‖: how far h after step {s_word} moves for each unit that the very first input is moved."
TILE_HINT = (
    "a line through the logarithms of all positive values; they miss it by a factor of {misses} (root mean square)"
)
WHO, SCHEMES = "{sign} {cell}", "light-dark({light}, {dark})"
TRY = "Try:"
CURVES = "What is left of each input"
CURVES_HINT = "‖∂h{s}/∂xₜ‖ and ‖∂c{s}/∂xₜ‖ on a log axis; a click on t asks the state after that step instead"
MAP, MAP_HINT = "Every state and every input", "log10 of ‖∂{part}{s}/∂x{t}‖; a click chooses a row"
ROW = "state h after step s (0: the last, {last})"
LAST = "Back to h{s}"
NUMBERS = "The numbers as a table"
CSV, NPZ = "This row (CSV)", "All maps (npz)"
CSV_FILE, NPZ_FILE = "gradients-h{s}.csv", "gradients.npz"
CHECKS = "The last row, worked out otherwise"
CHECKS_HINT = "largest difference; every derivative is taken along the float32 states of the run"
TOLERANCE, WITHIN = "tolerance", "rtol {rtol}, atol {atol}"
GRAD = "jax.grad, reverse mode, float32"
FINITE = "finite differences, NumPy in float64"
TRAJECTORY = "every step of the states, NumPy in float64"
BEYOND = "{cell}: {count} values are above the range of float32, where jax.grad gives infinity; they are left out of its row."
FILE = "carry-lab-gradients-{name}"
_ROWS = 8


def row_of(inputs: GradientInputs, result: CellsResult) -> int:
    """The chosen row, 1 to T; 0 stands for the last."""
    return inputs.row if 0 < inputs.row <= result.length else result.length


def keep_in_range(state: PageState, result: CellsResult) -> None:
    """A row that a shorter sequence does not have gives way to the last; called before any input is drawn."""
    if int(state.values["row"]) > result.length:
        state.set_quietly("row", 0)


def try_row(state: PageState) -> None:
    """The buttons that make it vanish, explode, or remember."""
    with st.container(key="gradients_tries", horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.html(f'<p class="cl-intro"><b>{fill(TRY)}</b></p>', width="content")
        for trick in TRICKS:
            label = fill(trick.label)
            st.button(
                escape(label),
                key=f"gradients_try_{trick.id}",
                help=fill(trick.help),
                on_click=state.edit,
                args=(FieldEdit(trick.edit(state.values)), label),
            )
    undo_line(state)


# --- headline -------------------------------------------------------------------------------------------------------


def headline(result: CellsResult, s: int) -> None:
    """``h₅₀ remembers x₀``, and for each cell the number and what becomes of it, in words."""
    rows = {one.kind: one.h[s - 1, :s] for one in result.maps}
    most = max(rows, key=lambda kind: -1.0 if math.isnan(rows[kind][0]) else float(rows[kind][0]))
    tiles = (_tile(kind, float(row[0]), decay_of(row), most=kind == most) for kind, row in rows.items())
    headline_html(fill(TITLE, s=below(s)), fill(SAID, s=below(s), s_word=s), *tiles)


def _tile(kind: str, value: float, decay: Decay, *, most: bool) -> str:
    light, dark = COLOURS[kind]
    hint = "" if math.isnan(decay.misses) else fill(TILE_HINT, misses=f"{decay.misses:.2g}")
    who = fill(WHO, sign=SIGNS[kind], cell=CELL_NAMES[kind])
    return tile(fill(SCHEMES, light=light, dark=dark), who, power_text(value), decay.words, hint=hint, most=most)


# --- plots ----------------------------------------------------------------------------------------------------------


def curves_panel(state: PageState, result: CellsResult, s: int) -> None:
    """One row of every map as curves."""
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom", key="gradients_head"
    ):
        section(fill(CURVES), hint=fill(CURVES_HINT, s=below(s)))
        if s != result.length:
            label = fill(LAST, s=below(result.length))
            st.button(label, key="gradients_last", on_click=state.set_quietly, args=("row", 0))
    picture = memory_curves(result.maps, s)
    _draw(picture, "curves", lambda: _choose(state, result, "curves"))


def map_panel(state: PageState, inputs: GradientInputs, result: CellsResult, s: int) -> None:
    """The whole map of one cell."""
    one = result.map_of(inputs.map_cell)
    part = inputs.map_part if one.c is not None else "h"
    section(fill(MAP), hint=fill(MAP_HINT, part=part, s="ₛ", t="ₜ"))
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="gradients_map_head"):
        st.segmented_control(
            "map of",
            tuple(CELL_NAMES),
            key=state.key("map_cell"),
            disabled=state.locked("map_cell"),
            format_func=lambda kind: CELL_NAMES[kind],
            required=True,
            label_visibility="collapsed",
        )
        if one.c is not None:
            st.segmented_control(
                "state",
                ("h", "c"),
                key=state.key("map_part"),
                disabled=state.locked("map_part"),
                required=True,
                label_visibility="collapsed",
            )
        last = result.length
        st.number_input(
            fill(ROW, last=last),
            key=state.key("row"),
            disabled=state.locked("row"),
            min_value=0,
            max_value=last,
            step=1,
            width=230,
        )
    picture = memory_heatmap(one, part, s)
    _draw(picture, "map", lambda: _choose(state, result, "map"))


def _draw(picture: Picture, name: str, on_select: object) -> None:
    with st.container(border=True, key=f"gradients_{name}_plot_card"):
        st.plotly_chart(
            drawn(presented(picture.figure)),
            key=f"gradients_{name}",
            width="stretch",
            config=chart_config(fill(FILE, name=name)),
            alt=picture.alt,
            on_select=on_select,  # type: ignore[arg-type]  # a function without arguments
            selection_mode="points",
        )
    for note in picture.notes:
        st.caption(note)
    table = st.expander(fill(NUMBERS), key=f"gradients_{name}_table", on_change="rerun")
    if table.open:
        rows = len(next(iter(picture.table.values())))
        table.dataframe(picture.table, hide_index=True, height=300 if rows > _ROWS else "content")


def _choose(state: PageState, result: CellsResult, name: str) -> None:
    """A click on t, or on a square of the map, chooses that row."""
    event = st.session_state.get(f"gradients_{name}") or {}
    points = event.get("selection", {}).get("points", [])
    if not points:
        return
    if name == "curves":
        chosen = int(points[0]["x"]) + 1
    else:
        side = blocks_of(result.maps[0].h)[1]
        chosen = min((int((float(points[0]["y"]) - 0.5) // side) + 1) * side, result.length)
    st.session_state[state.key("row")] = 0 if chosen == result.length else chosen


def downloads(result: CellsResult, s: int) -> None:
    """The row as CSV, all maps as npz."""
    with st.container(horizontal=True, gap="small", key="gradients_downloads"):
        st.download_button(
            fill(CSV),
            lambda: row_csv(result, s),
            fill(CSV_FILE, s=s),
            "text/csv",
            key="gradients_csv",
            on_click="ignore",
            icon=":material/download:",
        )
        st.download_button(
            fill(NPZ),
            lambda: map_npz(result),
            fill(NPZ_FILE),
            "application/octet-stream",
            key="gradients_npz",
            on_click="ignore",
            icon=":material/download:",
        )


# --- checks ---------------------------------------------------------------------------------------------------------


@st.fragment
def checks_panel(result: CellsResult) -> None:
    """Reverse mode, finite differences and the states themselves, beside the map's last row."""
    section(fill(CHECKS), hint=fill(CHECKS_HINT))
    with st.container(border=True, key="gradients_checks"):
        checks = checked(result)
        cells = [CELL_NAMES[one.kind] for one in result.maps]
        rows = [
            _check_row(fill(GRAD), [check.grad for check in checks]),
            _check_row(fill(FINITE), [check.finite for check in checks]),
            _check_row(fill(TRAJECTORY), [check.trajectory for check in checks]),
        ]
        st.html(table_html(("", *cells, fill(TOLERANCE)), rows))
    for cell, check in zip(cells, checks, strict=True):
        if check.beyond:
            st.caption(fill(BEYOND, cell=cell, count=check.beyond))


def _check_row(name: str, ones: list[Difference]) -> list[str]:
    """What is compared, the largest difference for each cell with its sign, the tolerance."""
    return [html.escape(name), *(f"{power_text(one.largest)} {_sign(one)}" for one in ones), tolerance_text(ones[0])]


def _sign(one: Difference) -> str:
    return '<span class="cl-ok">✓</span>' if one.within else '<span class="cl-no">✗</span>'


def tolerance_text(one: Difference) -> str:
    """The tolerance with few digits."""
    return fill(WITHIN, rtol=f"{one.tolerance.rtol:.1e}", atol=f"{one.tolerance.atol:.0e}").replace("e-0", "e-")


def agree(checks: tuple[MemoryCheck, ...]) -> bool:
    """Whether every comparison is within its tolerance."""
    return all(one.grad.within and one.finite.within and one.trajectory.within for one in checks)
