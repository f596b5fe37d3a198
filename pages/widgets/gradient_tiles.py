"""The headline of each view: a sentence, and beside it the numbers it is about, each in a tile."""

from __future__ import annotations

import html

import streamlit as st

#: A tile's colour by role, from the style sheet.
ROLE = "var(--cl-{role})"


def tile(colour: str, who: str, value: str, how: str, *, hint: str = "", most: bool = False) -> str:
    """One tile as HTML.

    Args:
        colour: CSS.
        who: what the number is of.
        value: the number.
        how: words beneath it.
        hint: a tooltip.
        most: it is the largest.
    """
    return (
        f'<div class="cl-memory-tile{" cl-most" if most else ""}" style="--cl-tile: {colour}" '
        f'title="{html.escape(hint, quote=True)}"><span class="cl-who">{html.escape(who)}</span>'
        f'<b>{html.escape(value)}</b><span class="cl-how">{html.escape(how)}</span></div>'
    )


def headline_html(title: str, words: str, *tiles: str) -> None:
    """The sentence, what it means, and the tiles."""
    head = f'<h2 class="cl-memory-title">{html.escape(title)}<small>{html.escape(words)}</small></h2>'
    st.html(f'<div class="cl-memory" role="status">{head}{"".join(tiles)}</div>')
