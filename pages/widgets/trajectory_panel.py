"""The carry over time: the figure, its words, and its numbers as a table on demand."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.base.results import ScanResult
from core.base.text import fill
from core.plots.trajectory import trajectory

CHART = "scan_trajectory"
NUMBERS = "The numbers as a table"
#: Rows of the table that are shown at once; more scroll.
_ROWS = 6
_CONFIG = {"displayModeBar": False, "scrollZoom": False}


def trajectory_panel(result: ScanResult, names: Mapping[str, str]) -> None:
    """The trajectory of one run; `names` are the short names of the carry's leaves by path."""
    plot = trajectory(result.carries, names, reverse=result.reverse)
    if plot.figure is not None:
        # The template whose colours Streamlit's front end replaces by the theme's, in light and in dark.
        plot.figure["layout"]["template"] = "streamlit"
        with st.container(border=True, key="scan_plot_card"):
            st.plotly_chart(plot.figure, key=CHART, width="stretch", config=_CONFIG, alt=plot.alt)
    for note in plot.notes:
        st.caption(note)
    shown = st.expander(fill(NUMBERS), key="scan_numbers_table", on_change="rerun")
    if shown.open:
        rows = len(next(iter(plot.table.values())))
        shown.dataframe(plot.table, hide_index=True, height=260 if rows > _ROWS else "content")
