"""The class tally as a learner meets it: what would leave the session, a tick to allow it, and how the room answered.

Nothing is counted unless its learner ticked the box. What is counted is one whole number in the memory of this process.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from core.base.limits import LIMITS
from core.base.text import fill
from core.base.violation import Severity
from core.challenges.challenge import Challenge
from core.challenges.fields import CODE, PAGE, challenge_at
from core.challenges.generate import MORE
from core.challenges.grading import OTHER_SIDE, RIGHT, WRONG, broken_codes, choices_of, title_of
from core.challenges.tally import LETTERS, Key, Tally
from core.inputs.fields import shorten
from pages.widgets import challenge_progress as progress
from pages.widgets.cards import Mark, draw_marks
from pages.widgets.challenge_backend import answers_of
from pages.widgets.challenge_progress import Last
from pages.widgets.classroom import classroom
from pages.widgets.frame import calmly, section
from pages.widgets.state import PageState
from pages.widgets.voted import told, voted_here

TAKE_PART = "Count my answers in the class tally **{code}**"
OFF = "Off: nothing leaves this session unless you tick the box."
ON = "On."
NOTICE = (
    "What is counted is your first answer to each challenge from now on: right or not right, or which program and which "
    "reason you chose. It is one anonymous count: no name, no address, nothing you typed. This tab of your browser keeps "
    "which ones were counted, so that a reload counts nothing twice. Counts are in this server’s "
    "memory only, everybody in the room sees them, and they are gone when your teacher closes the room, after {hours} "
    "hours at the latest."
)
ROOM = "Room"
COUNTED, NOT_COUNTED = "Your answer to this one is counted.", "Your answer to this one is not counted."
FULL_ROOM = "The room counts no more answers to this one."
CLOSED = "Room {code} is not open: it was closed, its time is over, or the code is mistyped. Nothing is counted."
NO_CODE = "Room code: “{text}” is none. A code is {count} letters and digits, such as K7QM. No room was joined."
LEAVE = "Leave the room"
YOURS = "You opened this room: your own answers are not counted."
ANSWERS, NO_ANSWERS = "How the class answered", "No answers yet."
LATER = "You see how the class answered once you have answered yourself."
FIRST = "room {code}, first answers only"
COUNT = ("{count} answer", "{count} answers")
CHOICES = {RIGHT: "right", WRONG: "not right", OTHER_SIDE: "the program that is in order"}
CHOICE_CODE = "{title} · {code}"
HEAD_ANSWER, HEAD_COUNT, HEAD_SHARE = "answer", "count", "share"
SHARE = "{share} %"
IS_RIGHT = "this is right"
ROW = "{number} · {title}"
#: Seconds between two looks at the counts.
_EVERY = 3.0
_TAKES_PART, _OWNED, _HERE = f"{PAGE}_take_part", "challenges:owned", f"{PAGE}_voted"
_ROOM_CODE = re.compile(rf"[{LETTERS}]{{{CODE}}}")


@st.cache_resource(show_spinner=False)
def rooms() -> Tally:
    """The rooms of this process."""
    return Tally()


def owned() -> dict[str, str]:
    """The rooms that this session opened: code -> the part that only their owner has."""
    found: dict[str, str] = st.session_state.setdefault(_OWNED, {})
    return found


def stays(key: Key) -> None:
    """The room's owner is in this session, and leaves it when its browser is gone."""
    _present(key.code, key.owner)


@st.cache_resource(show_spinner=False, scope="session", on_release=lambda key: rooms().leave(key))
def _present(code: str, owner: str) -> Key:
    return Key(code, owner)


@dataclass(frozen=True, slots=True)
class Tallied:
    """The room that an address names.

    Attributes:
        key: what opens it, with the owner's part where this session has it.
        is_open: there is such a room.
        owned: this session may close it.
    """

    key: Key
    is_open: bool
    owned: bool

    @property
    def code(self) -> str:
        """What everybody has of it."""
        return self.key.code

    @classmethod
    def of(cls, state: PageState) -> Tallied | None:
        """The one of this page's address; None where it names none.

        An owner's link is taken in, and leaves the address: what is copied from there must not let others close the room.
        """
        text = str(state.values["tally"]).strip()
        key = Key.of(text)
        if not _ROOM_CODE.fullmatch(key.code):
            return None
        if key.owner and rooms().owned(key) and key.code not in owned():
            owned()[key.code] = key.owner
            rooms().come(key)
            stays(key)
        if str(state.values["tally"]) != key.code:
            state.set_quietly("tally", key.code)
        key = Key(key.code, owned().get(key.code, ""))
        return cls(key, rooms().is_open(key), rooms().owned(key))

    @property
    def shown(self) -> bool:
        """Whether the counts are seen without an answer of one's own."""
        return self.owned or classroom().present


