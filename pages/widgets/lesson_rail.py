"""The rail of a lesson: a low card above the live page that says what to do next, and sees when it is done."""

from __future__ import annotations

import html
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.base.text import fill
from core.inputs.fields import VERSION, VERSION_NAME
from core.lessons.lesson import Lesson, LessonStep, Question
from core.lessons.pages import PAGES
from pages.widgets.classroom import classroom
from pages.widgets.frame import calm
from pages.widgets.lesson_facts import told
from pages.widgets.lesson_progress import done, go, mark_done, now, open_page, page_at, set_up, to_step
from pages.widgets.state import PageState

HEAD, TITLE = "Lesson {number}", " · {title}"
COUNT, COUNT_OF = "step {step}", " of {steps}"
TASK = "**{title}.** {task}"
TASK_ASKED = "**{title}** {task}"
DONE, LAST_DONE = "Done", ": this was the last step"
NOT_QUITE = "Not quite: look again."
BACK, NEXT, HINT, MORE, LEAVE = "Back", "Next", "Hint", "Read on", "Leave the lesson"
FINISH = "All lessons"
SET_UP, SET_UP_HELP = "Set it up", "Sets the page as this step asks."
AGAIN = "Begin this step again"
OPEN = "Open {page}"
LESSONS = "pages/views/lessons.py"
#: Where the rail has nothing to say: the list of lessons.
_WITHOUT = frozenset({"lessons"})


def rail_slot(url_path: str) -> DeltaGenerator | None:
    """Reserve the place of the rail above the page; None when no lesson is open."""
    if now() is None or url_path in _WITHOUT:
        return None
    return st.container(key="lesson_rail", border=True, gap="xsmall")


def lesson_rail(slot: DeltaGenerator | None, url_path: str) -> None:
    """Fill it, after the page has run: what the page says of itself decides whether the step is done."""
    open_now = now()
    if slot is None or open_now is None:
        return
    lesson, step, at = open_now
    with slot, calm("lesson"):
        here = page_at(url_path) == step.setting.page
        facts, state = told()
        answer = st.session_state.get(_answer_key(lesson, at))
        if here and step.done(facts, answer):
            mark_done(lesson.number, at)
        is_done = (lesson.number, at) in done()
        with st.container(key="lesson_row", horizontal=True, vertical_alignment="center", gap="small"):
            with st.container(key="lesson_text", gap="xxsmall"):
                st.html(_head(lesson, at, is_done))
                asks = TASK_ASKED if step.title.endswith("?") else TASK
                st.markdown(fill(asks, title=step.title, task=step.task))
                if step.question is not None and here:
                    _question(step.question, _answer_key(lesson, at), answer)
            with st.container(
                key="lesson_buttons", horizontal=True, horizontal_alignment="right", gap="xsmall", width="content"
            ):
                _aside(lesson, step, at, state if here else None)
                _onward(lesson, step, at, is_done, here=here, state=state)


def _answer_key(lesson: Lesson, at: int) -> str:
    return f"lesson_answer_{lesson.number}_{at}"


def _head(lesson: Lesson, at: int, is_done: bool) -> str:
    dots = "".join(
        f'<i class="{"cl-dot-done" if (lesson.number, n) in done() else ""} {"cl-dot-here" if n == at else ""}"></i>'
        for n in range(1, len(lesson.steps) + 1)
    )
    last = f'<span class="cl-lesson-long">{fill(LAST_DONE)}</span>' if at == len(lesson.steps) else ""
    said = f'<b class="cl-ok">✓ {fill(DONE)}{last}</b>' if is_done else ""
    return (
        f'<div class="cl-lesson-head"><strong>{fill(HEAD, number=lesson.number)}<span class="cl-lesson-long">'
        f"{html.escape(fill(TITLE, title=lesson.title))}</span></strong>"
        f'<span class="cl-dots" aria-hidden="true">{dots}</span>'
        f'<span>{fill(COUNT, step=at)}<span class="cl-lesson-long">{fill(COUNT_OF, steps=len(lesson.steps))}</span></span>'
        f'<span role="status" aria-live="polite">{said}</span></div>'
    )


def _question(question: Question, key: str, answer: str | None) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="lesson_question"):
        st.html(f'<span class="cl-quiet">{html.escape(question.text)}</span>', width="content")
        st.pills(question.text, question.choices, key=key, label_visibility="collapsed", width="content")
        if answer is not None and answer != question.answer:
            st.html(f'<span class="cl-undone" role="status">{fill(NOT_QUITE)}</span>', width="content")


def _aside(lesson: Lesson, step: LessonStep, at: int, state: PageState | None) -> None:
    """What helps: a hint, and the rest of the text."""
    if step.hint:
        # Its key is the step's, so that an open hint closes with it; the box around it is what a link can hide.
        with (
            st.container(key="lesson_hint", width="content"),
            st.popover(fill(HINT), key=f"lesson_hint_{at}", type="tertiary"),
        ):
            st.markdown(step.hint)
    with st.popover(fill(MORE), key=f"lesson_more_{at}", type="tertiary"):
        # The first step begins with what the lesson is about.
        for text in (lesson.intro if at == 1 else "", step.more):
            if text:
                st.markdown(text)
        with st.container(horizontal=True, gap="small", key="lesson_more_buttons"):
            if state is not None:
                st.button(
                    fill(AGAIN),
                    key="lesson_again",
                    on_click=set_up,
                    args=(state, step.opening, step.title),
                    type="tertiary",
                )
            st.button(fill(LEAVE), key="lesson_leave", on_click=go, args=(None,), type="tertiary", disabled=_stays())


def _onward(lesson: Lesson, step: LessonStep, at: int, is_done: bool, *, here: bool, state: PageState | None) -> None:
    """To the step before and after, and the page set up."""
    if not here:
        label = fill(OPEN, page=PAGES[step.setting.page].title)
        if st.button(label, key="lesson_open", type="primary"):
            open_page(step.opening)
    elif step.checks and state is not None and not is_done:
        st.button(
            fill(SET_UP),
            key="lesson_set_up",
            help=fill(SET_UP_HELP),
            on_click=set_up,
            args=(state, step.setting, step.title),
        )
    onward = "primary" if is_done else "secondary"
    last = at == len(lesson.steps)
    _to(BACK, "lesson_back", lesson, at - 1, state, disabled=at == 1)
    if not last:
        facts, _ = told()
        answer = st.session_state.get(_answer_key(lesson, at))
        _to(NEXT, "lesson_next", lesson, at + 1, state, kind=onward, as_it_stands=lesson.goes_on(at + 1, facts, answer))
    elif st.button(fill(FINISH), key="lesson_finish", type=onward, disabled=_stays()):
        go(None)
        # A link that says nothing but its version: the whole list, whatever was read there before.
        st.switch_page(LESSONS, query_params={VERSION_NAME: VERSION, **classroom().params})


def _to(
    words: str,
    key: str,
    lesson: Lesson,
    at: int,
    state: PageState | None,
    *,
    kind: Literal["primary", "secondary"] = "secondary",
    as_it_stands: bool = False,
    disabled: bool = False,
) -> None:
    st.button(
        fill(words),
        key=key,
        on_click=to_step,
        args=(lesson, at, state),
        kwargs={"as_it_stands": as_it_stands},
        type=kind,
        disabled=disabled or _stays(),
    )


def _stays() -> bool:
    """Whether a teacher's link keeps the class on this step."""
    return "lesson_rail" in classroom().lock
