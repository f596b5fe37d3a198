"""Challenges: predict what a program gives, mend a broken one, tell which of two is silently wrong."""

from pathlib import Path

import streamlit as st

from core.base.text import fill
from core.challenges.challenge import Challenge
from core.challenges.fields import FIELDS, PAGE, challenge_at
from core.challenges.generate import MORE
from core.inputs.fields import REFUSED
from pages.widgets import challenge_check as check
from pages.widgets import challenge_progress as progress
from pages.widgets.cards import link_refusals
from pages.widgets.challenge_answer import answer, listen
from pages.widgets.challenge_backend import answers_of
from pages.widgets.challenge_class import class_corner, class_results
from pages.widgets.challenge_list import INTRO, listed, overview, said_of
from pages.widgets.challenge_said import heading, help_row, outcome, ways
from pages.widgets.challenge_sheet import progress_card, sheet_offers
from pages.widgets.challenge_tally import Tallied, class_answers, notice, vote
from pages.widgets.doctor_backend import seat
from pages.widgets.export_menu import strip_menus
from pages.widgets.frame import calm
from pages.widgets.state import PageState
from pages.widgets.verdict import State, Verdict, verdict_slots, verdict_strip

WORDS, MANY, ENDLESS = "Challenge {number}", "{count} challenges", "Challenges without end"
SOLVED, OF = "{count} solved", "{count} of {all} solved"
OPEN, NOT_YET, RIGHT, SHOWN, CHECKING = "Not answered yet", "Not right yet", "Right", "Answer shown", "Checking"
NO_CHALLENGE = "there is no such challenge"


@st.cache_resource(show_spinner=False)
def style() -> str:
    """The rules of CSS that only this page needs."""
    path = Path(__file__).parents[1] / "widgets" / "challenge_style.css"
    return f"<style>{path.read_text(encoding='utf-8')}</style>"


def strip_of_all(name: str, seed: int) -> Verdict:
    """What the strip says over a set: how far somebody is."""
    found = listed(name, seed)
    solved = sum(progress.attempt(one, seed).right for one in found)
    words = fill(ENDLESS) if name == MORE else fill(MANY, count=len(found))
    return Verdict(
        State.UNCHECKED, words=words, summary=fill(SOLVED if name == MORE else OF, count=solved, all=len(found))
    )


def strip_of(challenge: Challenge, seed: int) -> Verdict:
    """What the strip says over a challenge."""
    now = progress.attempt(challenge, seed)
    summary = " · ".join(filter(None, (fill(WORDS, number=challenge.number), said_of(challenge, seed))))
    if now.right:
        return Verdict(State.KEPT, words=fill(RIGHT), summary=summary)
    if check.under_way(challenge):
        return Verdict(State.RUNNING, words=fill(CHECKING), summary=summary)
    if now.shown:
        return Verdict(State.UNCHECKED, words=fill(SHOWN), summary=fill(WORDS, number=challenge.number))
    words = fill(NOT_YET if now.tries else OPEN)
    return Verdict(State.WARNED if now.tries else State.UNCHECKED, words=words, summary=summary)


def page() -> None:
    """A challenge, or all of a set."""
    strip, menus = verdict_slots()
    state = PageState(PAGE, lambda _: FIELDS)
    values = state.begin()
    name, seed, number = str(values["set"]), int(values["seed"]), int(values["challenge"])
    st.html(style())
    challenge, tallied = challenge_at(name, seed, number), Tallied.of(state)
    if challenge is None:
        verdict_strip(strip, strip_of_all(name, seed))
    else:
        settle(challenge, seed, tallied)
        verdict_strip(strip, strip_of(challenge, seed))
    with calm("challenge menus"):
        strip_menus(menus, PAGE, sheet_offers(), pictures=False)
    link_refusals(state)
    state.hide("challenge")
    if challenge is not None:
        state.hide("set", "seed", "tally")
        one(state, challenge, seed, tallied)
        return
    if number:
        st.warning(fill(REFUSED, label=FIELDS.field("challenge").label, value=number, reason=fill(NO_CHALLENGE)))
    everything(state, tallied)


def settle(challenge: Challenge, seed: int, tallied: Tallied | None) -> None:
    """Before anything is drawn: what was typed, and what became of the answer that was being checked."""
    with calm("challenge check"):
        seat()
        answers_of(challenge).look(challenge)  # its programs run while it is read
        listen(challenge, seed)
        found = check.settle(challenge)
        if found is not None:
            pending, last = found
            progress.answered(challenge, pending.seed, last)
            vote(tallied, challenge, last)


def one(state: PageState, challenge: Challenge, seed: int, tallied: Tallied | None) -> None:
    """One challenge: the story, what is asked, hints, and in the end why."""

    def below() -> None:
        outcome(state, challenge, seed)
        help_row(challenge, seed)

    ways(state, challenge)
    heading(state, challenge)
    with calm("challenge tally"):
        notice(state, tallied)
    with calm("challenge"):
        answer(state, challenge, seed, below)
    with calm("challenge tally"):
        class_answers(tallied, challenge, seed)


def everything(state: PageState, tallied: Tallied | None) -> None:
    """All challenges of a set; beside them how far somebody is, and what is for a class."""
    progress.set_home(None)
    st.markdown(fill(INTRO))
    left, right = st.columns([0.64, 0.36], gap="large")
    with left, calm("challenge list"):
        notice(state, tallied)
        overview(state)
    with right:
        with calm("challenge progress"):
            progress_card(state)
        with calm("challenge class"):
            class_corner(state, tallied)
    with calm("challenge class"):
        class_results(tallied)


with calm("challenges page"):
    page()
