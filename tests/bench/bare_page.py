"""The bare Streamlit page that ours are compared with: the same number of widgets of each kind, the same traces, no more.

What it draws is told by a file (`BARE_PLAN`, made by `tests.bench.plan` from what the real page sent): kinds and counts of
widgets, and figures worked out before. JAX is imported and the heap frozen, as the app does. The first number input (or
text input) moves the figures, and what it says is written on the page. No component of our own is in it, none of our
tables and texts: it is what the widgets and traces alone cost. Whoever changes it says why, here: every ratio is against it.
"""

from __future__ import annotations

import gc
import json
import os
from pathlib import Path

import flax.nnx  # noqa: F401  # in the heap, as in ours
import jax  # noqa: F401
import streamlit as st


@st.cache_resource(show_spinner=False)
def plan() -> dict:
    """What is drawn; read once, then the heap is frozen."""
    found = json.loads(Path(os.environ["BARE_PLAN"]).read_text(encoding="utf-8"))
    gc.collect()
    gc.freeze()
    return found


MAKE = {
    "number_input": lambda i: st.number_input(f"number {i}", -1e9, 1e9, 0.0, key=f"number_{i}", format="%g"),
    "text_input": lambda i: st.text_input(f"text {i}", "0", key=f"text_{i}"),
    "selectbox": lambda i: st.selectbox(f"choice {i}", ["a", "b", "c"], key=f"choice_{i}"),
    "multiselect": lambda i: st.multiselect(f"choices {i}", ["a", "b", "c"], key=f"choices_{i}"),
    "checkbox": lambda i: st.checkbox(f"check {i}", key=f"check_{i}"),
    "slider": lambda i: st.slider(f"slider {i}", 0.0, 1.0, 0.5, key=f"slider_{i}"),
    "button": lambda i: st.button(f"button {i}", key=f"button_{i}"),
    "download_button": lambda i: st.download_button(f"download {i}", b"x", key=f"download_{i}"),
    "button_group": lambda i: st.pills(f"pills {i}", ["a", "b", "c"], key=f"pills_{i}"),
    "file_uploader": lambda i: st.file_uploader(f"file {i}", key=f"file_{i}"),
    "dataframe": lambda i: st.data_editor({"x": [1.0, 2.0, 3.0]}, key=f"data_{i}"),
    "text_area": lambda i: st.text_area(f"area {i}", key=f"area_{i}"),
}

st.set_page_config(layout="wide")
drawn = plan()
left, right = st.columns(2)
with left:
    for kind, count in drawn["widgets"].items():
        for index in range(count):
            MAKE[kind](index)
moved = str(st.session_state.get(drawn["moves"], ""))
with right:
    st.markdown(f"value ({moved})")
    every = drawn["figures"]
    # One set of figures or the next, by the last digit: the browser has something to draw.
    for place, figure in enumerate(every[sum(map(ord, moved)) % len(every)] if every else ()):
        st.plotly_chart(figure, key=f"chart_{place}", config={"displayModeBar": False})
