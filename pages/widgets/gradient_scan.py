"""The gradient of a scan: which scan, what came of it, N502 with the guarded twin, and finite differences beside it."""

from __future__ import annotations

import html
from collections.abc import Mapping

import streamlit as st

from core.base.scan_gradients import ScanGradientCheck
from core.base.text import fill
from core.base.violation import FieldEdit
from core.inputs.gradient_fields import FINAL, STEP_NAMES, YS
from core.inputs.gradient_measure import power_text
from core.inputs.gradient_scan import ScanView
from core.inputs.preset import opening_numbers, takes_numbers
from core.plots.drawn import drawn
from core.plots.gradient_bars import NUMBER, gradient_bars, gradient_table
from core.plots.player_values import short_number
from core.runners.scan_gradient_check import check_scan_gradient
from core.steps.library import STEPS
from core.steps.library import UNGUARDED as UNGUARDED_STEPS
from pages.widgets.cards import Mark, draw_marks, escape, inline
from pages.widgets.chart_config import chart_config
from pages.widgets.classroom import presented
from pages.widgets.code import step_code
from pages.widgets.frame import section
from pages.widgets.gradient_cells import tolerance_text
from pages.widgets.gradient_controls import label_of
from pages.widgets.gradient_tiles import ROLE, headline_html, tile
from pages.widgets.state import PageState
from pages.widgets.tables import role_html, table_html, value_html

SCAN, OF, XS = "Scan", "Gradient of the sum of", "xs"
UNGUARDED = "✗ {title} ({code})"
WORDS: Mapping[str, str] = {FINAL: "the final carry", YS: "ys"}
XS_LABEL = "xs (empty: as the step opens)"
XS_HEIGHT = 80
BREAK = "Break it:"
BREAK_WORDS: Mapping[str, str] = {
    "roots_unguarded": "a root behind a where",
    "norm_unguarded": "the norm of a 0",
    "entropy_unguarded": "a logarithm behind a where",
}
BROKEN, BACK = "Broken on purpose: {title}.", "Put it back"
NO_XS = "This step reads no numbers that could be differentiated."
HEAD = "{number} = {value}"
HEAD_WORDS = (
    "the sum of {what}. Its gradient says how much it moves for each unit that one number of init or xs is moved."
)
INIT_TILE, XS_TILE, NONE = "by init, largest", "by xs, largest", "none"
AT, WILD_TILE = "at t = {t}", "{count} of {total} not finite"
BARS, LEAVES, CHECK = "By each x", "Every leaf", "Against finite differences"
LEAF_HEAD = ("", "path", "type", "gradient")
NO_GRADIENT = "no gradient: no floating-point numbers"
NUMBERS = "The numbers as a table"
CHECK_ROWS = ("largest difference", "tolerance", "numbers compared", "where there is no derivative")
COMPARED = "{compared} of {total}, each {step} to either side, in float64"
BENDS = "{bends}: slopes to the left and to the right differ"
_CHECKED = "gradients:scan_check"
FILE = "carry-lab-gradient-of-a-scan"


def scan_controls(state: PageState, marks: Mapping[str, list[Mark]]) -> None:
    """The step, what is summed, and the numbers it reads."""
    step = STEPS[str(state.values["preset"])]
    section(fill(SCAN))
    with st.container(border=True, key="gradients_scan_panel"):
        st.selectbox(
            label_of("preset"),
            STEP_NAMES,
            key=state.key("preset"),
            disabled=state.locked("preset"),
            format_func=_step_name,
            label_visibility="collapsed",
        )
        draw_marks(marks, state.key("preset"))
        step_code(step.code)
        st.html(f'<p class="cl-formula"><b>{inline(step.formula)}</b></p>')
        st.segmented_control(
            fill(OF),
            (FINAL, YS),
            key=state.key("target"),
            disabled=state.locked("target"),
            format_func=lambda of: fill(WORDS[of]),
            required=True,
        )
        draw_marks(marks, state.key("target"))
        if takes_numbers(step):
            st.text_area(
                fill(XS_LABEL),
                key=state.key("xs"),
                disabled=state.locked("xs"),
                placeholder=opening_numbers(step),
                height=XS_HEIGHT,
            )
        else:
            st.caption(fill(NO_XS))
        draw_marks(marks, state.key("xs"))


def _step_name(name: str) -> str:
    step = STEPS[name]
    return fill(UNGUARDED, title=step.title, code=step.breaks) if step.right else step.title


