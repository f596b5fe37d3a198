"""The left side of the Doctor: what is checked, Open, Run, and the editor with its faults and shapes."""

from __future__ import annotations

import html
from collections.abc import Mapping

import streamlit as st

from core.base.text import fill
from core.base.violation import Severity
from core.doctor.link import SCRIPT, STEP
from core.doctor.prep import Kind
from core.doctor.step_mode import looks_whole
from pages.widgets.cards import Mark, draw_marks, field_marks
from pages.widgets.doctor_check import Look
from pages.widgets.doctor_open import open_menu
from pages.widgets.doctor_shown import Shown
from pages.widgets.doctor_state import CODE, EDITORS, DoctorState
from pages.widgets.editor import code_editor, diagnostics_of, editor_available

MODES = {SCRIPT: "Whole script", STEP: "Step only"}
RUN_PLAIN = "Run"
RUN = "Run :small[Ctrl+Enter]"
PLACEHOLDER = "Paste a script, a step, a notebook or an error here"
STEP_PLACEHOLDER = "def step(carry, x): …"
INIT, XS = "init", "xs"
CODE_PLACE = "doctor_step_is_whole"
XS_HELP = "An expression. Further arguments of the scan may follow: None, length=5"
INIT_HELP = "An expression: the first carry. It sets the contract: shapes, dtypes, structure."
NO_EDITOR = "This is a plain text area: {reason}."
CELLS, CELLS_OPENED = "Show the notebook's code in the editor", "the notebook's code"
LOOKS_WHOLE = "This code calls a scan itself, so it is a whole script, not a step."
AS_SCRIPT, AS_SCRIPT_DONE = "Check it as a whole script", "the code as a whole script"
AS_FILE = "Take it along as a file (.py)"
AS_FILE_SAYS = "Whoever gets the file finds this script again: Open, then choose it, or drop it on the editor."
FILE = "script.py"
NAMES_HELP = "jax, jnp, lax, nnx and np are imported."
#: Pixels that the editor grows to before it scrolls.
_HEIGHT, _STEP_HEIGHT = 640, 420


def toolbar(state: DoctorState) -> None:
    """Mode, Open, Run."""
    with st.container(horizontal=True, vertical_alignment="center", key="doctor_toolbar", gap="small"):
        st.segmented_control(
            state.table.field("mode").label,
            list(MODES),
            key=state.key("mode"),
            disabled=state.locked("mode"),
            format_func=lambda mode: fill(MODES[mode]),
            label_visibility="collapsed",
            required=True,
        )
        st.space("stretch")
        open_menu(state)
        st.button(
            fill(RUN_PLAIN if editor_available() else RUN),
            key="doctor_run",
            type="primary",
            icon=":material/play_arrow:",
            on_click=state.ask,
            # The editor sends its text and the wish to run in one; the plain text area leaves the keys to the button.
            shortcut="Ctrl+Enter" if editor_available() else None,
        )


def editor(state: DoctorState, look: Look, now: Shown) -> bool:
    """The editor of the mode. Whether it only now says something new: then the page is to be run again, once drawn."""
    whole = state.mode == SCRIPT
    answer = look.answer
    report = None if now.stale else now.report
    if answer is not None and answer.kind is Kind.NOTEBOOK:
        report = None  # its places are in the script that was made of the cells
    event = code_editor(
        state.code,
        key=EDITORS[state.mode],
        revision=state.revision,
        diagnostics=None if now.stale else diagnostics_of(report),  # None: what is drawn stays, dimmed
        shapes=() if now.stale else now.shapes,
        placeholder=fill(PLACEHOLDER if whole else STEP_PLACEHOLDER),
        height=_HEIGHT if whole else _STEP_HEIGHT,
        read_only=state.locked(CODE[state.mode]),
    )
    before = state.code
    ran = state.heard(event.text, event.run)
    if ran:
        state.ask()
    reason = editor_available()
    if reason:
        st.caption(fill(NO_EDITOR, reason=reason))
    return ran or state.code != before


def step_fields(state: DoctorState, now: Shown) -> None:
    """Init and xs, with the faults that are theirs and the types that they have."""
    if looks_whole(state.code):
        draw_marks({CODE_PLACE: [Mark(Severity.NOTE, fill(LOOKS_WHOLE))]}, CODE_PLACE)
        st.button(
            fill(AS_SCRIPT), key="doctor_as_script", on_click=state.open_text, args=(state.code, fill(AS_SCRIPT_DONE))
        )
    marks = field_marks(now.report)
    types = now.scans[0] if now.scans and not now.stale else None
    left, right = st.columns(2, gap="small")
    for column, name, words, found in (
        (left, INIT, INIT_HELP, types.carry if types is not None else {}),
        (right, XS, XS_HELP, types.xs if types is not None else {}),
    ):
        with column:
            st.text_input(fill(name), key=state.key(name), disabled=state.locked(name), help=fill(words))
            if found:
                st.html(f'<p class="cl-types-line">{_types(found)}</p>')
            draw_marks(marks, state.key(name))
    st.caption(fill(NAMES_HELP))


def script_as_file(state: DoctorState) -> None:
    """Where the script is longer than a link holds, which `link_refusals` says: the same as a file, right there."""
    if state.link_problem:
        with st.container(horizontal=True, vertical_alignment="center", key="doctor_as_file"):
            st.download_button(
                fill(AS_FILE),
                state.script.text,
                FILE,
                "text/x-python",
                key="doctor_long_script",
                on_click="ignore",
                help=fill(AS_FILE_SAYS),
            )


def _types(leaves: Mapping[str, str]) -> str:
    if len(leaves) == 1:
        return html.escape(next(iter(leaves.values())))
    return html.escape(" · ".join(f"{path} {kind}" for path, kind in leaves.items()))


def paste_notes(state: DoctorState, look: Look) -> None:
    """What was done to the paste before it was read."""
    answer = look.answer
    if answer is not None and answer.kind is Kind.NOTEBOOK and answer.script:
        st.button(fill(CELLS), key="doctor_cells", on_click=state.open_text, args=(answer.script, fill(CELLS_OPENED)))
    if answer is not None and answer.notes:
        draw_marks({"paste": [Mark(Severity.NOTE, note) for note in answer.notes]}, "paste")
