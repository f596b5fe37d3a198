"""The Doctor: paste a step or a script, see every shape, get the verdict at the exact place, apply a fix that works."""

import streamlit as st

from core.doctor.link import STEP
from pages.widgets.cards import link_refusals, undo_line
from pages.widgets.doctor_backend import seat
from pages.widgets.doctor_cards import cards, error_explained, printed, stand_in_forms
from pages.widgets.doctor_check import settle, watch
from pages.widgets.doctor_editor import editor, paste_notes, script_as_file, step_fields, toolbar
from pages.widgets.doctor_open import gallery, ways
from pages.widgets.doctor_scans import result_panel, scan_panels
from pages.widgets.doctor_shown import shown
from pages.widgets.doctor_state import DoctorState
from pages.widgets.doctor_strip import strip_row, tell
from pages.widgets.frame import calm
from pages.widgets.verdict import verdict_slots


def page() -> None:
    """Read the inputs, settle what is known of them, draw; the strip watches what is still under way."""
    state = DoctorState()
    state.start()
    strip, menus = verdict_slots()
    seat()
    script = state.script
    look = settle(script.text if state.code.strip() else "", state.asked, lambda look: tell(strip, look, None))
    now = shown(look, script, state)
    if look.job is None:
        tell(strip, look, now.report)
    else:
        with strip.container():
            watch(look, state.asked, lambda look: tell(st.empty(), look, now.report))
    with calm("doctor menus"):
        strip_row(state, look, now, menus)
    link_refusals(state)
    script_as_file(state)
    news = False
    left, right = st.columns([0.6, 0.4], gap="medium")
    with left.container(key="doctor_left", gap="small"), calm("doctor editor"):
        toolbar(state)
        news = editor(state, look, now)
        if state.mode == STEP:
            step_fields(state, now)
        paste_notes(state, look)
        if look.empty:
            gallery(state)
    with left.container(key="doctor_pictures", gap="small"), calm("doctor scans"):
        scan_panels(now.scans)
    with right.container(key="doctor_right", gap="small"), calm("doctor answer"):
        undo_line(state)
        if look.empty:
            ways()
        cards(state, look, now)
        error_explained(look)
        stand_in_forms(state, look)
        printed(look)
        result_panel(now.scans)
    if news:
        st.rerun()


with calm("doctor page"):
    page()
