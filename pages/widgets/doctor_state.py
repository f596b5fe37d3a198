"""The Doctor's inputs in one session: the script, or a step with its init and xs; what was asked to be run.

The editors keep their text in the browser. What they send is taken here at the top of a run, before anything is drawn,
so that verdict, cards and squiggles of a run are all of one text.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from core.base.places import Field
from core.base.text import fill
from core.base.violation import FieldEdit
from core.doctor.gallery import Example
from core.doctor.link import FIELDS, PAGE, SCRIPT, STEP
from core.doctor.step_mode import Composed, StepFields, compose, take_apart
from pages.widgets.editor import editor_event
from pages.widgets.state import APPLIED, UNDO, PageState

OPENED = "Opened: {title}."
OPENED_UNDO = "Back to what was here"
#: The editor's key by mode. Two documents: going from one mode to the other is no edit of either.
EDITORS = {SCRIPT: f"{PAGE}_code", STEP: f"{PAGE}_step_code"}
#: The field that an editor holds.
CODE = {SCRIPT: "text", STEP: "step"}

_ASKED, _RUNS = f"{PAGE}:asked", f"{PAGE}:runs"
#: What the last run found, with its script; and why a job gave nothing (`doctor_check` keeps both there).
RAN, STOPPED = f"{PAGE}:ran", f"{PAGE}:stopped"


@dataclass(frozen=True, slots=True)
class Script:
    """What is checked in this run.

    Attributes:
        text: the whole script.
        composed: how it was made of the fields; None where it was typed as a whole.
    """

    text: str
    composed: Composed | None = None


def ask_to_run(script: str) -> None:
    """Before the page runs: a script of ours that it is about to open is to be run at once; "" is none."""
    if script:
        st.session_state[_ASKED] = script


class DoctorState(PageState):
    """Text edits are edits of fields: a fix, an example, a file and a stand-in all go in, and come back out, the same way."""

    def __init__(self) -> None:
        super().__init__(PAGE, lambda _: FIELDS)

    # --- reading ----------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> str:
        """`SCRIPT` or `STEP`."""
        return str(self.values.get("mode", SCRIPT))

    @property
    def code(self) -> str:
        """The text in the editor of the mode."""
        return str(self.values[CODE[self.mode]])

    @property
    def script(self) -> Script:
        """What is to be checked."""
        if self.mode == SCRIPT:
            return Script(self.code)
        composed = compose(StepFields(*(str(self.values[name]) for name in ("step", "init", "xs"))))
        return Script(composed.text, composed)

    @property
    def labels(self) -> dict[str, Field]:
        """The inputs of a step beside its code, as places."""
        return {name: Field(self.key(name), self.table.field(name).label) for name in ("init", "xs")}

    @property
    def asked(self) -> str | None:
        """The script that somebody asked to be run; None when nobody did."""
        asked: str | None = st.session_state.get(_ASKED)
        return asked

    # --- writing ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Settle the inputs of this run, with what the editor holds; once, at the top of the view."""
        self.begin()
        if self.take_editor():
            self.ask()

    def take_editor(self) -> bool:
        """Take what the editor of the mode says; whether Ctrl+Enter was pressed since the last time."""
        mode = self.mode
        event = editor_event(self.code, key=EDITORS[mode], revision=self.revision)
        return self.heard(event.text, event.run)

    def heard(self, text: str, run: int) -> bool:
        """The editor's text, and how often Ctrl+Enter was pressed in it; whether that is once more than was known."""
        if text != self.code:
            self.set_quietly(CODE[self.mode], text)
            st.session_state.pop(_ASKED, None)
            self._write_link()
        known: dict[str, int] = st.session_state.setdefault(_RUNS, {})
        pressed = run > known.get(self.mode, 0)
        # An editor that was drawn anew counts from nothing again.
        known[self.mode] = run
        return pressed

    def ask(self) -> None:
        """For `on_click` of Run: the script as it stands is to be run, also when it was before."""
        self._take_from_widgets()
        self.take_editor()
        self._want()
        known = st.session_state.get(RAN)
        if known is not None:
            st.session_state[RAN] = (None, known[1])

    def _want(self) -> None:
        st.session_state[_ASKED] = self.script.text
        st.session_state.pop(STOPPED, None)

    def edit(self, edit: FieldEdit, title: str, said: str = APPLIED, undo: str = UNDO, *, good: bool = True) -> None:
        """As on every page; and then the whole check runs again."""
        self.take_editor()
        before = self.values
        super().edit(edit, title, said, undo, good=good)
        if self.values != before:
            self._want()

    def undo_last(self) -> None:
        """What the last edit changed gets its values back, and is run again."""
        self.take_editor()
        before = self.values
        super().undo_last()
        if self.values != before:
            self._want()

    def open_text(self, text: str, title: str, *, run: bool = False) -> None:
        """Another script in the editor; `run` it, when it is one of ours."""
        self.edit(FieldEdit({"mode": SCRIPT, "text": text}), title, OPENED, OPENED_UNDO)
        if not run:
            st.session_state.pop(_ASKED, None)

    def open_example(self, example: Example) -> None:
        """One of our scripts, run at once."""
        self.open_text(example.text, fill(example.title), run=True)

    def edit_of(self, fixed: str) -> FieldEdit:
        """What a whole fixed script changes: the text, or the fields of the step where it is still made of them."""
        if self.mode == STEP:
            fields = take_apart(fixed)
            if fields is not None:
                return FieldEdit({"step": fields.step, "init": fields.init, "xs": fields.xs})
        return FieldEdit({"mode": SCRIPT, "text": fixed})
