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
from core.inputs.class_panels import LESSON_LOCKS, LESSON_PANELS, controls, drawn_as, hideable
from core.inputs.classroom import NAMES, Classroom
from core.inputs.fields import InputField
from core.lessons.lesson import LessonStep
from core.lessons.loader import lesson_of, lessons
from core.lessons.pages import PAGES
from core.plots.projector import enlarged

PANEL = "For a class"
PANEL_HELP = (
    "A link for everybody: this page as it is, or a lesson, with controls hidden or locked, or large for a projector."
)
HIDE_LABEL, LOCK_LABEL = "Hide these panels and controls", "Lock these controls"
PRESENT_LABEL = "Presentation mode: large, nothing but the page"
LESSON_LABEL, LESSON_NONE = "Open a lesson", "none: this page as it is"
LESSON_HELP = "The link opens the step’s own page, set up as the step begins."
LESSON_TITLE = "{number} · {title}"
STEP_LABEL = "Step"
AS_IT_IS = "Begin with this page as it stands now"
LINK_LABEL = "The link"
LEAVE = "Leave presentation mode"
#: Code and numbers are 0.8 rem (12.8 px) at the least; on a projector they must be 20 px.
ZOOM = 1.7

#: How what is locked is marked, beside being disabled.
LOCK_MARK = 'content: "🔒"; position: absolute; right: 0; top: 0; font-size: 0.75rem;'
_SETTINGS, _HIDEABLE, _LOCKABLE = "class:settings", "class:hideable", "class:lockable"
_FOLLOWED = "class:lesson_followed"
#: The page at the root has no path.
ROOT = "scan"
#: The rail of a lesson on a projector: its head stands beside the task, the question below it, and its buttons are low.
_RAIL = (
    ".stApp .st-key-lesson_rail { padding: 0.3rem 0.6rem !important; margin-top: 0; }",
    ".stApp .st-key-lesson_text { display: grid; grid-template-columns: auto 1fr; align-items: center; gap: 0.1rem 0.8rem !important; }",
    ".stApp .st-key-lesson_text > * { width: auto; min-width: 0; }",
    ".stApp .st-key-lesson_text > :has(.cl-lesson-head) { grid-row: 1 / span 2; }",
    ".stApp .st-key-lesson_text > :not(:has(.cl-lesson-head)) { grid-column: 2; }",
    ".stApp .cl-lesson-head { width: 6.3rem; gap: 0.1rem 0.5rem; font-size: 0.75rem; line-height: 1.25; }",
    ".stApp .cl-lesson-head .cl-dots { order: 1; } .stApp .cl-lesson-head [role=status] { order: 2; }",
    ".stApp .cl-lesson-long { display: none; }",
    ".stApp .st-key-lesson_text p { font-size: 0.85rem; line-height: 1.3; }",
    ".stApp .st-key-lesson_rail button { min-height: 1.7rem; padding: 0.05rem 0.5rem; }",
    ".stApp .st-key-lesson_buttons { gap: 0.3rem !important; } .stApp .st-key-lesson_rail button p { font-size: 0.8rem; }",
    # On a phone link and export lie on the header, which is not there.
    ".stApp .st-key-verdict > [data-testid=stLayoutWrapper]:not(:first-child) { position: static; }",
    "@media (max-width: 640px) { .stApp .st-key-lesson_text { grid-template-columns: 1fr; }"
    " .stApp .cl-lesson-head { width: auto; } .stApp .st-key-lesson_text > :nth-child(n) { grid-column: 1; grid-row: auto; } }",
)
_HEADING = ".stElementContainer:has(h2.cl-section)"


def enter_class(url_path: str) -> None:
    """Called by the frame before a page runs: what the address says counts; where it says nothing, what was set before."""
    params = {name: st.query_params[name] for name in NAMES if name in st.query_params}
    # What was written by this session itself is not read again: what it refused would be forgotten.
    if _SETTINGS not in st.session_state or (params and params != classroom().params):
        st.session_state[_SETTINGS] = Classroom.of_link(params, url_path or ROOT)


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
            # The least size of words in a picture, as large as all others on a projector.
            ".stApp { --cl-small: 12px; }"
            # A button that is too narrow for its words there goes on in a second line.
            ".stApp .stButton button :is(.stMarkdownEllipsis, p) { white-space: normal; text-overflow: clip; }"
            ".stApp .cl-checks td.cl-mono { white-space: normal; overflow-wrap: anywhere; }"
        )
        rules += _RAIL
    if rules:
        st.html(f"<style>{' '.join(rules)}</style>")


