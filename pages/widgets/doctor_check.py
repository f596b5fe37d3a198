"""What is known of the script as it stands, and the job that finds out more: shapes while typing rests, all on Run.

look = settle(script, state.asked, tell)      # hands in what is missing, and waits a moment for it
…                                             # the page is drawn with what is known
watch(look, tell)                             # where the strip stands, while something is under way
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st

from core.base.limits import LIMITS
from core.doctor.answer import Answer, Wish
from core.doctor.gallery import Example, example_of
from core.doctor.wire import Unreadable, from_wire
from core.sandbox.pool_ticket import Done, Result, Stopped, StopReason
from pages.widgets.doctor_backend import Ticket, prepared, seat
from pages.widgets.doctor_state import RAN, STOPPED

#: Seconds that a run waits for an answer before it draws: most come within it, and nothing flickers.
MOMENT = 0.35
#: Seconds between two looks at a job that takes longer, and how long a look is.
TICK, STAY = 0.1, 0.2
#: Seconds that shapes may take when something else is waited for.
PATIENCE = 1.0
#: Reasons that say nothing about the script.
NOT_THE_SCRIPT = frozenset({StopReason.CANCELLED, StopReason.BUSY})

_JOB, _SHAPES = "doctor:job", "doctor:shapes"
#: Set once the page is drawn: only then may a look take its time, and end in a rerun.
_WATCHED = "doctor:watched"


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A job under way. `example`: the script of ours that it is."""

    wish: Wish
    text: str
    ticket: Ticket
    since: float
    example: Example | None = None