def no_code(state: PageState, tallied: Tallied | None) -> str:
    """A sentence where the address, or somebody who typed, gives what is no code."""
    text = str(state.values["tally"]).strip()
    return fill(NO_CODE, text=shorten(text), count=CODE) if text and tallied is None else ""


def hours() -> int:
    """How long a room is open at the most."""
    return LIMITS["tally_seconds"].value // 3_600


# --- taking part ----------------------------------------------------------------------------------------------------


def takes_part() -> bool:
    """Whether this session's learner has ticked it."""
    return bool(st.session_state.get(_TAKES_PART, False))


def notice(state: PageState, tallied: Tallied | None) -> None:
    """What would leave the session, before anything does, and the tick without which nothing does."""
    problem = no_code(state, tallied)
    if problem:
        draw_marks({"": [Mark(Severity.WARNING, problem)]}, "")
    if tallied is None or tallied.owned:
        return
    if classroom().present and tallied.is_open:  # a projector shows the room, and takes no part in it
        st.html(room_html(tallied.code))
        return
    with st.container(border=True, key="challenges_tally_notice", gap="xsmall"):
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="challenges_tally_row"):
            if tallied.is_open:
                # A choice of the session, which a page that does not draw it must not forget.
                st.checkbox(fill(TAKE_PART, code=tallied.code), key=_TAKES_PART, persist_state="session")
                st.space("stretch")
            else:
                draw_marks({"": [Mark(Severity.NOTE, fill(CLOSED, code=tallied.code))]}, "")
            st.button(fill(LEAVE), key="challenges_tally_leave", on_click=_leave, args=(state,), type="tertiary")
        if tallied.is_open:
            words = (
                f"<b>{html.escape(fill(ON if takes_part() else OFF))}</b> {html.escape(fill(NOTICE, hours=hours()))}"
            )
            st.html(f'<p class="cl-quiet">{words}</p>')
        if tallied.is_open and takes_part():
            counted = [key for (code, key), _ in progress.voted().items() if code == tallied.code]
            most = LIMITS["tally_session"].value
            voted_here(tallied.code, counted, most=most, key=_HERE, on_counted=lambda: _remember(tallied.code))


def _remember(code: str) -> None:
    """What this tab had counted before it was loaded anew is counted no more."""
    for key in told(_HERE, code, LIMITS["tally_session"].value):
        progress.voted().setdefault((code, key), True)


def room_html(code: str, more: str = "") -> str:
    """A room's code, large enough to be read from the board."""
    return (
        f'<p class="cl-room">{html.escape(fill(ROOM))} <strong>{html.escape(code)}</strong> '
        f'<span class="cl-quiet">{html.escape(more)}</span></p>'
    )


def _leave(state: PageState) -> None:
    st.session_state[_TAKES_PART] = False
    state.write({**state.values, "tally": ""})


def vote(tallied: Tallied | None, challenge: Challenge, last: Last) -> None:
    """Count an answer, if its learner has ticked it: once for each challenge of a session, and never the owner's."""
    if tallied is None or tallied.owned or not tallied.is_open or not takes_part() or not last.grade.choice:
        return
    voted, place = progress.voted(), (tallied.code, challenge.key)
    if place not in voted:
        many = sum(code == tallied.code for code, _ in voted) >= LIMITS["tally_session"].value
        voted[place] = not many and rooms().vote(tallied.key, challenge, last.grade.choice)


# --- what is seen ---------------------------------------------------------------------------------------------------