def presented(figure: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plotly figure as this session shows it: larger in presentation mode."""
    return enlarged(figure, ZOOM) if classroom().present else figure


def class_panel(url_path: str) -> None:
    """Where such a link is made; in presentation mode only the way out of it. Drawn by the frame after the page."""
    if classroom().present:
        st.button(fill(LEAVE), key="class_leave", on_click=_set, args=(False,), type="tertiary")
        return
    here = url_path or ROOT
    chosen = _chosen_lesson()
    step = None if chosen is None else _step(*chosen)
    hide_from, lock_from = _offered(here, step)
    for key, known, now in (
        ("class_hide", hide_from, classroom().hide),
        ("class_lock", lock_from, classroom().lock),
    ):
        # What was chosen on another page, or for another preset, is nothing that can be chosen here.
        st.session_state[key] = [one for one in st.session_state.get(key, now) if one in known]
    with st.sidebar, st.popover(fill(PANEL), key="class_panel"):
        st.caption(fill(PANEL_HELP))
        _lesson_choice(chosen)
        as_it_is = step is not None and step.opening.page == here and st.toggle(fill(AS_IT_IS), key="class_as_it_is")
        hide = st.multiselect(fill(HIDE_LABEL), list(hide_from), format_func=hide_from.__getitem__, key="class_hide")
        lock = st.multiselect(fill(LOCK_LABEL), list(lock_from), format_func=lock_from.__getitem__, key="class_lock")
        present = st.toggle(fill(PRESENT_LABEL), key="class_present")
        st.caption(fill(LINK_LABEL))
        settings = Classroom(tuple(hide), tuple(lock), present, chosen)
        page = None if step is None or as_it_is else step.opening.page
        st.code(_link(settings, url_path, page), language=None, wrap_lines=True)


def _chosen_lesson() -> tuple[int, int] | None:
    """The lesson and step of the link: those that are open, until the teacher chooses others."""
    now = classroom().lesson
    if "class_lesson" not in st.session_state or st.session_state.get(_FOLLOWED) != now:
        st.session_state["class_lesson"], st.session_state["class_step"] = now or (0, 1)
        st.session_state[_FOLLOWED] = now
    number = st.session_state["class_lesson"]
    lesson = lesson_of(number)
    if lesson is None:
        return None
    at = st.session_state.get("class_step", 1)
    st.session_state["class_step"] = at if at <= len(lesson.steps) else 1
    return number, st.session_state["class_step"]


def _lesson_choice(chosen: tuple[int, int] | None) -> None:
    titles = {0: fill(LESSON_NONE)} | {
        one.number: fill(LESSON_TITLE, number=one.number, title=one.title) for one in lessons()
    }
    st.selectbox(
        fill(LESSON_LABEL), list(titles), format_func=titles.__getitem__, key="class_lesson", help=fill(LESSON_HELP)
    )
    lesson = None if chosen is None else lesson_of(chosen[0])
    if lesson is not None:
        steps = {at: fill(LESSON_TITLE, number=at, title=step.title) for at, step in enumerate(lesson.steps, 1)}
        st.selectbox(fill(STEP_LABEL), list(steps), format_func=steps.__getitem__, key="class_step")


def _step(number: int, at: int) -> LessonStep | None:
    lesson = lesson_of(number)
    return lesson.steps[at - 1] if lesson is not None and at <= len(lesson.steps) else None


def _offered(here: str, step: LessonStep | None) -> tuple[Mapping[str, str], Mapping[str, str]]:
    """What can be hidden, and what can be locked, on the page that the link opens."""
    hide: Mapping[str, str] = st.session_state.get(_HIDEABLE, {})
    lock: Mapping[str, str] = st.session_state.get(_LOCKABLE, {})
    if step is None:
        return hide, lock
    if step.opening.page != here:
        fields = PAGES[step.opening.page].table(step.opening.params).fields
        hide, lock = hideable(step.opening.page, fields), controls(step.opening.page, fields)
    return {**LESSON_PANELS, **hide}, {**LESSON_LOCKS, **lock}


def _link(settings: Classroom, url_path: str, page: str | None = None) -> str:
    """An address with these settings: this page's as it stands, or `page` alone, which the lesson sets up."""
    parts = urlsplit(str(st.context.url or ""))
    if page is None:
        path, query = parts.path, {name: value for name, value in st.query_params.items() if name not in NAMES}
    else:
        # The app may stand below a path of its own.
        below = parts.path.removesuffix(f"/{url_path}") if url_path else parts.path
        path, query = f"{below.rstrip('/')}/{'' if page == ROOT else page}", {}
    return urlunsplit((parts.scheme, parts.netloc, path, urlencode({**query, **settings.params}, safe=",:/[]"), ""))


def _set(present: bool) -> None:
    set_class(replace(classroom(), present=present))


def set_class(settings: Classroom) -> None:
    """From now on this is set for the class, in the session and in the address."""
    st.session_state[_SETTINGS] = settings
    others = {name: value for name, value in st.query_params.items() if name not in NAMES}
    st.query_params.from_dict({**others, **settings.params})
