"""A button that copies the page's address: the whole state of a page is in it.

A components.v2 widget without a rerun: the address is that of the browser, as it stands at the click. On plain http,
where browsers give no clipboard to a page, it copies by selecting; where that is refused too, it shows the address,
selected.
"""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from core.base.text import fill

LABEL = "Copy link"
SAYS = "Copies the address: whoever opens it gets this page as it stands."
DONE = "copied"
BY_HAND = "Copy it from here:"

_HERE = Path(__file__).parent

_mount = st.components.v2.component(
    "carry_lab.copy_link",
    html='<div class="copy-link"></div>',
    css=(_HERE / "copy_link.css").read_text(encoding="utf-8"),
    js=(_HERE / "copy_link.js").read_text(encoding="utf-8"),
)


def copy_link(*, key: str, says: str = "", problem: str = "") -> None:
    """The button.

    Args:
        key: the widget's key.
        says: what it does, in a tooltip; "" for the usual words.
        problem: why the address does not lead back here, a sentence; then the click says that and copies nothing.
    """
    words = {"label": fill(LABEL), "says": says or fill(SAYS), "done": fill(DONE), "byHand": fill(BY_HAND)}
    _mount(data={**words, "problem": problem}, key=key, width="content")
