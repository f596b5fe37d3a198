"""The carry over time: the figure, its words, and its numbers as a table on demand."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.base.results import ScanResult
from core.base.text import fill
from core.plots.drawn import drawn
from core.plots.trajectory import trajectory
from pages.widgets.chart_config import chart_config
from pages.widgets.classroom import presented

CHART = "scan_trajectory"
NUMBERS = "The numbers as a table"
#: Of a saved picture.
FILE = "carry-lab-{page}-carry"
#: Rows of the table that are shown at once; more scroll.
_ROWS = 6
#: The legend of a narrow plot, and its pixels.
_BELOW = {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.22, "yanchor": "top"}
_LEGEND = 50


def trajectory_panel(result: ScanResult, names: Mapping[str, str], *, page: str = "scan", narrow: bool = False) -> None:
    """The trajectory of one run; `names` are the short names of the carry's leaves by path, `page` prefixes the keys.

    `narrow`: the legend stands below the plot, where it meets no title.
    """
    plot = trajectory(result.carries, names, reverse=result.reverse)
    if plot.figure is not None:
        if narrow and plot.figure["layout"]["showlegend"]:
            plot.figure["layout"] |= {"legend": _BELOW, "height": plot.figure["layout"]["height"] + _LEGEND}
        with st.container(border=True, key=f"{page}_plot_card"):
            st.plotly_chart(
                drawn(presented(plot.figure)),
                key=f"{page}_trajectory",
                width="stretch",
                config=chart_config(fill(FILE, page=page)),
                alt=plot.alt,
            )
    for note in plot.notes:
        st.caption(note)
    shown = st.expander(fill(NUMBERS), key=f"{page}_numbers_table", on_change="rerun")
    if shown.open:
        rows = len(next(iter(plot.table.values())))
        shown.dataframe(plot.table, hide_index=True, height=260 if rows > _ROWS else "content")
