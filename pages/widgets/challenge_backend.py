"""What the programs of a challenge give, and what a learner's script gives, found by workers.

Reviewed challenges are ours and few: each is run once for the whole process, in workers that run nothing else, and its answers
are kept for everybody. What is generated is run in the session's own worker, and kept in the session: nobody can make the
others wait for it. A learner's script runs there, too, and nothing of it is kept for anybody else.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from core.base.limits import LIMITS
from core.base.outcome import Outcome
from core.challenges.challenge import Challenge
from core.challenges.generate import MORE
from core.doctor.grade_job import Graded, read
from core.doctor.wire import Unreadable
from core.sandbox.pool_ticket import Done
from pages.widgets.doctor_backend import Backend, Ticket, backend, new_session, seat

type Runs = tuple[Graded, ...]

#: Answers that a session keeps of what was generated for it.
_MINE = LIMITS["challenge_made"].value
_NAME = "challenges:answers"


@dataclass(slots=True)
class _Job:
    """A challenge whose programs are being run, one after the other."""

    room: str
    ticket: Ticket
    rest: list[dict[str, Any]]
    found: list[Graded] = field(default_factory=list)


class Answers:
    """What programs of ours give, by challenge; bounded, the least used go first.

    Args:
        pool: the workers.
        most: so many are kept.
        room: a name of a session in the pool for each job; the same one where there is one for all.
        leave: gives such a name back when the job is over.
    """

    def __init__(self, pool: Backend, most: int, room: Callable[[], str], leave: Callable[[str], None]) -> None:
        self._pool, self._most, self._room, self._leave = pool, most, room, leave
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Runs] = OrderedDict()
        self._jobs: dict[str, _Job] = {}

    def look(self, challenge: Challenge, seconds: float = 0.0) -> Runs | None:
        """What is known of a challenge, after so many seconds at most; what is not known yet is handed in.

        None where it is not known by then, or where the workers gave no answer: then the next look tries anew.
        """
        deadline = time.monotonic() + seconds
        while True:
            with self._lock:
                self._sweep()
                if challenge.key in self._known:
                    self._known.move_to_end(challenge.key)
                    return self._known[challenge.key]
                job = self._jobs.get(challenge.key) or self._begin(challenge)
            if not job.ticket.wait(max(0.0, deadline - time.monotonic())):
                return None
            with self._lock:
                if self._jobs.get(challenge.key) is job and not self._go_on(challenge.key, job):
                    return None

    def place(self, challenge: Challenge) -> int:
        """Its place in the queue for a worker; 0 while it runs, and where it is not asked for."""
        with self._lock:
            job = self._jobs.get(challenge.key)
        return 0 if job is None else job.ticket.place

    def _sweep(self) -> None:
        """Jobs that are over, and that nobody waits for any more, give their worker back."""
        for key, job in list(self._jobs.items()):
            if job.ticket.wait(0.0):
                self._go_on(key, job)

    def _begin(self, challenge: Challenge) -> _Job:
        first, *rest = challenge.requests()
        room = self._room()
        job = self._jobs[challenge.key] = _Job(room, self._pool.submit(room, first), rest)
        return job

    def _go_on(self, key: str, job: _Job) -> bool:
        """Take the answer that has come. False where there is none: the job is given up."""
        if not job.ticket.wait(0.0):  # another one took it, and handed in the next
            return True
        found = graded(job.ticket.result)
        if (
            found is None or not found.whole or found.answer.report.outcome is Outcome.LIMIT
        ):  # ours is over no limit: the machine is busy
            self._end(key, job)
            return False
        job.found.append(found)
        if job.rest:
            job.ticket = self._pool.submit(job.room, job.rest.pop(0))
            return True
        self._end(key, job)
        self._known[key] = tuple(job.found)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
        return True

    def _end(self, key: str, job: _Job) -> None:
        del self._jobs[key]
        self._leave(job.room)


@st.cache_resource(show_spinner=False)
def shared() -> Answers:
    """Those of the reviewed challenges, for everybody."""
    pool = backend()
    return Answers(pool, LIMITS["challenge_answers"].value, new_session, pool.release)


def answers_of(challenge: Challenge) -> Answers:
    """Where the answers of a challenge are: for everybody, or in this session."""
    if not challenge.key.startswith(MORE):
        return shared()
    mine = seat()
    if _NAME not in st.session_state:
        st.session_state[_NAME] = Answers(mine.pool, _MINE, lambda: mine.session, lambda _: None)
    found: Answers = st.session_state[_NAME]
    return found


def graded(result: object) -> Graded | None:
    """The answer in a result; None when there is none, or none that can be read."""
    if not isinstance(result, Done):
        return None
    try:
        return read(result.answer)
    except Unreadable:
        return None
