"""All codes by group, and the search: a code, words, or the message that JAX printed."""

from __future__ import annotations

from collections.abc import Iterable

import streamlit as st

from core.base.text import fill
from core.catalogue.entries import GROUPS, Entry, entries, entry_of, find
from core.doctor.messages import NOTHING, code_of_message
from core.inputs.questions import QUESTIONS
from pages.widgets.cards import escape
from pages.widgets.frame import section
from pages.widgets.state import PageState

SEARCH = "Search: a code, words, or the error that JAX printed"
PLACEHOLDER = "scan body function carry input and carry output must have equal types …"
ROW = "**{code}** {title}"
ROW_SILENT = "**{code}** {title} :orange-badge[JAX is silent]"
FOUND = "{count} of {all} codes speak of this."
ASKED, QUESTION = "Often asked", "**{question}** {answer}"
NONE = "No code speaks of this."
ALL = "The others"
#: A message has more words than a search; with fewer, only words are looked for.
_WORDS = 4
_KEY = "catalogue_search"


def search_box() -> str:
    """What is looked for. It stays in this session: somebody's error message is nothing for an address."""
    return st.text_area(fill(SEARCH), key=_KEY, placeholder=fill(PLACEHOLDER), height=68)


def results(state: PageState, text: str) -> None:
    """The code that a message belongs to, and all that hold the words; everything by group where nothing is asked."""
    if not text.strip():
        _groups(state)
        return
    match = code_of_message(text) if len(text.split()) >= _WORDS or entry_of(text) else None
    if match is not None:
        st.markdown(escape(match.text))
        _row(state, entry_of(match.rule.code))
    found = [entry for entry in find(text) if match is None or entry.code != match.rule.code]
    if match is None or found:
        count, every = len(found) + (match is not None), len(entries())
        said = fill(FOUND, count=count, all=every) if count else fill(NOTHING if len(text.split()) >= _WORDS else NONE)
        st.caption(said)
    with st.container(gap="xsmall", key="catalogue_found"):
        for entry in found:
            _row(state, entry)


def _groups(state: PageState) -> None:
    columns = st.columns(2, gap="medium")
    halves: tuple[Iterable[str], Iterable[str]] = ("SNX", "LPR")  # about as many codes in each
    for column, letters in zip(columns, halves, strict=True):
        for letter in letters:
            with column.container(gap="xsmall", key=f"catalogue_group_{letter}"):
                section(fill(GROUPS[letter]))
                for entry in entries():
                    if entry.code.startswith(letter):
                        _row(state, entry)
    section(fill(ASKED))
    for question in QUESTIONS:
        st.markdown(fill(QUESTION, question=question.question, answer=question.answer))


def _row(state: PageState, entry: Entry | None) -> None:
    if entry is None:
        return
    st.button(
        fill(ROW_SILENT if entry.silent else ROW, code=entry.code, title=escape(entry.rule.title)),
        key=f"catalogue_open_{entry.code}",
        on_click=state.write,
        args=({"code": entry.code},),
        type="tertiary",
        width="stretch",
    )
