"""The class around a page: controls that a teacher's link hides or locks, presentation mode, and how such a link is made.

Kept in the session and in every address. Hidden controls keep their values; what is locked is put back by the server
(`PageState`), the style sheet only says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from core.base.text import fill
from core.inputs.classroom import NAMES, Classroom
from core.inputs.fields import InputField

PANEL = "For a class"
PANEL_HELP = "A link that opens this page as it is, with controls hidden or locked, or large enough for a projector."
HIDE_LABEL, LOCK_LABEL = "Hide these controls", "Lock these controls"
PRESENT_LABEL = "Presentation mode: large, nothing but the page"
LINK_LABEL = "The link"
LEAVE = "Leave presentation mode"
#: Code and numbers are 0.8 rem (12.8 px) at the least; on a projector they must be 20 px.
ZOOM = 1.7

_SETTINGS, _FIELDS = "class:settings", "class:fields"


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
    st.session_state[_FIELDS] = {f"{page}_{field.name}": field.label for field in fields}


def class_style() -> None:
    """The style of what is hidden and locked, and of presentation mode."""
    settings = classroom()
    rules = [f".stApp .st-key-{key} {{ display: none; }}" for key in settings.hide]
    rules += [
        f".stApp .st-key-{key} {{ position: relative; opacity: 0.66; }} .stApp .st-key-{key} > * {{ pointer-events: none; }}"
        f' .stApp .st-key-{key}::after {{ content: "🔒"; position: absolute; right: 0; top: 0; font-size: 0.75rem; }}'
        for key in settings.lock
    ]
    if settings.present:
        rules.append(
            ".stApp :is([data-testid=stSidebar], [data-testid=stHeader], [data-testid=stExpandSidebarButton]) { display: none; }"
            f".stApp .stMainBlockContainer {{ zoom: {ZOOM}; padding: 0.3rem 0.9rem 2rem; }}"
            # A table measures its box on the screen, zoom included, and would be wider than that.
            ".stApp [data-testid=stDataFrame] { max-width: 100%; overflow-x: auto; }"
        )
    if rules:
        st.html(f"<style>{' '.join(rules)}</style>")


def class_panel() -> None:
    """Where such a link is made; in presentation mode only the way out of it. Drawn by the frame after the page."""
    if classroom().present:
        st.button(fill(LEAVE), key="class_leave", on_click=_set, args=(False,), type="tertiary")
        return
    known: Mapping[str, str] = st.session_state.get(_FIELDS, {})
    with st.sidebar, st.popover(fill(PANEL), key="class_panel"):
        st.caption(fill(PANEL_HELP))
        hide = st.multiselect(
            fill(HIDE_LABEL), list(known), format_func=lambda key: known.get(key, key), key="class_hide"
        )
        lock = st.multiselect(
            fill(LOCK_LABEL), list(known), format_func=lambda key: known.get(key, key), key="class_lock"
        )
        present = st.toggle(fill(PRESENT_LABEL), key="class_present")
        st.caption(fill(LINK_LABEL))
        st.code(
            _link(replace(Classroom(), hide=tuple(hide), lock=tuple(lock), present=present)),
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
    settings = replace(classroom(), present=present)
    st.session_state[_SETTINGS] = settings
    others = {name: value for name, value in st.query_params.items() if name not in NAMES}
    st.query_params.from_dict({**others, **settings.params})
