"""The check of an answer: what a program gives is asked of a worker, with its progress in sight and a way to call it off.

    over = settle(challenge)         # at the top of the page: the answer that was being checked, once it is graded
    …
    st.button("Check", on_click=ask, args=(challenge, seed, make))
    progress_line()                  # where the eye is, while something is under way

Whatever becomes of the worker, what was typed stays as it is, and only what was graded is counted.
"""

from __future__ import annotations

import html
import time
from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from core.base.limits import LIMITS
from core.base.text import fill
from core.challenges.challenge import Challenge, Side
from core.challenges.grading import NO_TIME, Grade, grade_fix, grade_predict, grade_spot, out_of_time
from core.sandbox.pool_ticket import Done, Stopped, StopReason
from pages.widgets import challenge_progress as progress
from pages.widgets.challenge_backend import Runs, answers_of, graded
from pages.widgets.challenge_progress import Last
from pages.widgets.doctor_backend import Ticket, seat

RUNNING_OURS = "Running the program in a worker."
QUEUED_OURS = "The program is number {place} in the queue for a worker."
RUNNING = "Running your script in a worker: {seconds} s, {limit} at most."
QUEUED = "Number {place} in the queue for a worker."
CHOOSE_SIDE, CHOOSE_WHY = "Choose one of the two.", "Choose a reason."
TOO_LONG = "{count:,} characters are more than the {limit:,} that are run here. Nothing is lost: take some out."
#: Why there is no answer: nothing was graded, and nothing is counted.
NO_WORKER = "No worker was free for this just now. Nothing is counted, and your answer is as it was."
LOST = "The worker broke off and has been replaced. Nothing is counted, and your script is as it was."
BUSY = (
    "It was stopped after {seconds} s, and the machine was busy with others meanwhile. Nothing is counted, and your script "
    "is as it was."
)
CALLED_OFF = "Called off. Nothing is counted, and your answer is as it was."
#: The same where the script itself is to blame, which is a try.
STOPPED = {
    StopReason.TIME: "The script was stopped after {seconds} s: does a loop never end? That counts as a try.",
    StopReason.MEMORY: "The script was stopped at {memory} MB of memory. That counts as a try.",
    StopReason.OUTPUT: "The script was stopped: it has more to show than is taken. That counts as a try.",
}
#: Seconds that a run of the page waits for an answer before it is drawn: most come within it, and nothing flickers.
MOMENT = 0.35
#: Seconds between two looks at what takes longer, and how long a look is.
TICK, STAY = 0.15, 0.2
#: Seconds after which workers that give no answer to a program of ours are waited for no longer.
PATIENCE = float(LIMITS["challenge_wait"].value)
#: The share of a core below which a script that ran out of time is not to blame.
STARVED = 0.75

_PENDING, _SAID, _WATCHED = "challenges:pending", "challenges:said", "challenges:watched"


@dataclass(frozen=True, slots=True)
class Typed:
    """An answer to a "predict", a text for each ask."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chosen:
    """An answer to a "spot"; None where nothing is chosen."""

    side: Side | None
    code: str | None


@dataclass(frozen=True, slots=True)
class Script:
    """An answer to a "fix"."""

    text: str


type Answer = Typed | Chosen | Script


@dataclass(slots=True)
class Pending:
    """An answer that is being checked. `ticket`: of the learner's script, once it is handed in."""

    challenge: Challenge
    seed: int
    answer: Answer
    since: float
    runs: Runs | None = None
    ticket: Ticket | None = None

    @property
    def over(self) -> bool:
        """Whether all is there that grading needs, or will never be."""
        if self.runs is None:
            return time.monotonic() - self.since > PATIENCE
        return not isinstance(self.answer, Script) or (self.ticket is not None and self.ticket.wait(0.0))


def under_way(challenge: Challenge) -> bool:
    """Whether an answer to it is being checked."""
    pending: Pending | None = st.session_state.get(_PENDING)
    return pending is not None and pending.challenge.key == challenge.key


@dataclass(frozen=True, slots=True)
class Nothing:
    """Why the last check gave nothing. `answer`: what can be checked once more by a click; None where it was called off."""

    key: str
    text: str
    answer: Answer | None = None


def said(challenge: Challenge) -> Nothing | None:
    """Why the last check gave nothing; None when it did."""
    found: Nothing | None = st.session_state.get(_SAID)
    return found if found is not None and found.key == challenge.key else None


def ask(challenge: Challenge, seed: int, make: Callable[[], Answer]) -> None:
    """For `on_click`: check what is answered now."""
    start(challenge, seed, make())


def start(challenge: Challenge, seed: int, answer: Answer) -> None:
    """Check this answer, unless one is being checked, or there is nothing more to find out."""
    if under_way(challenge) or progress.attempt(challenge, seed).over:
        return
    _drop()
    st.session_state.pop(_SAID, None)
    problem = _problem(answer)
    if problem is not None:
        progress.answered(challenge, seed, problem)
        return
    st.session_state[_PENDING] = Pending(challenge, seed, answer, time.monotonic())


