"""How plotly's charts behave on every page: one button, which saves the picture, and no zoom by the wheel.

Plotly's button saves in one format, which stands in the chart's configuration; which one is chosen in the menu "Export",
once for all charts of the session.
"""

from __future__ import annotations

from typing import Any

import streamlit as st

from core.base.text import fill

#: Plotly's own bar has a dozen buttons; this is the one that a learner needs.
_SAVE = "toImage"
#: Pixels of the picture for each of the page's: sharp on paper and on a projector.
_SCALE = 2
#: How plotly names a format, and how people do.
FORMATS = {"png": "PNG", "svg": "SVG"}
FORMAT, FORMAT_HELP = "Picture as", "PNG has fixed pixels; SVG stays sharp at any size and can be edited."
_FORMAT_KEY = "picture_format"


def chart_config(name: str) -> dict[str, Any]:
    """The `config` of `st.plotly_chart`; `name` of the picture's file, without its ending. Works offline."""
    kind = st.session_state.get(_FORMAT_KEY)
    return {
        "displayModeBar": "hover",
        "displaylogo": False,
        "modeBarButtons": [[_SAVE]],
        "toImageButtonOptions": {"format": kind if kind in FORMATS else "png", "scale": _SCALE, "filename": name},
        "scrollZoom": False,
    }


def picture_format() -> None:
    """The choice of the format, in the menu; every page has the same one."""
    st.segmented_control(
        fill(FORMAT),
        list(FORMATS),
        default="png",
        required=True,
        format_func=FORMATS.__getitem__,
        key=_FORMAT_KEY,
        help=fill(FORMAT_HELP),
        persist_state="session",
    )
