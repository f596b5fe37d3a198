"""Where somebody is in the lessons: the open step, and what is done. Kept in this session, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from core.base.violation import FieldEdit
from core.inputs.classroom import NAMES, Classroom, no_such_lesson
from core.lessons.lesson import Lesson, LessonStep, Setting
from core.lessons.loader import lesson_of
from core.lessons.pages import PAGES
from pages.widgets.classroom import ROOT, classroom, set_class
from pages.widgets.doctor_state import DoctorState, ask_to_run
from pages.widgets.lesson_facts import forget_report
from pages.widgets.state import PageState, known

WAS_SET_UP, SET_UP_UNDO = "Set up: {title}.", "Back to what was here"
_DONE, _HERE = "lesson:done", "lesson:here"


def page_at(url_path: str) -> str:
    """The name of the page with this address."""
    return url_path or ROOT


def enter_lesson(url_path: str) -> None:
    """Called by the frame before a page runs. A lesson that was just opened by its address alone sets up its page."""
    forget_report()
    settings = classroom()
    if settings.lesson is None:
        return
    lesson = lesson_of(settings.lesson[0])
    if lesson is None or settings.lesson[1] > len(lesson.steps):
        refused = (*settings.refused, no_such_lesson(settings.lesson))
        set_class(replace(settings, lesson=None, refused=refused))
        return
    opening = lesson.steps[settings.lesson[1] - 1].opening
    page = page_at(url_path)
    if page != opening.page or st.session_state.get(_HERE) == settings.lesson:
        return
    st.session_state[_HERE] = settings.lesson
    # A link that says how the page is to look is the teacher's own; and what a learner has made of a page stays.
    if not known(page) and not set(st.query_params) - set(NAMES):
        st.query_params.from_dict({**opening.params, **settings.params})
        ask_to_run(opening.script)


def now() -> tuple[Lesson, LessonStep, int] | None:
    """The lesson that is open, its step and the step's number from 1; None when none is."""
    open_at = classroom().lesson
    lesson = None if open_at is None else lesson_of(open_at[0])
    if open_at is None or lesson is None or open_at[1] > len(lesson.steps):
        return None
    return lesson, lesson.steps[open_at[1] - 1], open_at[1]


def go(lesson: tuple[int, int] | None) -> None:
    """For `on_click`: this step is open, with the page as it stands; None leaves the lesson."""
    set_class(replace(classroom(), lesson=lesson))


def to_step(lesson: Lesson, at: int, state: PageState | None, *, as_it_stands: bool) -> None:
    """For `on_click`: to step `at`, on whose page `state` is; it is set up as it begins, unless it may stay `as_it_stands`.

    A step that was done before is looked at again: it leaves the page alone.
    """
    here = (lesson.number, at)
    go(here)
    step = lesson.steps[at - 1]
    if state is None or step.opening.page != state.page:
        return
    st.session_state[_HERE] = here
    if not as_it_stands and here not in done():
        set_up(state, step.opening, step.title)


def set_up(state: PageState, setting: Setting, title: str) -> None:
    """For `on_click`: the page in this state, with a way back."""
    values = PAGES[setting.page].read(setting.params).values
    state.edit(FieldEdit(values), title, WAS_SET_UP, SET_UP_UNDO)
    if isinstance(state, DoctorState):
        state.ask()


def start(lesson: Lesson, step: int = 1) -> None:
    """Open a step on its page, set up as it begins. Ends this run."""
    go((lesson.number, step))
    open_page(lesson.steps[step - 1].opening)


def open_page(setting: Setting) -> None:
    """Go to a page in this state. Ends this run."""
    ask_to_run(setting.script)
    settings: Classroom = classroom()
    st.switch_page(PAGES[setting.page].script, query_params={**setting.params, **settings.params})


def mark_done(lesson: int, step: int) -> None:
    """This step was done."""
    st.session_state[_DONE] = done() | {(lesson, step)}


def done() -> frozenset[tuple[int, int]]:
    """Lesson and step of all that was done in this session."""
    found: frozenset[tuple[int, int]] = st.session_state.get(_DONE, frozenset())
    return found
