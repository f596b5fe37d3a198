"""What every page stands in: the style sheet, the name at the top of the sidebar, section headings, calm failure."""

from __future__ import annotations

import html
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import streamlit as st
from streamlit.runtime.scriptrunner import RerunException, StopException

from core.base.text import fill
from core.inputs.questions import question_at
from pages.widgets.focus import keep_focus
from pages.widgets.measured import failed_here

NAME = "Carry Lab"
CLAIM = "scan and cells, seen"
FAILED = "Carry Lab failed here, not you. Your inputs are kept; change one, or reload the page. ({kind})"

_STYLE = Path(__file__).parent / "style.css"
_LOG = logging.getLogger("carry_lab")


@st.cache_resource(show_spinner=False)
def _style() -> str:
    return f"<style>{_STYLE.read_text(encoding='utf-8')}</style>"


def page_style() -> None:
    """The few rules of CSS that Streamlit's theme does not know: colours by role, the strip, the cards."""
    st.html(_style())
    keep_focus()


def sidebar_name() -> None:
    """The name above the navigation."""
    with st.sidebar:
        st.html(f'<div class="cl-name">{fill(NAME)}<span>{fill(CLAIM)}</span></div>')


def section(title: str, *, hint: str = "", ask: str = "") -> None:
    """A small heading over a panel, a real h2 for screen readers.

    `ask`: the key of a question (`core.inputs.questions`) that is answered here, folded behind a question mark.
    """
    small = f"<small>{html.escape(hint)}</small>" if hint else ""
    st.html(f'<h2 class="cl-section">{html.escape(title)} {small}</h2>{_asked(ask) if ask else ""}')


def _asked(key: str) -> str:
    found = question_at(key)
    question = html.escape(fill(found.question), quote=True)
    answer = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(fill(found.answer)))
    return (
        f'<details class="cl-ask"><summary aria-label="{question}" title="{question}">?</summary>'
        f"<p><b>{question}</b> {answer}</p></details>"
    )


@contextmanager
def calm(place: str) -> Iterator[None]:
    """Turns an exception of ours into an inline sentence. The log gets its type and place, never a user's value."""
    try:
        yield
    except (RerunException, StopException):
        raise
    except Exception as error:  # noqa: BLE001  # a page never shows a traceback, whatever we got wrong
        frame = error.__traceback__
        while frame is not None and frame.tb_next is not None:
            frame = frame.tb_next
        line = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame is not None else "?"
        failed_here()
        _LOG.error("%s in %s at %s", type(error).__name__, place, line)
        st.error(fill(FAILED, kind=type(error).__name__))


def calmly[**P](place: str, draw: Callable[P, None]) -> Callable[P, None]:
    """`draw` inside `calm(place)`."""

    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        with calm(place):
            draw(*args, **kwargs)

    return wrapped
