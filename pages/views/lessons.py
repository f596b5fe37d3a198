"""The lessons: a short text each, tied to live controls of the other pages."""

import streamlit as st

from core.base.text import fill
from core.inputs.fields import REFUSED, shorten
from core.lessons.fields import FIELDS, PAGE
from core.lessons.lesson import Lesson
from core.lessons.loader import lesson_of, lessons
from pages.widgets.cards import link_refusals
from pages.widgets.frame import calm
from pages.widgets.lesson_list import done_of, lesson_list, lesson_page
from pages.widgets.state import PageState
from pages.widgets.verdict import State, Verdict, verdict_slot, verdict_strip

ALL = "{count} lessons"
DONE = "{done} of {steps} steps done in this session"
ONE = "Lesson {number}"
NO_LESSON = "there is no such lesson"


def strip_of(lesson: Lesson | None) -> Verdict:
    """What the strip says: the page has nothing to check, so it names what is read, and what was done."""
    counted = lessons() if lesson is None else (lesson,)
    words = fill(ALL, count=len(counted)) if lesson is None else fill(ONE, number=lesson.number)
    done, steps = sum(map(done_of, counted)), sum(len(one.steps) for one in counted)
    return Verdict(State.UNCHECKED, words=words, summary=fill(DONE, done=done, steps=steps))


def page() -> None:
    """A lesson, or all of them."""
    strip = verdict_slot()
    state = PageState(PAGE, lambda _: FIELDS)
    number = str(state.begin()["number"])
    lesson = lesson_of(int(number)) if number.isascii() and number.isdecimal() else None
    verdict_strip(strip, strip_of(lesson))
    link_refusals(state)
    if lesson is not None:
        lesson_page(state, lesson)
        return
    if number:
        st.warning(fill(REFUSED, label=FIELDS.field("number").label, value=shorten(number), reason=fill(NO_LESSON)))
    lesson_list(state)


with calm("lessons page"):
    page()
