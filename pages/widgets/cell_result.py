"""The result of a step on the cell page: the drawn cell, the checks, the shape of everything, the numbers as a table."""

from __future__ import annotations

import html

import numpy as np
import streamlit as st

from core.base.outcome import Report
from core.base.places import Field
from core.base.text import fill
from core.inputs.cell_page import CellLook
from core.plots.cell import NO_FAULTS, Faults, cell_payload, number_rows
from core.plots.cell_tables import CheckRow, check_rows, shape_rows
from core.runners.cells import CellStep
from pages.widgets.cell_drawing import cell_drawing
from pages.widgets.frame import section
from pages.widgets.state import PageState
from pages.widgets.tables import scroll_box

STEP = "One step of {cell}"
CHECKS, SHAPES, NUMBERS = "The same step, worked out otherwise", "Every shape", "All numbers of this example as a table"
EXAMPLE = "example"
UNIT = "unit"
OF = "{name} (0 to {last})"
TOLERANCE = "tolerance"
DIFFERENCE = "largest difference"
FINITE = "every number finite"
YES, NO = "yes", "no: {where}"
OK, BAD = "✓", "✗"
#: Text wraps in these tables: two cards stand beside each other, and a phone is narrower than either.
WRAP = "white-space: normal; overflow-wrap: anywhere"
COLUMNS = ("", "leaf", "type and axes")
#: Types stand in a column of their own as long as the axes have room beside them; on a phone the axes go beneath.
AXES_BOX = "display: inline-block; white-space: nowrap"
TYPE_BOX = f"{AXES_BOX}; min-width: 6.6rem"

#: Which boxes of the drawing an input's fault shows at.
_SLOTS = {"carry": ("c", "h"), "carry_c": ("c",), "carry_h": ("h",), "batch": ("c", "h"), "carry_seed": ("c", "h")}
_SLOTS |= {"input": ("x",), "numbers": ("x",), "cell": ("cell",), "seed": ("cell",)}


def drawn_step(state: PageState, look: CellLook, *, stale: bool) -> None:
    """The cell with its numbers; of what raised only the letters, with the place that broke.

    Args:
        state: the page's inputs.
        look: what is drawn.
        stale: the inputs cannot be read, and this is the last good result.
    """
    step = look.step
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom", key=f"{state.page}_head"
    ):
        section(fill(STEP, cell=look.inputs.cell))
        if step is not None:
            _choose(state, step)
    faults = NO_FAULTS if stale else faults_of(look.report)
    data = cell_payload(
        look.inputs.cell,
        step,
        look.weights,
        example=int(state.values["example"]),
        unit=int(state.values["unit"]),
        faults=faults,
        given=look.given,
        stale=stale,
    )
    cell_drawing(data, key=f"{state.page}_drawing", on_unit=lambda: _take_unit(state))


def _choose(state: PageState, step: CellStep) -> None:
    """Example and unit as inputs: for a link, for a keyboard, and for 256 units."""
    counts = _counts(step)
    with st.container(horizontal=True, gap="small", width="content"):
        for name, count in counts.items():
            words = fill(EXAMPLE if name == "example" else UNIT)
            st.number_input(
                fill(OF, name=words, last=count - 1),
                key=state.key(name),
                disabled=state.locked(name),
                min_value=0,
                max_value=count - 1,
                step=1,
                width=132,
            )


def _counts(step: CellStep) -> dict[str, int]:
    return {"example": max(step.output.size // step.output.shape[-1], 1), "unit": step.output.shape[-1]}


def keep_in_range(state: PageState, step: CellStep) -> None:
    """Bring example and unit back into what this step has; called before any input is drawn."""
    for name, count in _counts(step).items():
        if int(state.values[name]) > count - 1:
            state.set_quietly(name, count - 1)


def _take_unit(state: PageState) -> None:
    chosen = st.session_state.get(f"{state.page}_drawing") or {}
    unit = chosen.get("unit")
    if isinstance(unit, int | float) and unit >= 0:
        st.session_state[state.key("unit")] = int(unit)


def faults_of(report: Report | None) -> Faults:
    """The broken places of a report, by slot of the drawing; the worst of each."""
    broken: dict[str, str] = {}
    flagged: dict[str, str] = {}
    for violation in report.broken if report else ():
        if isinstance(violation.place, Field):
            name = violation.place.key.partition("_")[2]
            for slot in _SLOTS.get(name, ()):
                (flagged if violation.silent else broken).setdefault(slot, violation.code)
    return Faults(broken, {slot: code for slot, code in flagged.items() if slot not in broken})


# --- beneath it -----------------------------------------------------------------------------------------------------


def check_table(step: CellStep) -> None:
    """NumPy, eager and vmap beside the program, with the tolerance, and whether everything is finite."""
    section(fill(CHECKS))
    rows = list(check_rows(step))
    where = ", ".join(not_finite(step))
    rows.append(CheckRow(fill(FINITE), fill(NO, where=where) if where else fill(YES), not where))
    body = "".join(
        f'<tr><th scope="row">{html.escape(row.name)}{_reason(row.why)}</th>'
        f'<td class="cl-mono" style="{WRAP}">{html.escape(row.result)}</td><td>{_sign(row.agrees)}</td></tr>'
        for row in rows
    )
    note = (
        f'<tr><th scope="row">{fill(TOLERANCE)}</th>'
        f'<td class="cl-mono" style="{WRAP}" colspan="2">{step.numpy.tolerance.text}</td></tr>'
    )
    with st.container(border=True):
        head = f"<thead><tr><td></td><th>{fill(DIFFERENCE)}</th><td></td></tr></thead>"
        st.html(f'<table class="cl-table">{head}<tbody>{body}{note}</tbody></table>')


def not_finite(step: CellStep) -> list[str]:
    """The parts of the result that hold a NaN or an infinity."""
    named = [*zip((f"{part}′" for part in step.kind.parts), step.after, strict=True), ("y", step.output)]
    return [name for name, values in named if not np.isfinite(values.astype(np.float32)).all()]


def _reason(why: str) -> str:
    return f'<div class="cl-quiet">{html.escape(why)}</div>' if why else ""


def _sign(agrees: bool | None) -> str:
    if agrees is None:
        return ""
    return f'<span class="cl-ok">{OK}</span>' if agrees else f'<span class="cl-no">{BAD}</span>'


def shape_table(step: CellStep) -> None:
    """Every array with its type and its axes by letter."""
    section(fill(SHAPES))
    head = "".join(f'<th scope="col">{fill(word)}</th>' if word else "<td></td>" for word in COLUMNS)
    body = "".join(
        f'<tr><th scope="row" class="cl-role-{row.role}">{fill(row.word)}</th>'
        f'<td class="cl-mono" style="white-space: normal">{row.path.replace(".", ".<wbr>")}</td>'
        f'<td class="cl-mono" style="white-space: normal"><span style="{TYPE_BOX}">{row.type}</span> <span style="{AXES_BOX}">{row.axes}</span></td></tr>'
        for row in shape_rows(step)
    )
    with st.container(border=True):
        st.html(
            f'{scroll_box(COLUMNS)}<table class="cl-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )


def number_table(step: CellStep, example: int) -> None:
    """The drawing's numbers as a table, folded away."""
    with st.expander(fill(NUMBERS)):
        st.dataframe(number_rows(step, example), hide_index=True, width="stretch")
