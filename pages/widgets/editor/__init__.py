"""The code editor: CodeMirror in a components.v2 widget, faults and shapes drawn at their place in the text.

As with the scan player there are two components, because Streamlit sends a component's code again with every change of
its data: one has all the code and no data and is sent once a session; the other has the data and a few lines that hand
them over. The code is a bundle that `make install` builds (build.py); without it a text area and the annotated code
below it stand in (`pages.widgets.annotated`), with the same arguments and the same answer.

Who owns the text: the person. It is sent a moment after typing stops, when the editor is left, and with Ctrl+Enter;
what a rerun says about the text is ignored, unless `revision` rose: then the page has something new to show (a fix was
applied, a file opened), and the editor takes it as one step that Ctrl+Z takes back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import streamlit as st

from core.base.limits import LIMITS
from core.base.text import fill
from pages.widgets.annotated import annotated_editor, annotated_event
from pages.widgets.cards import ICON, WORD, badge
from pages.widgets.diagnostic import Diagnostic, EditorEvent, diagnostics_of, one_line_ends
from pages.widgets.editor import build

__all__ = ["Diagnostic", "EditorEvent", "code_editor", "diagnostics_of", "editor_available", "editor_event"]

LABEL = "Python code"
#: What the editor says; its JavaScript has no words of its own.
TEXTS = {
    "keys": "Tab indents. To leave with the keyboard press Escape, then Tab. Ctrl+Enter runs. F8 goes to the next fault.",
    "hint": "Ctrl+Enter runs · Esc, then Tab leaves",
    "hint_faults": "F8 next fault",
    "leaving": "Tab leaves the editor now.",
    "count": "{count} of {limit} characters",
    "over": "{count} characters; a check takes at most {limit}. Nothing is lost here: take something out to have it checked.",
    "no_faults": "No faults.",
    "one_fault": "1 fault. {first}",
    "faults": "{n} faults. {first}",
    "at": "Line {line}: {severity} {code}. {message}",
    "at_shape": "{said} On this line: {shape}.",
    "stale": "before the last edit",
    "too_big": "{name} is too big: {size} KB, and at most {most} KB can be opened.",
    "wrong_kind": "{name} cannot be opened: only .py, .ipynb, .md and .txt files.",
    "not_text": "{name} is no text file.",
    "no_cells": "{name} is a notebook without code cells.",
    "opened": "{name} is in the editor; Ctrl+Z takes it back.",
}
DEFAULT_HEIGHT = 560

_HAND_OVER = """
export default async function (component) {
  const slot = (globalThis.carryLabEditor ??= { waiting: [] });
  if (!slot.mount) await new Promise((ready) => slot.waiting.push(ready));
  return slot.mount(component);
}
"""

_why_not = build.reason()
_code = None if _why_not else st.components.v2.component("carry_lab.editor_code", js=build.BUNDLE.read_text("utf-8"))
_mount = st.components.v2.component("carry_lab.editor", html='<div class="editor"></div>', js=_HAND_OVER)


def editor_available() -> str:
    """Why the editor cannot be shown, a part of a sentence; "" when it can."""
    return _why_not


def editor_event(text: str, *, key: str, revision: int, plain: bool = False) -> EditorEvent:
    """What is in the editor with this key, before it is drawn: for a page that wants the diagnostics of that very text.

    Also for callbacks of buttons, which must not act on the text of the last rerun: what was typed in the same moment
    has arrived by then.

    Args:
        text: what the page knows of the text.
        key: the editor's key.
        revision: of `text`.
        plain: as of `code_editor`.
    """
    if _code is None or plain:
        return annotated_event(one_line_ends(text), key=_area(key), revision=revision)
    state = st.session_state.get(key)
    return _event(state.get("edit") if isinstance(state, Mapping) else None, one_line_ends(text), revision)


def code_editor(
    text: str,
    *,
    key: str,
    revision: int,
    diagnostics: Sequence[Diagnostic] | None = (),
    shapes: Sequence[tuple[int, str]] = (),
    placeholder: str = "",
    height: int = DEFAULT_HEIGHT,
    checked: str | None = None,
    label: str = LABEL,
    plain: bool = False,
    read_only: bool = False,
    on_change: Callable[[], None] | None = None,
) -> EditorEvent:
    """Draws the editor.

    Args:
        text: what it opens with, and what it shows from now on when `revision` rose.
        key: the widget's key.
        revision: of `text`; raised by the page with every change of the text that is not the person's typing.
        diagnostics: faults; their places are in `checked`. None while a check goes on: what the editor shows of the last
            one stays, dimmed, instead of vanishing and coming back.
        shapes: line (from 1) and what is said at its right end, ``out float32[2,4]``; of `checked`, too.
        placeholder: shown while there is no text.
        height: pixels that it grows to before it scrolls.
        checked: the text that diagnostics and shapes are of; `text` when None. They are dimmed once it differs from
            what is in the editor.
        label: the name of the text box for screen readers.
        plain: the text area although there is an editor.
        read_only: the text can be read, selected and run, not changed. What a browser sends all the same is the page's
            business to refuse.
        on_change: called before the rerun that an event causes.

    Returns:
        what is in it. An event of an older revision is not passed on: `text` comes back instead.
    """
    text = one_line_ends(text)
    checked = text if checked is None else one_line_ends(checked)
    if _code is None or plain:
        return annotated_editor(
            text,
            key=_area(key),
            revision=revision,
            diagnostics=diagnostics or (),
            shapes=shapes,
            placeholder=placeholder,
            height=height,
            checked=checked,
            label=label,
            read_only=read_only,
            on_change=on_change,
        )
    data = {
        "key": key,
        "text": text,
        "revision": revision,
        # Sent once when it is the same: a script may be long.
        "checked": None if checked == text else checked,
        "diagnostics": None if diagnostics is None else [_diagnostic(one) for one in diagnostics],
        "shapes": [list(shape) for shape in shapes],
        "placeholder": placeholder,
        "height": height,
        "label": label,
        "readOnly": read_only,
        "limit": LIMITS["script_text"].value,
        "most": LIMITS["typed_text"].value,
        "words": {name: fill(words) if "{" not in words else words for name, words in TEXTS.items()},
    }
    with st.container(gap=None):
        result = _mount(data=data, key=key, on_edit_change=on_change or _nothing)
        _code(key=f"{key}_code")
    return _event(result.get("edit"), text, revision)


def _area(key: str) -> str:
    """The key of the text area: not the editor's where there is one, whose state is of another kind."""
    return key if _code is None else f"{key}_plain"


