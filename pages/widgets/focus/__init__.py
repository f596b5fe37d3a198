"""Keeps the keyboard where it was when a rerun takes away the control that had the focus ("Apply", most of all).

A components.v2 widget without a face: Streamlit itself lets the focus fall to the top of the page. WCAG 2.1, success
criterion 2.4.3 (focus order).
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

_mount = st.components.v2.component(
    "carry_lab.focus", html="<span></span>", js=(Path(__file__).parent / "focus.js").read_text(encoding="utf-8")
)


def keep_focus() -> None:
    """Once per page, anywhere on it; takes no room (style.css)."""
    _mount(key="keep_focus")
