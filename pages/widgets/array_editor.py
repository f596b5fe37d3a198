"""The table of typed numbers: t across, features down. Edits are folded into the one text that a link carries.

`st.data_editor` keeps edits in the browser by its key and cannot be written to. So its key carries the revision of the
page's state: whatever changes the numbers from outside (a fix, undo, a paste) gives a fresh editor.
"""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from core.base.text import fill
from core.inputs.cells import Cells, edited, join_cells, split_cells
from pages.widgets.state import PageState

ROW = "x"
ROW_FEATURE = "x[{feature}]"
ALT = "The sequence xs as a table: a column for each step t, a row for each feature"
TOO_LARGE = "These numbers make no table of a readable size: edit them as text."
EMPTY = "The sequence is empty: T = 0."


def array_editor(state: PageState, name: str = "numbers", *, across: str = "t", alt: str = ALT) -> None:
    """Edit the typed numbers of field `name` as a table.

    Args:
        state: the page's inputs.
        name: the field that holds the text.
        across: what a column is: a step t, or an example.
        alt: what the table is, for a screen reader.
    """
    cells = _cells(state, name)
    if cells is None:
        st.text_area(
            fill(alt), key=state.key(name), disabled=state.locked(name), label_visibility="collapsed", height=140
        )
        st.caption(fill(TOO_LARGE))
        return
    if not cells or not cells[0]:
        st.caption(fill(EMPTY))
        return
    width = len(cells[0])
    rows = [fill(ROW)] if width == 1 else [fill(ROW_FEATURE, feature=feature) for feature in range(width)]
    frame = pd.DataFrame(list(zip(*cells, strict=True)), index=rows, columns=[str(t) for t in range(len(cells))])
    frame.index.name = across
    key = _key(state)
    with st.container(key=state.key("table_panel")):
        st.data_editor(
            frame,
            key=key,
            on_change=_fold,
            args=(state, name, key),
            disabled=True if state.locked(name) else [across],
            width="stretch",
            column_config={across: st.column_config.TextColumn(pinned=True, width=60)}
            | {column: st.column_config.TextColumn(width=58) for column in frame.columns},
            alt=fill(alt),
        )


def _key(state: PageState) -> str:
    return state.key("table") + (f"_{state.revision}" if state.revision else "")


def _cells(state: PageState, name: str) -> Cells | None:
    """The cells as they were left, while the text is still theirs; else the text taken apart."""
    text = str(state.values[name])
    kept: Any = st.session_state.get(_kept(state))
    return kept[1] if kept is not None and kept[0] == text else split_cells(text)


def _kept(state: PageState) -> str:
    return f"{state.page}:cells"


def _fold(state: PageState, name: str, key: str) -> None:
    """Put the edits into the text. They stay in the editor too, over the same cells: folding twice changes nothing."""
    cells = _cells(state, name)
    if cells is None:
        return
    changes: dict[int, dict[str, object]] = st.session_state[key]["edited_rows"]
    edits = [
        (int(column), feature, value)
        for feature, row in changes.items()
        for column, value in row.items()
        if column.isdigit()
    ]
    cells = edited(cells, edits)
    text = join_cells(cells)
    st.session_state[_kept(state)] = (text, cells)
    state.set_quietly(name, text)