def _problem(answer: Answer) -> Last | None:
    """What keeps an answer from being checked at all."""
    limit = LIMITS["script_text"].value
    match answer:
        case Script(text) if len(text) > limit:
            sentence = fill(TOO_LONG, count=len(text), limit=limit)
            return Last(Grade(forms=((0, sentence),)), None, text)
        case Chosen(side, code) if side is None or code is None:
            missing = ((0, CHOOSE_SIDE, side), (1, CHOOSE_WHY, code))
            return Last(Grade(forms=tuple((field, fill(words)) for field, words, given in missing if given is None)))
        case _:
            return None


def cancel(challenge: Challenge) -> None:
    """For `on_click`: nobody wants to know any more."""
    if under_way(challenge):
        _drop()
        st.session_state[_SAID] = Nothing(challenge.key, fill(CALLED_OFF))


def settle(challenge: Challenge) -> tuple[Pending, Last] | None:
    """What became of the answer that is being checked; None while there is none, or it takes longer than a moment."""
    pending: Pending | None = st.session_state.get(_PENDING)
    st.session_state.pop(_WATCHED, None)
    if pending is None:
        return None
    if pending.challenge.key != challenge.key:
        _drop()
        return None
    if not _ready(pending, MOMENT):
        return None
    # First forgotten, then graded: what fails in the grading must not fail again with every run.
    st.session_state.pop(_PENDING, None)
    last = _graded(pending)
    return None if last is None else (pending, last)


@st.fragment(run_every=TICK)
def progress_line() -> None:
    """How far the check is, looked at again and again; the page runs again when it is over."""
    pending: Pending | None = st.session_state.get(_PENDING)
    words = "" if pending is None else progress_words(pending)
    st.html(f'<p class="cl-quiet cl-challenge-progress" role="status">{html.escape(words)}</p>')
    if _WATCHED not in st.session_state:
        st.session_state[_WATCHED] = True
        return  # a part of the page's own run: begun anew here, it would lose the widgets that it has yet to draw
    if pending is None or _ready(pending, STAY):
        st.rerun()


def progress_words(pending: Pending) -> str:
    """A sentence."""
    if pending.ticket is None:
        place = answers_of(pending.challenge).place(pending.challenge)
        return fill(QUEUED_OURS, place=place) if place else fill(RUNNING_OURS)
    if pending.ticket.place > 0:
        return fill(QUEUED, place=pending.ticket.place)
    seconds = int(time.monotonic() - pending.since)
    return fill(RUNNING, seconds=seconds, limit=LIMITS["worker_seconds"].value)


def _ready(pending: Pending, seconds: float) -> bool:
    """Wait so long at most; whether it is over, one way or the other."""
    deadline = time.monotonic() + seconds
    if pending.runs is None:
        pending.runs = answers_of(pending.challenge).look(pending.challenge, seconds)
    if pending.runs is not None and isinstance(pending.answer, Script):
        if pending.ticket is None:
            mine = seat()
            pending.ticket = mine.pool.submit(mine.session, pending.challenge.attempt(pending.answer.text))
            pending.since = time.monotonic()
        pending.ticket.wait(max(0.0, deadline - time.monotonic()))
        if _gave_way(pending.ticket):
            pending.ticket = None  # to what another panel asked: the next look hands it in again
    return pending.over


def _gave_way(ticket: Ticket) -> bool:
    result = ticket.result
    return isinstance(result, Stopped) and result.reason is StopReason.REPLACED


def _graded(pending: Pending) -> Last | None:
    """The grade; None where there is nothing to grade, and it is said why."""
    challenge, runs = pending.challenge, pending.runs
    if runs is None:
        st.session_state[_SAID] = Nothing(challenge.key, fill(NO_WORKER), pending.answer)
        return None
    match pending.answer:
        case Typed(texts):
            return Last(grade_predict(challenge, texts, runs[0]))
        case Chosen(side, code) if side is not None and code is not None:
            return Last(grade_spot(challenge, side, code, runs, pending.seed))
        case Script(text) if pending.ticket is not None:
            return _of_script(challenge, text, pending.ticket, runs)
        case _:
            return None


def _of_script(challenge: Challenge, text: str, ticket: Ticket, runs: Runs) -> Last | None:
    run, result = graded(ticket.result), ticket.result
    reason = result.reason if isinstance(result, Stopped) else None
    late = reason is StopReason.TIME or (run is not None and out_of_time(run))
    if late and isinstance(result, Done | Stopped) and result.share < STARVED:
        sentence = fill(BUSY, seconds=LIMITS["worker_seconds"].value)
        st.session_state[_SAID] = Nothing(challenge.key, sentence, Script(text))
        return None
    if run is not None:
        grade = grade_fix(challenge, run, runs[1])
        if grade.cut:
            st.session_state[_SAID] = Nothing(challenge.key, fill(NO_TIME), Script(text))
            return None
        return Last(grade, run.answer.report, text)
    if reason in STOPPED:
        sentence = fill(STOPPED[reason], seconds=LIMITS["worker_seconds"].value, memory=LIMITS["worker_memory"].value)
        return Last(Grade.stopped(sentence), None, text)
    busy = reason in (StopReason.BUSY, StopReason.CANCELLED)
    st.session_state[_SAID] = Nothing(challenge.key, fill(NO_WORKER if busy else LOST), Script(text))
    return None


def _drop() -> None:
    pending: Pending | None = st.session_state.pop(_PENDING, None)
    if pending is not None and pending.ticket is not None:
        pending.ticket.cancel()
