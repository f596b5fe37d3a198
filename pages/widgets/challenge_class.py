"""For a class: the short link that fixes set and seed, and the room in which a teacher has answers counted."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit, urlunsplit

import streamlit as st

from core.base.limits import LIMITS
from core.base.text import fill
from core.base.violation import Severity
from core.challenges.fields import CODE, PAGE, short_link
from core.challenges.tally import Key
from core.inputs.classroom import HIDE, LOCK
from core.inputs.fields import Value
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.challenge_tally import Tallied, all_answers, hours, no_code, owned, room_html, rooms, stays
from pages.widgets.classroom import classroom
from pages.widgets.frame import section
from pages.widgets.state import PageState

PANEL = "For a class"
SET_LINK = "Everybody who opens this gets the same set with the same seed. Send it, or write it on the board:"
MORE_SETTINGS = "To hide or lock controls, or for a projector: “For a class” at the foot of the sidebar."
TALLY_LINK = (
    "Everybody who opens this gets the same set and seed, and comes into the room. Send it, or write it on the board:"
)
CODE_LABEL, CODE_HELP = "Room code", "From your teacher’s link, or from the board: {count} letters and digits."
OFFER = (
    "A class tally counts how often each answer is given, for all to see. Only who ticks it is counted, without a name. "
    "Counts are in this server’s memory only, and gone when you close the room, after {hours} hours at the latest."
)
OPEN, CLOSE = "Open a class tally", "Close the room and delete its counts"
FULL = "Too many rooms are open on this machine just now. Nothing was opened; try again later."
MANY = "This window has opened {count} rooms, as many as it may. Nothing was opened; a reload makes it a new one."
LEFT = "open for {minutes} more minutes"
OWN_LINK = "Your own link, if you need another window: it can close the room, so do not share it."
OWN_LINK_HEAD = "Close it from another window"
ALL_ANSWERS, FIRST_TRY = "How the class answered", "first answers only"
_FULL, _OPENED = "challenges:tally_full", "challenges:tally_opened"


def class_corner(state: PageState, tallied: Tallied | None) -> None:
    """Where a teacher makes the link and opens a room, and where a learner types its code."""
    mine = tallied if tallied is not None and tallied.owned else None
    section(fill(PANEL))
    with st.container(border=True, key="challenges_class", gap="small"):
        is_open = tallied is not None and tallied.is_open
        # Who is in a room shares it: the link on a projector is the one that a class types.
        values = {**state.values, "tally": tallied.code if tallied is not None and is_open else "", "challenge": 0}
        if mine is not None:
            _room(state, mine, values)
            return
        st.caption(fill(TALLY_LINK if is_open else SET_LINK))
        _address(values)
        st.caption(fill(MORE_SETTINGS))
        _join(state, tallied)
        if not is_open:
            _offer(state)


def class_results(tallied: Tallied | None) -> None:
    """How the class answered all that it answered, for the room's owner and on a projector."""
    if tallied is not None and tallied.is_open and tallied.shown:
        section(fill(ALL_ANSWERS), hint=fill(FIRST_TRY))
        with st.container(border=True, key="challenges_class_answers", gap="small"):
            all_answers(tallied.key)


def _join(state: PageState, tallied: Tallied | None) -> None:
    st.text_input(
        fill(CODE_LABEL),
        key=state.key("tally"),
        help=fill(CODE_HELP, count=CODE),
        max_chars=state.table.field("tally").max_chars,
        disabled=state.locked("tally"),
        autocomplete="off",
        width=180,
    )
    problem = no_code(state, tallied)
    if problem:
        draw_marks({"": [Mark(Severity.WARNING, problem)]}, "")


def _offer(state: PageState) -> None:
    st.caption(fill(OFFER, hours=hours()))
    st.button(fill(OPEN), key="challenges_tally_open", on_click=_open, args=(state,), icon=":material/bar_chart:")
    problem = st.session_state.pop(_FULL, "")
    if problem:
        draw_marks({"": [Mark(Severity.LIMIT, problem)]}, "")


def _room(state: PageState, mine: Tallied, values: Mapping[str, Value]) -> None:
    state.hide("tally")
    left = fill(LEFT, minutes=rooms().minutes_left(mine.key))
    st.html(room_html(mine.code, left))
    st.caption(fill(TALLY_LINK))
    _address(values)
    st.caption(fill(MORE_SETTINGS))
    st.button(fill(CLOSE), key="challenges_tally_close", on_click=_close, args=(state, mine.key))
    with st.expander(fill(OWN_LINK_HEAD), type="compact", key="challenges_tally_own"):
        st.caption(fill(OWN_LINK))
        _address({**values, "tally": str(mine.key)})


def _open(state: PageState) -> None:
    opened, most = int(st.session_state.get(_OPENED, 0)), LIMITS["tally_opened"].value
    if opened >= most:
        st.session_state[_FULL] = fill(MANY, count=most)
        return
    for code, owner in owned().items():  # a session has one room at a time
        rooms().close(Key(code, owner))
    owned().clear()
    key = rooms().open()
    if key is None:
        st.session_state[_FULL] = fill(FULL)
        return
    st.session_state[_OPENED] = opened + 1
    owned()[key.code] = key.owner
    stays(key)
    state.write({**state.values, "tally": key.code})


def _close(state: PageState, key: Key) -> None:
    rooms().close(key)
    owned().pop(key.code, None)
    state.write({**state.values, "tally": ""})


def _address(values: Mapping[str, Value]) -> None:
    """A link as others open it: this page's host, and where the app is below a path, that path."""
    here, parts = urlsplit(str(st.context.url or "")), urlsplit(short_link(values))
    prefix = here.path.rstrip("/").removesuffix(f"/{PAGE}")
    # What is hidden or locked here is so for the class; a projector is the teacher's alone.
    kept = "&".join(f"{name}={text}" for name, text in classroom().params.items() if name in (HIDE, LOCK))
    query = "&".join(filter(None, (parts.query, kept)))
    st.code(urlunsplit((here.scheme, here.netloc, prefix + parts.path, query, "")), language=None, wrap_lines=True)