def _nothing() -> None:
    """Streamlit passes on only what has a callback."""


def _diagnostic(one: Diagnostic) -> dict[str, Any]:
    place, second = one.span, one.because
    return {
        "line": place.line,
        "col": place.col,
        "endLine": place.end_line,
        "endCol": place.end_col,
        "severity": one.severity.value,
        "word": fill(WORD[one.severity]),
        "icon": ICON[one.severity],
        "badge": badge(one.number) if one.number else "",
        "code": one.code,
        "message": one.message,
        "differs": one.differs,
        "because": [second.line, second.col, second.end_line, second.end_col] if second is not None else None,
        "becauseText": one.because_text,
    }


def _event(edit: object, text: str, revision: int) -> EditorEvent:
    """An event from the browser, or the page's own text when there is none or it is of another document.

    Nothing in it is believed: anybody can send anything over the websocket.
    """
    if not isinstance(edit, Mapping):
        return EditorEvent(text, revision)
    said, run, cursor = edit.get("text"), edit.get("run"), edit.get("cursor")
    ran = run if type(run) is int and run > 0 else 0
    if not isinstance(said, str) or edit.get("revision") != revision:
        return EditorEvent(text, revision, ran)
    place = (1, 0)
    if isinstance(cursor, list | tuple) and len(cursor) == 2 and all(type(n) is int and n >= 0 for n in cursor):
        place = (int(cursor[0]), int(cursor[1]))
    return EditorEvent(one_line_ends(said)[: LIMITS["typed_text"].value], revision, ran, place)
