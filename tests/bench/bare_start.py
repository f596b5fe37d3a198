"""The page that a start is compared with: plain Streamlit, jax imported, the opening page's three points in one plot."""

import jax.numpy  # noqa: F401  # what is compared is a page that has it
import streamlit as st

st.plotly_chart(
    {"data": [{"type": "scatter", "y": [0, 1, 3, 6]}, {"type": "scatter", "y": [1, 3, 6]}], "layout": {"height": 300}}
)
