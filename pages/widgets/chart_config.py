"""How plotly's charts behave on every page: one button, which saves the picture, and no zoom by the wheel."""

from __future__ import annotations

from typing import Any

#: Plotly's own bar has a dozen buttons; this is the one that a learner needs.
_SAVE = "toImage"
#: Pixels of the picture for each of the page's: sharp on paper and on a projector.
_SCALE = 2


def chart_config(name: str) -> dict[str, Any]:
    """The `config` of `st.plotly_chart`; `name` of the picture's file, without its ending. Works offline."""
    return {
        "displayModeBar": "hover",
        "displaylogo": False,
        "modeBarButtons": [[_SAVE]],
        "toImageButtonOptions": {"format": "png", "scale": _SCALE, "filename": name},
        "scrollZoom": False,
    }