def break_row(state: PageState) -> None:
    """The steps whose value is right and whose gradient is not."""
    with st.container(key="gradients_break", horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.html(f'<p class="cl-intro"><b>{fill(BREAK)}</b></p>', width="content")
        for step in UNGUARDED_STEPS:
            st.button(
                escape(fill(BREAK_WORDS[step.id])),
                key=f"gradients_break_{step.id}",
                help=fill(step.story),
                on_click=state.edit,
                args=(FieldEdit({"preset": step.id, "xs": ""}), fill(BREAK_WORDS[step.id]), BROKEN, BACK),
                kwargs={"good": False},
            )


def scan_head(view: ScanView) -> None:
    """The number and how it moves: by init, by the x that moves it most."""
    gradient = view.gradient
    what = WORDS[FINAL if gradient.target.value == "final" else YS]
    title = fill(HEAD, number=NUMBER[gradient.target], value=short_number(gradient.value))
    tiles = (
        tile(fill(ROLE, role="c"), fill(INIT_TILE), *_largest(view, "init")),
        tile(fill(ROLE, role="x"), fill(XS_TILE), *_largest(view, "xs")),
    )
    words = fill(HEAD_WORDS, what=fill(what))
    headline_html(title, words, *tiles)


def _largest(view: ScanView, role: str) -> tuple[str, str]:
    """The largest number of a role's gradient in size, with its place; how many are not finite where some are."""
    leaves = [
        leaf for leaf in view.gradient.leaves if leaf.role == role and leaf.values is not None and leaf.values.size
    ]
    wild, total = sum(leaf.wild for leaf in leaves), sum(leaf.values.size for leaf in leaves if leaf.values is not None)
    if not total:
        return fill(NONE), fill(NO_GRADIENT)
    if wild:
        first = view.gradient.first
        return short_number(first.value) if first is not None else "", fill(WILD_TILE, count=wild, total=total)
    best, where = 0.0, ""
    for leaf in leaves:
        values = leaf.values
        if values is None:
            continue
        flat = abs(values.astype(float)).reshape(len(values), -1) if values.ndim else abs(values.astype(float))
        at = int(flat.argmax())
        if float(flat.flat[at]) >= best:
            best = float(flat.flat[at])
            t = at // flat.shape[1] if values.ndim else 0
            where = leaf.type.path if role == "init" else fill(AT, t=t)
            signed = float(values.astype(float).flat[at])
    return short_number(signed), where


def bars_panel(view: ScanView) -> None:
    """Bars over t with their table."""
    picture = gradient_bars(view.gradient)
    if picture is None:
        return
    section(fill(BARS))
    with st.container(border=True, key="gradients_bars_plot_card"):
        st.plotly_chart(
            drawn(presented(picture.figure)),
            key="gradients_bars",
            width="stretch",
            config=chart_config(fill(FILE)),
            alt=picture.alt,
        )
    for note in picture.notes:
        st.caption(note)
    table = st.expander(fill(NUMBERS), key="gradients_bars_table", on_change="rerun")
    if table.open:
        table.dataframe(picture.table, hide_index=True, height=300 if view.gradient.length > 8 else "content")


def leaves_panel(view: ScanView) -> None:
    """Every leaf with its gradient."""
    section(fill(LEAVES))
    with st.container(border=True, key="gradients_leaves"):
        st.html(
            table_html(
                LEAF_HEAD,
                (
                    [
                        role_html(row.role),
                        html.escape(row.path),
                        html.escape(row.type),
                        value_html(row.value, alarm=bool(row.wild)) if row.value else html.escape(fill(NO_GRADIENT)),
                    ]
                    for row in gradient_table(view.gradient)
                ),
            )
        )


def scan_check_of(view: ScanView) -> ScanGradientCheck | None:
    """The comparison, where it was made."""
    kept = st.session_state.get(_CHECKED)
    return kept[1] if kept is not None and kept[0] is view else None


@st.fragment
def scan_check_panel(view: ScanView) -> None:
    """Central differences of the step in float64 beside the gradient."""
    check = scan_check_of(view)
    if check is None:
        check = check_scan_gradient(view.call, view.gradient)
        st.session_state[_CHECKED] = (view, check)
    section(fill(CHECK))
    sign = '<span class="cl-ok">✓</span>' if check.difference.within else '<span class="cl-no">✗</span>'
    compared = fill(COMPARED, compared=check.compared, total=check.total, step=power_text(check.step))
    values = (
        f"{power_text(check.difference.largest)} {sign}",
        tolerance_text(check.difference),
        html.escape(compared),
        html.escape(fill(BENDS, bends=check.bends)),
    )
    rows = [[html.escape(fill(name)), value] for name, value in zip(CHECK_ROWS, values, strict=True)]
    with st.container(border=True, key="gradients_scan_check"):
        st.html(table_html(("", ""), rows if check.bends else rows[:3]))
