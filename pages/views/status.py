"""How the server is: for whoever runs it, and for whoever wonders why they wait. Nothing here is anybody's."""

from pathlib import Path

import streamlit as st

from core.base.text import fill
from pages.widgets.classroom import tell_fields
from pages.widgets.doctor_backend import backend
from pages.widgets.frame import calm
from pages.widgets.status_limits import limits_table
from pages.widgets.status_now import (
    faults_table,
    measures_line,
    pages_table,
    parts_table,
    programs_table,
    strip_of,
)
from pages.widgets.status_walls import walls_table, workers_table
from pages.widgets.verdict import verdict_slot, verdict_strip

AGAIN = "Look again"
_STYLE = Path(__file__).parents[1] / "widgets" / "status_style.css"


def page() -> None:
    """All of it, as it is now."""
    strip = verdict_slot()
    tell_fields("status", ())
    st.html(_STYLE)
    pool = backend().status()
    verdict_strip(strip, strip_of(pool))
    st.button(fill(AGAIN), key="status_again", icon=":material/refresh:")
    left, right = st.columns(2, gap="medium")
    with left:
        pages_table()
        parts_table()
        programs_table()
        measures_line()
    with right:
        faults_table()
        workers_table(pool)
    walls_table(pool)
    limits_table()


with calm("status page"):
    page()
