"""At the end of the Sequence page: the second run and its differences, the program, the files, and the way to the Doctor."""

from __future__ import annotations

import html
import math
from dataclasses import replace

import streamlit as st

from core.base.text import fill
from core.doctor.link import FIELDS as DOCTOR_FIELDS
from core.doctor.link import SCRIPT
from core.inputs.sequence_compare import Comparison, Row, compared
from core.inputs.sequence_fields import PAGE
from core.inputs.sequence_inputs import SequenceInputs
from core.inputs.sequence_page import SequenceLook
from core.inputs.sequence_rows import CSV_NAME, NPZ_NAME, carry_csv, history_npz
from core.plots.cell_equations import brief
from core.weights.script import file_name
from pages.widgets.frame import section
from pages.widgets.pace import paced
from pages.widgets.state import PageState
from pages.widgets.tables import scroll_box

COMPARED, COMPARED_HINT = "Against {name}", "largest difference over the real steps; dashed in the plot"
HEAD = ("", "this run", "{name}", "largest difference", "values there", "where")
SHAPE, NO_SHAPE = "{shape}", "–"
VALUES = "{one}, {other}"
CODE = "In code"
CODE_NOTE = "The same layer as a script: it runs as it stands here."
DOCTOR, DOCTOR_PAGE = "Open in Doctor", "pages/views/doctor.py"
DOCTOR_HELP = "The same program in the editor, where every line gets its shapes."
NO_FILES = "The program loads a file of weights, and the Doctor reads no files. With the seed's weights it opens there."
FILE_NOTE = "The same layer as a script. It loads {file}: save it under Weights, beside the script."
CSV, NPZ = "Carries as CSV", "Everything as npz"
CSV_HELP = "A line for each example and t, from the initial carry on."
NPZ_HELP = "Carries with the initial one, gates, outputs, data and mask, for np.load."
_SECOND = f"{PAGE}:second"
CSV_TYPE, NPZ_TYPE = "text/csv", "application/octet-stream"


def compare_panel(state: PageState, comparison: Comparison | None) -> None:
    """What differs between the two runs, leaf by leaf."""
    if comparison is None or not comparison.rows:
        return
    section(fill(COMPARED, name=comparison.name), hint=fill(COMPARED_HINT))
    words = [fill(word, name=comparison.name) for word in HEAD]
    head = "".join(f"<th>{html.escape(word)}</th>" for word in words)
    body = "".join(_row(row) for row in comparison.rows)
    with st.container(border=True, key=state.key("compare_card")):
        st.html(
            f'{scroll_box(words)}<table class="cl-table"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
        )


def _row(row: Row) -> str:
    shapes = [fill(NO_SHAPE) if shape is None else fill(SHAPE, shape=shape) for shape in row.shapes]
    largest = "" if row.largest is None else brief(row.largest) if math.isfinite(row.largest) else "∞"
    values = "" if row.values is None else fill(VALUES, one=brief(row.values[0]), other=brief(row.values[1]))
    where = "<br>".join(html.escape(text) for text in (row.place, row.note) if text)
    cells = "".join(f'<td class="cl-mono">{text}</td>' for text in (*shapes, largest, values))
    return f'<tr><th scope="row">{html.escape(row.leaf)}</th>{cells}<td>{where}</td></tr>'


def code_panel(state: PageState, inputs: SequenceInputs, look: SequenceLook, shown: SequenceLook | None) -> None:
    """The program, the way to the Doctor, and the files of what is shown."""
    if look.program:
        with st.expander(fill(CODE), key=state.key("code")):
            used = look.inputs.used
            st.caption(fill(CODE_NOTE) if used is None else fill(FILE_NOTE, file=file_name(used.digest)))
            st.code(look.program, language="python")
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key=state.key("files")):
        if shown is not None and shown.trial is not None and shown.result is not None:
            trial, result = shown.trial, shown.result
            st.download_button(
                fill(CSV),
                lambda: carry_csv(result),
                CSV_NAME,
                CSV_TYPE,
                key=state.key("csv"),
                help=fill(CSV_HELP),
                on_click="ignore",
                icon=":material/download:",
            )
            st.download_button(
                fill(NPZ),
                lambda: history_npz(inputs, trial, result),
                NPZ_NAME,
                NPZ_TYPE,
                key=state.key("npz"),
                help=fill(NPZ_HELP),
                on_click="ignore",
                icon=":material/download:",
            )
        if look.program:
            link = DOCTOR_FIELDS.to_link({**DOCTOR_FIELDS.defaults(), "mode": SCRIPT, "text": look.program})
            problem = fill(NO_FILES) if look.inputs.used is not None else link.problem
            st.page_link(
                DOCTOR_PAGE,
                label=fill(DOCTOR),
                icon=":material/healing:",
                help=problem or fill(DOCTOR_HELP),
                disabled=bool(problem),
                query_params=dict(link.params),
            )


def second_run(inputs: SequenceInputs, shown: SequenceLook) -> Comparison | None:
    """The run to compare with; kept while neither of the two changes."""
    which = inputs.compare, inputs.compare_seed, inputs.compare_hidden, inputs.compare_cell
    kept = st.session_state.get(_SECOND)
    if kept is None or kept[0] is not shown or kept[1] != which:
        names = ("compare", "compare_seed", "compare_hidden", "compare_cell")
        base = replace(shown.inputs, **dict(zip(names, which, strict=True)))
        second = paced(lambda: (compared(base, shown.result),), tuple, first=kept is None)
        if not second:  # it waits
            return None
        kept = st.session_state[_SECOND] = (shown, which, *second)
    comparison: Comparison | None = kept[2]
    return comparison