def class_answers(tallied: Tallied | None, challenge: Challenge, seed: int) -> None:
    """How those in the room answered this challenge: for its owner, on a projector, and for who has answered."""
    if tallied is None or not tallied.is_open:
        return
    now = progress.attempt(challenge, seed)
    section(fill(ANSWERS), hint=fill(FIRST, code=tallied.code))
    with st.container(border=True, key="challenges_answers", gap="xsmall"):
        if not (tallied.shown or now.tries or now.over):
            st.html(f'<p class="cl-quiet">{html.escape(fill(LATER))}</p>')
            return
        words = fill(YOURS) if tallied.owned else "" if classroom().present else _counted(tallied, challenge)
        if words:
            st.html(f'<p class="cl-quiet">{html.escape(words)}</p>')
        _bars(tallied.key, challenge, _right_choice(challenge) if now.over else "")


def _counted(tallied: Tallied, challenge: Challenge) -> str:
    """What became of this session's own answer."""
    counted = progress.voted().get((tallied.code, challenge.key))
    return fill(COUNTED if counted else NOT_COUNTED if counted is None else FULL_ROOM)


def _right_choice(challenge: Challenge) -> str:
    """What of the choices is right."""
    if RIGHT in choices_of(challenge):
        return RIGHT
    codes = [code for run in answers_of(challenge).look(challenge) or () for code in broken_codes(run)]
    return next((code for code in codes if code in challenge.options), "")


@st.fragment(run_every=_EVERY)
def _bars(key: Key, challenge: Challenge, right: str) -> None:
    calmly("class tally", _bars_of)(key, challenge, right)


def _bars_of(key: Key, challenge: Challenge, right: str) -> None:
    st.html(bars_html(rooms().counts(key).get(challenge.key, {}), right))


@st.fragment(run_every=_EVERY)
def all_answers(key: Key) -> None:
    """How the class answered all that it answered; looks again by itself."""
    calmly("class tally", _all_of)(key)


def _all_of(key: Key) -> None:
    counts = rooms().counts(key)
    tables = []
    for name in sorted(counts, key=lambda one: [int(part) for part in re.findall(r"\d+", one)]):
        challenge = _named(name)
        title = name if challenge is None else fill(ROW, number=challenge.number, title=challenge.title)
        tables.append(bars_html(counts[name], title=title))
    st.html(f'<div class="cl-tables">{"".join(tables)}</div>' if tables else bars_html({}))


def _named(key: str) -> Challenge | None:
    """The challenge with this key."""
    name, _, rest = key.partition("-")
    seed, _, number = rest.partition("-")
    return challenge_at(name, int(seed), int(number)) if name == MORE else challenge_at("", 0, int(key))


def choice_words(choice: str) -> str:
    """A choice as it is read."""
    return fill(CHOICES[choice]) if choice in CHOICES else fill(CHOICE_CODE, code=choice, title=title_of(choice))


def bars_html(counts: Mapping[str, int], right: str = "", *, title: str = "") -> str:
    """A table of the choices with their counts, and a bar in each row for the eye. `right`: the choice that is marked."""
    whole = sum(counts.values())
    if not whole:
        return f'<p class="cl-quiet">{html.escape(fill(NO_ANSWERS))}</p>'
    rows = []
    for choice, count in counts.items():
        words, share = html.escape(choice_words(choice)), fill(SHARE, share=round(100 * count / whole))
        if choice == right:
            words = (
                f'<b class="cl-ok">✓<span class="cl-hidden-words"> {html.escape(fill(IS_RIGHT))}: </span></b> {words}'
            )
        css = "cl-bar cl-bar-right" if choice == right else "cl-bar"
        rows.append(
            f'<tr><th scope="row">{words}</th><td class="cl-number">{count}</td><td class="cl-number">{share}</td>'
            f'<td class="cl-track" aria-hidden="true"><i class="{css}" style="width: {100 * count / whole:.1f}%"></i></td></tr>'
        )
    head = "".join(f'<th scope="col">{html.escape(fill(word))}</th>' for word in (HEAD_ANSWER, HEAD_COUNT, HEAD_SHARE))
    caption = html.escape(fill(COUNT[whole != 1], count=whole))
    if title:
        caption = f"<b>{html.escape(title)}</b> {caption}"
    return (
        f'<table class="cl-table cl-bars"><caption>{caption}</caption><thead><tr>{head}<td></td></tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )
