"""The workers that run pasted scripts, as the page sees them: one pool a process, one seat in it a session.

A seat is given back when its browser is gone. Nothing of a script or an answer is kept here.
"""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass
from typing import Any, Protocol

import streamlit as st

from core.doctor.answer import Answer
from core.sandbox.pool_ticket import PoolStatus
from pages.widgets.measured import watch_pool


class Ticket(Protocol):
    """A job that was handed in (`core.sandbox.pool.Ticket`)."""

    @property
    def place(self) -> int:
        """0: it runs; n: it is the n-th in the queue."""

    @property
    def result(self) -> Any:
        """`Done` or `Stopped`, once it is over."""

    def wait(self, seconds: float) -> bool:
        """Wait so long at most; whether it is over."""

    def cancel(self) -> None:
        """Nobody wants the answer any more."""


class Backend(Protocol):
    """`core.sandbox.pool.Pool`, as far as the page needs it."""

    def reserve(self, session: str) -> None:
        """Have a warmed worker ready: a script will come."""

    def submit(self, session: str, request: dict[str, Any]) -> Ticket:
        """Hand in a job of a session."""

    def release(self, session: str) -> None:
        """The session is over: its worker goes."""

    def status(self) -> PoolStatus:
        """How the workers are."""

    def close(self) -> None:
        """Stop all workers."""


#: What answers in a worker: scripts, and the reports of every page.
HANDLER = "core.report.worker"


def start() -> Backend:
    """The pool that this process has."""
    from core.sandbox.pool import Pool

    pool = Pool(HANDLER)
    watch_pool(pool.status)
    return pool


@st.cache_resource(show_spinner=False, on_release=lambda pool: pool.close())
def backend() -> Backend:
    """The pool, started by the first one who comes."""
    return start()


@dataclass(frozen=True, slots=True)
class Seat:
    """A session's place in the pool."""

    pool: Backend
    session: str

    def leave(self) -> None:
        """The session is over."""
        self.pool.release(self.session)


def seat() -> Seat:
    """This session's; taken when the page opens, so that a worker is warm when the first script comes."""
    if _NAME not in st.session_state:
        st.session_state[_NAME] = new_session()
    return _seat(st.session_state[_NAME])


_NAME = "doctor:session"


@st.cache_resource(show_spinner=False, scope="session", on_release=Seat.leave)
def _seat(session: str) -> Seat:
    taken = Seat(backend(), session)
    taken.pool.reserve(session)
    return taken


def new_session() -> str:
    """A name that nobody else has."""
    return secrets.token_hex(12)


# --- scripts of ours ------------------------------------------------------------------------------------------------


class Prepared:
    """Answers to our unchanged examples, by name: made once a process, by workers that ran nothing else.

    A whole class may open the same one: all wait for the same job, and nobody can call it off for the others.
    """

    def __init__(self, pool: Backend) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._answers: dict[str, Answer] = {}
        self._rooms: dict[str, str] = {}
        self._tickets: dict[tuple[str, str], Ticket] = {}

    def answer(self, name: str) -> Answer | None:
        """What is known of an example, with its fixes."""
        return self._answers.get(name)

    def submit(self, name: str, request: dict[str, Any]) -> Ticket:
        """The job of an example, handed in by the first one who wants it."""
        with self._lock:
            key = (name, str(request["wish"]))
            if key not in self._tickets:
                room = self._rooms.setdefault(name, new_session())
                self._tickets[key] = self._pool.submit(room, request)
            return self._tickets[key]

    def end(self, name: str, answer: Answer | None) -> None:
        """Its last job is over: keep its answer; None when there is none to be kept, and the next one tries anew."""
        with self._lock:
            if answer is not None:
                self._answers[name] = answer
            room = self._rooms.pop(name, None)
            self._tickets = {key: ticket for key, ticket in self._tickets.items() if key[0] != name}
        if room is not None:
            self._pool.release(room)


@st.cache_resource(show_spinner=False)
def prepared() -> Prepared:
    """Those of this process: ours, none of anybody's."""
    return Prepared(backend())
