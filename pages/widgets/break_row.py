"""What a scan is, in one sentence, and the "Break it" row: one click to a real mistake, one click back."""

from __future__ import annotations

import streamlit as st

from core.base.text import fill
from core.inputs.break_it import BREAK_IT, break_edit
from pages.widgets.state import PageState

SENTENCE = "A scan runs one step over a sequence, handing a carry along."
BREAK_IT_LABEL = "Break it:"
BROKEN, BACK = "Broken on purpose: {title}.", "Put it back"


def break_row(state: PageState) -> None:
    """The sentence and the buttons."""
    with st.container(key="scan_intro", horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.html(f'<p class="cl-intro">{fill(SENTENCE)} <b>{fill(BREAK_IT_LABEL)}</b></p>')
        for mistake in BREAK_IT:
            st.button(
                fill(mistake.label),
                key=f"scan_break_{mistake.id}",
                help=fill(mistake.help),
                on_click=state.edit,
                args=(break_edit(mistake, state.values), fill(mistake.label), BROKEN, BACK),
                kwargs={"good": False},
            )
