"""A stream of new sizes from one session is slowed, with a word, so that the others of a class notice nothing of it.

    look = paced(lambda: look_at(inputs), lambda: Look(inputs))   # what became of the inputs; the second where they wait
    verdict_strip(slot, paced_verdict(verdict_of(look)))
    waiting_line()                                                # in the page: that it waits, and how long; else nothing

What waits are the inputs as they stand in the session: a newer change takes their place, nothing is queued, and no thread
sleeps. The page runs again by itself when there is a token. What is compiled already runs at once, whatever the bucket says.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import streamlit as st

from core.base.bucket import Bucket
from core.base.measures import SLOWED, page_here
from core.base.text import fill
from core.runners import cache
from core.runners.cache import SlowedError, count_compiles
from pages.widgets.verdict import State, Verdict

WORDS = "Waiting"
SUMMARY = "New sizes are being slowed; what is shown is the last result."
SAYS = (
    "Many new sizes in a short time: each has to be compiled, so new ones are slowed to leave time for everybody else. "
    "Yours is kept and runs by itself; until then the page shows its last result. Sizes seen before run at once."
)
WAITS = "It runs in {seconds} s."
#: Seconds between two looks at the bucket.
TICK = 0.5

_NAME = "pace"


@dataclass(slots=True)
class _Pace:
    """Of one session. `held`: something waits in this run; `watched`: the line that says so is drawn."""

    bucket: Bucket = field(default_factory=Bucket)
    held: bool = False
    watched: bool = False


def _pace() -> _Pace:
    found: _Pace = st.session_state.setdefault(_NAME, _Pace())
    return found


@contextmanager
def paying() -> Iterator[None]:
    """Around a page's run: its session pays for whatever was compiled in it, however it ends."""
    pace = _pace()
    pace.held = False
    with count_compiles() as compiles:
        try:
            yield
        finally:
            pace.bucket.take(compiles.count)


def paced[T](work: Callable[[], T], instead: Callable[[], T], *, first: bool = False) -> T:
    """What `work` gives, or where it would have to compile and there is no token, what `instead` gives.

    Args:
        work: may be broken off before its first compilation; begun again, it must do the same.
        instead: what is known without it. Do not keep it: the next run is to try again.
        first: there is nothing yet that the page could show in the meantime: then nothing waits.
    """
    if first:
        return work()
    pace = _pace()
    try:
        with cache.paced(pace.bucket):
            return work()
    except SlowedError:
        if not pace.held:
            SLOWED.add(page=page_here())
        pace.held = True
        return instead()


def paced_verdict(verdict: Verdict) -> Verdict:
    """What the strip says; that it waits, where something does."""
    return Verdict(State.STALE, summary=fill(SUMMARY), words=fill(WORDS)) if _pace().held else verdict


def waiting_line() -> None:
    """That new sizes wait, and how long, once in a page; nothing where none does."""
    pace = _pace()
    if pace.held:
        pace.watched = False
        _line()


@st.fragment(run_every=TICK)
def _line() -> None:
    pace = _pace()
    seconds = math.ceil(pace.bucket.wait)
    with st.container(key="pace_waiting", gap=None):
        # What counts down is not read out again and again.
        st.html(f'<p class="cl-mark cl-limit" role="status">{html.escape(fill(SAYS))}</p>')
        st.html(f'<p class="cl-quiet" aria-hidden="true">{html.escape(fill(WAITS, seconds=max(1, seconds)))}</p>')
    if not pace.watched:
        pace.watched = True
        return  # a part of the page's own run: begun anew here, it would lose the widgets that it has yet to draw
    if not seconds:
        st.rerun()
