"""Keeps the keyboard where it was when a rerun takes away the control that had the focus ("Apply", most of all).

A components.v2 widget without a face: Streamlit itself lets the focus fall to the top of the page. WCAG 2.1, success
criterion 2.4.3 (focus order). And it lets Tab reach what scrolls, such as a program with long lines (2.1.1).
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.base.text import fill

#: The name of a box of text that scrolls, for who reads by ear.
SCROLLS = "Text that scrolls"

_mount = st.components.v2.component(
    "carry_lab.focus", html="<span></span>", js=(Path(__file__).parent / "focus.js").read_text(encoding="utf-8")
)


def keep_focus() -> None:
    """Once per page, anywhere on it; takes no room (style.css)."""
    _mount(data={"scrolls": fill(SCROLLS)}, key="keep_focus")
