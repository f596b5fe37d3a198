"""Ways to a script: a file, one of the guides', a broken one of ours; and the page before there is any."""

from __future__ import annotations

import json
from typing import Literal

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from core.base.limits import LIMITS
from core.base.text import fill
from core.doctor.gallery import BROKEN, GUIDES, Example
from pages.widgets.cards import escape
from pages.widgets.doctor_state import DoctorState
from pages.widgets.frame import section

OPEN = "Open"
FILE = "A file: .py, .ipynb or .md"
GUIDE, TRY = "From the guides", "Try a broken one"
SILENT_ROW, RAISED_ROW = "JAX is silent", "JAX raises"
BUTTON = "{title} :small[{code}]"
NOT_TEXT = "{name} is no text file (UTF-8); nothing was changed."
TOO_LARGE = "{name} holds {count:,} characters, more than the {limit:,} that a script may have; nothing was changed."
NO_CELLS = "{name} has no code cells; nothing was changed."
CODE_WAY = (
    "A step or a whole script, straight from where it fails: prompts, Markdown fences, notebook cells and `%magic` "
    "lines are understood. While typing rests, every line gets its shapes; Ctrl+Enter runs it in a worker of its own."
)
ERROR_WAY = "Only the error text at hand? Paste that: it leads to the code of the catalogue that it belongs to."
WAYS = (
    (":material/content_paste:", "Paste code", CODE_WAY),
    (":material/error:", "Paste an error", ERROR_WAY),
)
TRY_HINT = "real mistakes, each with a fix that works"
TYPES = ["py", "ipynb", "md", "txt"]

#: The menu; its session state is whether it is open.
MENU = "doctor_open"

_REFUSED = "doctor:file_refused"


def open_menu(state: DoctorState) -> None:
    """The menu beside Run."""
    with (
        st.popover(fill(OPEN), key=MENU, icon=":material/folder_open:", on_change="rerun"),
        st.container(gap="xsmall", key="doctor_open_menu"),
    ):
        key = f"doctor_file_{state.revision}"  # a file is opened once: what was opened leaves an empty box behind
        st.file_uploader(fill(FILE), TYPES, key=key, on_change=_open_file, args=(state, key))
        refused = st.session_state.pop(_REFUSED, "")
        if refused:
            st.warning(escape(refused))
        st.caption(fill(GUIDE))
        for example in GUIDES:
            _button(state, example, "doctor_guide", width="stretch")
        st.caption(fill(TRY))
        for example in BROKEN:
            _button(state, example, "doctor_open_example", width="stretch")


def ways() -> None:
    """What an empty page is for."""
    for number, (icon, title, text) in enumerate(WAYS):
        with st.container(border=True, key=f"doctor_way_{number}", gap="xsmall"):
            st.markdown(f"**{icon} {fill(title)}**")
            st.markdown(fill(text))


def gallery(state: DoctorState) -> None:
    """Broken scripts to begin with."""
    section(fill(TRY), hint=fill(TRY_HINT))
    with st.container(border=True, key="doctor_gallery"):
        for column, silent, words in zip(
            st.columns(2, gap="medium"), (True, False), (SILENT_ROW, RAISED_ROW), strict=True
        ):
            with column.container(gap="xsmall", key=f"doctor_gallery_{'silent' if silent else 'raised'}"):
                st.caption(fill(words))
                for example in BROKEN:
                    if example.silent is silent:
                        _button(state, example, "doctor_try", width="stretch")


def _button(
    state: DoctorState, example: Example, prefix: str, width: Literal["content", "stretch"] = "content"
) -> None:
    title = fill(example.title)
    st.button(
        fill(BUTTON, title=escape(title), code=example.code) if example.code else escape(title),
        key=f"{prefix}_{example.name}",
        on_click=_open_example,
        args=(state, example),
        width=width,
    )


def _open_example(state: DoctorState, example: Example) -> None:
    st.session_state[MENU] = False  # what was picked is there to be seen
    state.open_example(example)


# --- files ----------------------------------------------------------------------------------------------------------


def _open_file(state: DoctorState, key: str) -> None:
    file: UploadedFile | None = st.session_state.get(key)
    if file is None:
        return
    text, refusal = read_file(file.name, file.getvalue())
    if refusal:
        st.session_state[_REFUSED] = refusal
    else:
        st.session_state[MENU] = False
        state.open_text(text, file.name)


def read_file(name: str, data: bytes) -> tuple[str, str]:
    """The script in a file, and why it cannot be opened ("" when it can).

    Of a notebook the code cells are kept as a notebook: what is printed beside them may be megabytes. What is in
    them is read where every script is read, in the worker.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return "", fill(NOT_TEXT, name=name)
    if name.lower().endswith(".ipynb"):
        cells = _code_cells(text)
        if not cells:
            return "", fill(NO_CELLS, name=name)
        text = cells
    limit = LIMITS["script_text"].value
    if len(text) > limit:
        return "", fill(TOO_LARGE, name=name, count=len(text), limit=limit)
    return text.replace("\r\n", "\n").replace("\r", "\n"), ""


#: Between the cells of a notebook.
CELL = "# cell {number}"


def _code_cells(text: str) -> str:
    """The code cells of a notebook, one below the other; "" when there are none."""
    try:
        data = json.loads(text)
        cells = [cell["source"] for cell in data["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(source) for source in cells]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    parts = [f"{fill(CELL, number=n)}\n{source.rstrip()}\n" for n, source in enumerate(sources, 1) if source.strip()]
    return "\n".join(parts)
