"""The class around a page: controls that a teacher's link hides or locks, presentation mode, and how such a link is made.

Kept in the session and in every address. Hidden controls keep their values; what is locked is put back by the server
(`PageState`) and drawn disabled; the style sheet only marks it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from core.base.text import fill
from core.inputs.class_panels import controls, drawn_as, hideable
from core.inputs.classroom import NAMES, Classroom
from core.inputs.fields import InputField
from core.plots.projector import enlarged

PANEL = "For a class"
PANEL_HELP = "A link that opens this page as it is, with controls hidden or locked, or large enough for a projector."
HIDE_LABEL, LOCK_LABEL = "Hide these panels and controls", "Lock these controls"
PRESENT_LABEL = "Presentation mode: large, nothing but the page"
LINK_LABEL = "The link"
LEAVE = "Leave presentation mode"
#: Code and numbers are 0.8 rem (12.8 px) at the least; on a projector they must be 20 px.
ZOOM = 1.7

#: How what is locked is marked, beside being disabled.
LOCK_MARK = 'content: "🔒"; position: absolute; right: 0; top: 0; font-size: 0.75rem;'
_SETTINGS, _HIDEABLE, _LOCKABLE = "class:settings", "class:hideable", "class:lockable"
_HEADING = ".stElementContainer:has(h2.cl-section)"


def enter_class() -> None:
    """Called by the frame before a page runs: what the address says counts; where it says nothing, what was set before."""
    params = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    # What was written by this session itself is not read again: what it refused would be forgotten.
    if _SETTINGS not in st.session_state or (params and params != classroom().params):
        st.session_state[_SETTINGS] = Classroom.of_link(params)


def classroom() -> Classroom:
    """What is set in this session."""
    settings: Classroom = st.session_state.get(_SETTINGS, Classroom())
    return settings


def tell_fields(page: str, fields: tuple[InputField, ...]) -> None:
    """Called by a page's state: what can be hidden and locked on it."""
    st.session_state[_HIDEABLE], st.session_state[_LOCKABLE] = hideable(page, fields), controls(page, fields)


def class_style() -> None:
    """The style of what is hidden and locked, and of presentation mode."""
    settings = classroom()
    # A panel goes with its heading, and with the box that the page lays around it.
    rules = [
        f".stApp .st-key-{key} {{ display: none; }} .stApp [data-testid=stLayoutWrapper]:has(> .st-key-{key}),"
        f" .stApp {_HEADING}:has(+ [data-testid=stLayoutWrapper] > .st-key-{key}) {{ display: none; }}"
        for one in settings.hide
        for key in drawn_as(one)
    ]
    rules += [
        f".stApp .st-key-{key} {{ position: relative; }} .stApp .st-key-{key}::after {{ {LOCK_MARK} }}"
        for one in settings.lock
        for key in drawn_as(one)
    ]
    if settings.present:
        rules.append(
            ".stApp :is([data-testid=stSidebar], [data-testid=stHeader], [data-testid=stExpandSidebarButton]) { display: none; }"
            f".stApp .stMainBlockContainer {{ zoom: {ZOOM}; padding: 0.3rem 0.9rem 2rem; }}"
            # Plotly and the mouse over it count in pixels of the screen: a chart is not zoomed, its figure is (`presented`).
            f".stApp [data-testid=stPlotlyChart] {{ zoom: {1 / ZOOM:.6f}; }}"
            ".stApp [data-testid=stPlotlyChart] svg text { font-size: 20px !important; }"
            # Code in a caption or a label is smaller than its text: 12 px are 20 on the screen.
            ".stApp .stMainBlockContainer :not(pre) > code { font-size: max(0.85em, 12px); }"
            # A number has the room of its two buttons; the arrow keys do the same.
            ".stApp .stMainBlockContainer :is([data-testid=stNumberInputStepDown], [data-testid=stNumberInputStepUp])"
            " { display: none; }"
            # A table measures its box on the screen, zoom included, and is drawn that wide before it is zoomed.
            ".stApp [data-testid=stFullScreenFrame]:has(> [data-testid=stDataFrame])"
            f" {{ width: {100 / ZOOM:.4f}% !important; }}"
            ".stApp [data-testid=stDataFrame] { overflow: visible !important; }"
        )
    if rules:
        st.html(f"<style>{' '.join(rules)}</style>")


def presented(figure: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plotly figure as this session shows it: larger in presentation mode."""
    return enlarged(figure, ZOOM) if classroom().present else figure


def class_panel() -> None:
    """Where such a link is made; in presentation mode only the way out of it. Drawn by the frame after the page."""
    if classroom().present:
        st.button(fill(LEAVE), key="class_leave", on_click=_set, args=(False,), type="tertiary")
        return
    hideable_now: Mapping[str, str] = st.session_state.get(_HIDEABLE, {})
    lockable: Mapping[str, str] = st.session_state.get(_LOCKABLE, {})
    for key, known, now in (
        ("class_hide", hideable_now, classroom().hide),
        ("class_lock", lockable, classroom().lock),
    ):
        # What was chosen on another page, or for another preset, is nothing that can be chosen here.
        st.session_state[key] = [one for one in st.session_state.get(key, now) if one in known]
    with st.sidebar, st.popover(fill(PANEL), key="class_panel"):
        st.caption(fill(PANEL_HELP))
        hide = st.multiselect(
            fill(HIDE_LABEL), list(hideable_now), format_func=hideable_now.__getitem__, key="class_hide"
        )
        lock = st.multiselect(fill(LOCK_LABEL), list(lockable), format_func=lockable.__getitem__, key="class_lock")
        present = st.toggle(fill(PRESENT_LABEL), key="class_present")
        st.caption(fill(LINK_LABEL))
        st.code(
            _link(replace(Classroom(), hide=tuple(hide), lock=tuple(lock), present=present, lesson=classroom().lesson)),
            language=None,
            wrap_lines=True,
        )


def _link(settings: Classroom) -> str:
    """This page's address with these settings."""
    parts = urlsplit(str(st.context.url or ""))
    query = {name: value for name, value in st.query_params.items() if name not in NAMES}
    return urlunsplit(
        (parts.scheme, parts.netloc, parts.path, urlencode({**query, **settings.params}, safe=",:/[]"), "")
    )


def _set(present: bool) -> None:
    set_class(replace(classroom(), present=present))


def set_class(settings: Classroom) -> None:
    """From now on this is set for the class, in the session and in the address."""
    st.session_state[_SETTINGS] = settings
    others = {name: value for name, value in st.query_params.items() if name not in NAMES}
    st.query_params.from_dict({**others, **settings.params})
