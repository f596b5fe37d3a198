"""All lessons with what was done of them, and one lesson to read before it is begun."""

from __future__ import annotations

import html

import streamlit as st

from core.base.text import fill
from core.lessons.lesson import Lesson
from core.lessons.loader import lessons
from core.lessons.pages import PAGES
from pages.widgets.cards import escape
from pages.widgets.frame import section
from pages.widgets.lesson_progress import done, start
from pages.widgets.state import PageState

INTRO = "Each breaks something and mends it, in a few steps on the live page. The page notices when a step is done."
ROW = "**{number}** {title}"
MINUTES = "{pages} · {minutes} min · {steps} steps"
PROGRESS = "{done} of {steps} done"
COMPLETE = "✓ done"
BEGIN, GO_ON, ONCE_MORE, ALL = "Begin", "Go on", "Once more", "All lessons"
STEPS, DOCUMENTS = "Steps", "Documentation"
HEADING = "Lesson {number}"


def _pages(lesson: Lesson) -> str:
    names = dict.fromkeys(PAGES[step.setting.page].title for step in lesson.steps)
    return ", ".join(names)


def done_of(lesson: Lesson) -> int:
    """How many of its steps were done in this session."""
    return sum(number == lesson.number for number, _ in done())


def _about(lesson: Lesson) -> str:
    count = done_of(lesson)
    parts = [fill(MINUTES, pages=_pages(lesson), minutes=lesson.minutes, steps=len(lesson.steps))]
    if count:
        said = COMPLETE if count == len(lesson.steps) else PROGRESS
        parts.append(fill(said, done=count, steps=len(lesson.steps)))
    return " · ".join(parts)


def lesson_list(state: PageState) -> None:
    """A row for each lesson."""
    st.html(f'<p class="cl-quiet">{fill(INTRO)}</p>')
    with st.container(gap="xsmall", key="lessons_list"):
        for lesson in lessons():
            with st.container(
                key=f"lessons_row_{lesson.number}", horizontal=True, vertical_alignment="center", gap="small"
            ):
                st.button(
                    fill(ROW, number=lesson.number, title=escape(lesson.title)),
                    key=f"lessons_read_{lesson.number}",
                    on_click=state.write,
                    args=({"number": str(lesson.number)},),
                    type="tertiary",
                )
                css = "cl-ok" if done_of(lesson) == len(lesson.steps) else "cl-quiet"
                st.html(f'<span class="{css}">{html.escape(_about(lesson))}</span>', width="content")


def lesson_page(state: PageState, lesson: Lesson) -> None:
    """What it is about, its steps, and where the documentation speaks of it."""
    st.html(
        f'<h1 class="cl-entry"><span class="cl-lesson-number">{html.escape(fill(HEADING, number=lesson.number))}</span>'
        f'{html.escape(lesson.title)}</h1><p class="cl-quiet">{html.escape(_about(lesson))}</p>'
    )
    st.markdown(lesson.intro)
    first = next((n for n in range(1, len(lesson.steps) + 1) if (lesson.number, n) not in done()), 1)
    words = ONCE_MORE if done_of(lesson) == len(lesson.steps) else GO_ON if done_of(lesson) else BEGIN
    with st.container(horizontal=True, gap="small", key="lessons_ways"):
        if st.button(fill(words), key="lessons_begin", type="primary"):
            start(lesson, first)
        st.button(fill(ALL), key="lessons_all", on_click=state.write, args=({"number": ""},))
    section(fill(STEPS))
    rows = "".join(
        f"<li>{html.escape(step.title)}{_tick(lesson.number, n)}</li>" for n, step in enumerate(lesson.steps, 1)
    )
    with st.container(key="lessons_steps"):
        st.html(f'<ol class="cl-list">{rows}</ol>')
    if lesson.documents:
        section(fill(DOCUMENTS))
        links = "".join(
            f'<li><a href="{html.escape(one.url)}" target="_blank" rel="noopener">{html.escape(one.title)}</a></li>'
            for one in lesson.documents
        )
        with st.container(key="lessons_documents"):
            st.html(f'<ul class="cl-list">{links}</ul>')


def _tick(lesson: int, step: int) -> str:
    return ' <b class="cl-ok">✓</b>' if (lesson, step) in done() else ""
