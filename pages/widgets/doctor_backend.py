"""The workers that run pasted scripts, as the page sees them: one pool a process, one seat in it a session.

A seat is given back when its browser is gone. Nothing of a script or an answer is kept here.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any, Protocol

import streamlit as st


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

    def close(self) -> None:
        """Stop all workers."""


def start() -> Backend:
    """The pool that this process has."""
    from core.sandbox.pool import Pool

    return Pool()


@st.cache_resource(show_spinner=False, on_release=lambda pool: pool.close())
def backend() -> Backend:
    """The pool, started by the first one who comes."""
    return start()


@dataclass(slots=True)
class Seat:
    """A session's place in the pool; and, while a script of ours is run there for all, a room beside it."""

    pool: Backend
    session: str
    _guest: tuple[str, str] = ("", "")

    def guest_room(self, name: str) -> str:
        """A fresh worker's session for a script of ours; the same for all jobs of one script."""
        if self._guest[0] != name:
            self.leave_guest_room()
            self._guest = (name, new_session())
        return self._guest[1]

    def leave_guest_room(self) -> None:
        """Give it back, if there is one."""
        room, self._guest = self._guest[1], ("", "")
        if room:
            self.pool.release(room)

    def leave(self) -> None:
        """The session is over."""
        self.leave_guest_room()
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
