"""All challenges of a set with what became of them in this session, and the choice of set and seed."""

from __future__ import annotations

import html
from collections.abc import Sequence

import streamlit as st

from core.base.text import fill
from core.challenges.challenge import Challenge, Level
from core.challenges.fields import LAST, SETS, challenges_of
from core.challenges.generate import MORE, generated
from pages.widgets import challenge_progress as progress
from pages.widgets.cards import escape
from pages.widgets.challenge_said import go, kind_html
from pages.widgets.frame import section
from pages.widgets.state import PageState

INTRO = (
    "**Predict** what a program gives before it runs. **Fix** a broken one. **Spot** the one of two that is silently wrong. "
    "Each answer is found by running the program, and each has hints."
)
SEED_HELP = (
    "The same seed gives the same challenges to everybody: those without end, and which of two programs stands left."
)
START, GO_ON, ONCE_MORE = "Start", "Go on", "Once more from the start"
ROW = "**{number}** {title}"
SOLVED, SOLVED_HINTS = "solved, {tries}", "solved, {tries}, {hints}"
TRIED, SHOWN, UNTRIED = "{tries}", "answer shown", "not tried"
TRIES, HINTS = ("1 try", "{count} tries"), ("1 hint", "{count} hints")
WITHOUT_END = "Made from the seed, without end: all that have this seed get the same."
NUMBERS = "Numbers {first} to {last}"
#: Rows of what is generated, beyond the last one that was tried, and all together.
_AHEAD, _ROWS = 12, 36
_TICK = '<span aria-hidden="true">✓</span> '


def listed(name: str, seed: int) -> tuple[Challenge, ...]:
    """The challenges that the overview shows."""
    if name != MORE:
        return challenges_of(name)
    tried = [int(key.rsplit("-", 1)[1]) for key in progress.attempts() if key.startswith(f"{MORE}-{seed}-")]
    last = min(LAST, max(tried, default=0) + _AHEAD)
    return tuple(generated(seed, number) for number in range(max(1, last - _ROWS + 1), last + 1))


def overview(state: PageState) -> None:
    """The choice of a set, where to begin, and a row for each challenge."""
    name, seed = str(state.values["set"]), int(state.values["seed"])
    found = listed(name, seed)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="challenges_choice"):
        table = state.table
        st.selectbox(
            table.field("set").label,
            list(SETS),
            format_func=lambda one: fill(SETS[one]),
            key=state.key("set"),
            disabled=state.locked("set"),
            width=250,
        )
        st.number_input(
            table.field("seed").label,
            min_value=int(table.field("seed").low or 0),
            max_value=int(table.field("seed").high or 0),
            key=state.key("seed"),
            disabled=state.locked("seed"),
            help=fill(SEED_HELP),
            width=130,
        )
        _begin(state, found, seed)
    if name == MORE:
        section(fill(NUMBERS, first=found[0].number, last=found[-1].number))
        st.caption(fill(WITHOUT_END))
        _rows(state, found, seed, "more", level=True)
        return
    for level in Level:
        of_level = [one for one in found if one.level is level]
        if of_level:
            section(level.text)
            _rows(state, of_level, seed, level.name.lower())


def _begin(state: PageState, found: Sequence[Challenge], seed: int) -> None:
    """The primary button: to the first one that is not over."""
    over = [progress.attempt(one, seed).over for one in found]
    first = next((one for one, is_over in zip(found, over, strict=True) if not is_over), found[0] if found else None)
    if first is None:
        return
    words = ONCE_MORE if all(over) else GO_ON if any(over) else START
    go(state, fill(words), first.number, "challenges_start", primary=True)


def _rows(state: PageState, found: Sequence[Challenge], seed: int, name: str, *, level: bool = False) -> None:
    with st.container(gap=None, key=f"challenges_rows_{name}"):
        for one in found:
            key = f"challenges_row_{one.number}"
            with st.container(horizontal=True, vertical_alignment="center", gap="small", key=key):
                label = fill(ROW, number=one.number, title=escape(one.title))
                go(state, label, one.number, f"challenges_open_{one.number}")
                st.html(_about(one, seed, level=level))


def _about(one: Challenge, seed: int, *, level: bool) -> str:
    css, tick = ("cl-ok", _TICK) if progress.attempt(one, seed).right else ("cl-quiet", "")
    hard = f'<span class="cl-quiet">{html.escape(one.level.text)}</span>' if level else ""
    said = html.escape(said_of(one, seed) or fill(UNTRIED))
    return f'<span class="cl-challenge-about">{kind_html(one)}{hard}<span class="{css}">{tick}{said}</span></span>'


def said_of(one: Challenge, seed: int) -> str:
    """What became of it, in a few words; "" for nothing yet."""
    now = progress.attempt(one, seed)
    tries = plural(TRIES, now.tries)
    if now.right:
        return fill(SOLVED_HINTS if now.hints else SOLVED, tries=tries, hints=plural(HINTS, now.hints))
    if now.shown:
        return fill(SHOWN)
    return fill(TRIED, tries=tries) if now.tries else ""


def plural(forms: tuple[str, str], count: int) -> str:
    """A count in words."""
    return fill(forms[count != 1], count=count)
