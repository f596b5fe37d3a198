"""Draws the fields of a page's table as Streamlit controls, each with the marks that belong under it."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from core.base.text import fill
from core.inputs.fields import Kind
from pages.widgets.cards import Mark, draw_marks, escape
from pages.widgets.state import PageState


class Controls:
    """The controls of one page in one run. `marks` go under the control whose key they name."""

    def __init__(self, state: PageState, marks: Mapping[str, list[Mark]]) -> None:
        self.state = state
        self.marks = marks
        self._table = state.table

    def text(self, name: str, label: str = "", *, placeholder: str = "", hint: str = "") -> None:
        """A line of text."""
        st.text_input(
            self._label(name, label),
            key=self.state.key(name),
            disabled=self.state.locked(name),
            placeholder=placeholder,
            help=hint or None,
        )
        self.under(name)

    def area(self, name: str, label: str = "", *, placeholder: str = "", height: int = 140, marks: bool = True) -> None:
        """Several lines of text; `marks`: draw them here (else whoever calls does)."""
        st.text_area(
            self._label(name, label),
            key=self.state.key(name),
            disabled=self.state.locked(name),
            placeholder=placeholder,
            height=height,
        )
        if marks:
            self.under(name)

    def choice(
        self,
        name: str,
        words: Mapping[str, str] | None = None,
        label: str = "",
        *,
        hidden: bool = False,
        marks: bool = True,
    ) -> None:
        """One of the field's options, in words; `hidden`: the label is for screen readers only, a heading says it."""
        options = list(self._table.field(name).options)
        st.selectbox(
            self._label(name, label),
            options,
            key=self.state.key(name),
            disabled=self.state.locked(name),
            format_func=lambda option: fill((words or {}).get(option, option)),
            label_visibility="collapsed" if hidden else "visible",
        )
        if marks:
            self.under(name)

    def whole(self, name: str, label: str = "", *, hint: str = "") -> None:
        """A whole number, from 0; how large is the rules' business, so that too much gets an answer."""
        field = self._table.field(name)
        st.number_input(
            self._label(name, label),
            min_value=None if field.low is None else int(field.low),
            max_value=None if field.high is None else int(field.high),
            step=1,
            key=self.state.key(name),
            disabled=self.state.locked(name),
            help=hint or None,
        )
        self.under(name)

    def slider(self, name: str, step: float, label: str = "", *, hint: str = "") -> None:
        """A number between its bounds."""
        field = self._table.field(name)
        kind = int if field.kind is Kind.WHOLE else float
        low, high = kind(field.low or 0), kind(field.high or 1)
        st.slider(
            self._label(name, label),
            low,
            high,
            step=kind(step),
            key=self.state.key(name),
            disabled=self.state.locked(name),
            help=hint or None,
        )
        self.under(name)

    def flag(self, name: str, label: str = "", *, hint: str = "") -> None:
        """On or off."""
        st.checkbox(
            self._label(name, label), key=self.state.key(name), disabled=self.state.locked(name), help=hint or None
        )
        self.under(name)

    def under(self, *names: str) -> None:
        """The marks of these fields, where you are."""
        keys = [self.state.key(name) for name in names]
        draw_marks(self.marks, *keys)
        for key in keys:
            for mark in self.marks.get(key, ()):
                if mark.mend is not None:
                    title, edit = mark.mend
                    st.button(escape(title), key=f"{key}_mend", on_click=self.state.edit, args=(edit, title))

    def _label(self, name: str, label: str) -> str:
        return label or self._table.field(name).label