@dataclass(frozen=True, slots=True)
class Halt:
    """A job that gave no answer. `reason`: None when the answer could not be read; `line`: where the script was then."""

    text: str
    wish: Wish
    reason: StopReason | None
    line: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What is known of the script as it stands.

    Attributes:
        text: the script.
        answer: the best there is of it: of a run, else its shapes; None when nothing is known yet.
        before: the last answer of another text, to be shown as stale until there is one of this; else None.
        halt: why the last job for it gave nothing; else None.
        job: what is under way for it; else None.
        too_long: how many characters it has, when these are too many; else 0.
    """

    text: str
    answer: Answer | None = None
    before: Answer | None = None
    halt: Halt | None = None
    job: Job | None = None
    too_long: int = 0

    @property
    def halted(self) -> Halt | None:
        """Why nothing is known of it, or only its shapes; that fixes could not be tried leaves the verdict as it is."""
        return None if self.halt is None or self.halt.wish is Wish.FIXES else self.halt

    @property
    def unfixed(self) -> bool:
        """Whether trying its fixes was broken off."""
        return self.halt is not None and self.halt.wish is Wish.FIXES

    @property
    def empty(self) -> bool:
        """There is no script."""
        return not self.text.strip()


def settle(text: str, asked: str | None, tell: Callable[[Look], None]) -> Look:
    """Hand in the job that is missing, wait a moment for it, and say what is known then.

    Args:
        text: the script.
        asked: the script that somebody asked to be run.
        tell: called when there is something to wait for.
    """
    look = _look(text)
    st.session_state.pop(_WATCHED, None)
    _drop_other(text, asked)
    deadline = time.monotonic() + MOMENT
    while (look := _next(look, asked)).job is not None:
        tell(look)
        if not _finished(look.job, max(0.0, deadline - time.monotonic())):
            break
        look = _look(text)
    return look


@st.fragment(run_every=TICK)
def watch(look: Look, asked: str | None, tell: Callable[[Look], None]) -> None:
    """Where the strip stands while a job is under way: says how it goes, and runs the page again when it is over.

    A fragment, not a wait at the end of the page: what is no longer true must leave the page at once.
    """
    tell(look)
    if _WATCHED not in st.session_state:
        st.session_state[_WATCHED] = True
        return  # a part of the page's own run: begun anew here, it would lose the widgets that it has yet to draw
    if look.job is not None and (_finished(look.job, STAY) or _is_over(look.job, look.text, asked)):
        st.rerun()


def cancel() -> None:
    """For `on_click`: nobody wants the answer any more."""
    job: Job | None = st.session_state.get(_JOB)
    if job is not None:
        _call_off(job)
        st.session_state[STOPPED] = Halt(job.text, job.wish, StopReason.CANCELLED)


def _look(text: str) -> Look:
    ran: tuple[str | None, Answer] | None = st.session_state.get(RAN)
    shapes: tuple[str, Answer] | None = st.session_state.get(_SHAPES)
    answer = next((found[1] for found in (ran, shapes) if found is not None and found[0] == text), None)
    last = shapes if shapes is not None and shapes[0] != text else ran
    halt: Halt | None = st.session_state.get(STOPPED)
    length = len(text)
    return Look(
        text,
        answer,
        before=last[1] if answer is None and last is not None else None,
        halt=halt if halt is not None and halt.text == text else None,
        job=st.session_state.get(_JOB),
        too_long=length if length > LIMITS["script_text"].value else 0,
    )


def _is_over(job: Job, text: str, asked: str | None) -> bool:
    """Whether something else is wanted than what is under way, and it is not worth waiting for.

    Shapes take less time than replacing the worker does: they are left to end, unless the script itself does not.
    """
    halt: Halt | None = st.session_state.get(STOPPED)
    # After a run that was broken off its shapes are all that is wanted: called off as in its way, they would begin again
    # and again.
    broken_off = halt is not None and halt.text == text
    if job.text == text and (job.wish is not Wish.SHAPES or asked != text or broken_off):
        return False
    queued = job.ticket.place > 0
    return queued or job.wish is not Wish.SHAPES or time.monotonic() - job.since > PATIENCE


def _drop_other(text: str, asked: str | None) -> None:
    """Call off what is not wanted any more."""
    job: Job | None = st.session_state.get(_JOB)
    if job is not None and _is_over(job, text, asked):
        _call_off(job)


def _next(look: Look, asked: str | None) -> Look:
    """With the job under way, handed in now where none is; without one when all is known."""
    job: Job | None = st.session_state.get(_JOB)
    if job is not None:
        return replace(look, job=job)
    example = example_of(look.text)
    wish = _wish(look, asked, example)
    if wish is None:
        return replace(look, job=None)
    known = prepared().answer(example.name) if example is not None else None
    if known is not None:
        st.session_state[RAN] = (look.text, known)
        return replace(_look(look.text), job=None)
    return replace(look, job=_hand_in(look.text, wish, example))


def _wish(look: Look, asked: str | None, example: Example | None) -> Wish | None:
    if look.empty or look.too_long:
        return None
    done = None if look.answer is None else look.answer.wish
    if look.halt is not None:  # what could not be run still has its shapes
        untried = look.halt.wish is not Wish.SHAPES and look.halt.reason not in NOT_THE_SCRIPT
        return Wish.SHAPES if untried and done is None else None
    if asked != look.text and example is None:  # one of ours may run without being asked
        return Wish.SHAPES if done is None else None
    if done is None or done is Wish.SHAPES:
        return Wish.CHECK
    finished = done is Wish.FIXES or look.answer is None or not look.answer.report.violations
    return None if finished else Wish.FIXES


def _hand_in(text: str, wish: Wish, example: Example | None) -> Job:
    request, mine = {"wish": wish.value, "text": text}, seat()
    ticket = mine.pool.submit(mine.session, request) if example is None else prepared().submit(example.name, request)
    job = Job(wish, text, ticket, time.monotonic(), example)
    st.session_state[_JOB] = job
    return job


def _finished(job: Job, seconds: float) -> bool:
    """Wait for a job; when it is over, keep what it found."""
    if not job.ticket.wait(seconds):
        return False
    if st.session_state.get(_JOB) is not job:
        return True
    result = job.ticket.result
    st.session_state.pop(_JOB)
    answer = _read(result, job.wish)
    if job.example is not None:
        _keep(job.example, answer)
    if answer is None:
        stopped = result if isinstance(result, Stopped) else None
        if stopped is not None and stopped.reason is StopReason.REPLACED:
            return True  # it gave way to what another panel asked: the next look hands it in again
        reason, line = (stopped.reason, stopped.line) if stopped is not None else (None, None)
        st.session_state[STOPPED] = Halt(job.text, job.wish, reason, line)
        return True
    if job.wish is not Wish.SHAPES:
        st.session_state.pop(STOPPED, None)
        answer = _as_timed(answer, job)
    st.session_state[_SHAPES if job.wish is Wish.SHAPES else RAN] = (job.text, answer)
    return True


def _keep(example: Example, answer: Answer | None) -> None:
    """An example's last answer for everybody: unless there was no time for all of its fixes."""
    if answer is None:
        prepared().end(example.name, None)
    elif answer.wish is Wish.FIXES or not answer.report.violations:
        prepared().end(example.name, None if answer.cut else answer)


def _as_timed(answer: Answer, job: Job) -> Answer:
    """With the time that the check took: trying the fixes afterwards is not what people wait for."""
    ran: tuple[str, Answer] | None = st.session_state.get(RAN)
    if job.wish is not Wish.FIXES or ran is None or ran[0] != job.text:
        return answer
    return replace(answer, milliseconds=ran[1].milliseconds)


def _call_off(job: Job) -> None:
    """Nobody here wants it any more. One of ours goes on: others may wait for it."""
    st.session_state.pop(_JOB, None)
    if job.example is None:
        job.ticket.cancel()


def _read(result: Result | None, wish: Wish) -> Answer | None:
    """The answer in a result; None when there is none, or none that can be read."""
    if not isinstance(result, Done):
        return None
    try:
        answer = from_wire(result.answer)
    except Unreadable:
        return None
    return answer if answer.wish is wish else None
