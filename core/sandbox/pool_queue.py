"""A queue in which sessions take turns, so that one that asks much waits for itself and for nobody else."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from core.sandbox.pool_ticket import Ticket


class FairQueue:
    """First come, first served, one waiting request a session. Not safe for threads: the pool holds its lock.

    Beside it there may be one that was put back: it had its turn, and lost it by our own fault.
    """

    def __init__(self) -> None:
        #: Sessions that wait, in the order of their turns; each with its requests in order.
        self._waiting: dict[str, deque[Ticket]] = {}

    def __len__(self) -> int:
        return sum(len(line) for line in self._waiting.values())

    def put(self, ticket: Ticket) -> Ticket | None:
        """Add a request. It takes the place of the session's older one, which is returned; None where none waited."""
        line = self._waiting.setdefault(ticket.session, deque())
        for index, older in enumerate(line):
            if not older.tries:
                line[index] = ticket
                return older
        line.append(ticket)
        return None

    def put_back(self, ticket: Ticket) -> None:
        """Put a request first of all: it had its turn, and nothing came of it by our own fault."""
        line = self._waiting.pop(ticket.session, deque())
        line.appendleft(ticket)
        self._waiting = {ticket.session: line, **self._waiting}

    def take(self, session: str) -> Ticket:
        """The session's next request; another one of it waits until all other sessions had a turn."""
        line = self._waiting.pop(session)
        ticket = line.popleft()
        if line:
            self._waiting[session] = line
        return ticket

    def turns(self) -> tuple[str, ...]:
        """The sessions that wait, in the order of their turns."""
        return tuple(self._waiting)

    def waits(self, session: str) -> bool:
        """Whether a session has a request here."""
        return session in self._waiting

    def place(self, ticket: Ticket) -> int:
        """1 for the next request, 2 for the one after it, …; 0 for one that is not here."""
        own = self._waiting.get(ticket.session)
        if own is None or ticket not in own:
            return 0
        turn = own.index(ticket)
        ahead, before = turn, True
        for session, line in self._waiting.items():
            if session == ticket.session:
                before = False
            else:  # in each round before its own every session gets one turn, in its own round those before it
                ahead += min(len(line), turn + before)
        return ahead + 1

    def remove(self, ticket: Ticket) -> bool:
        """Take a request out; whether it was here."""
        line = self._waiting.get(ticket.session)
        if line is None or ticket not in line:
            return False
        line.remove(ticket)
        if not line:
            del self._waiting[ticket.session]
        return True

    def drop(self, session: str) -> Iterator[Ticket]:
        """Take out all requests of a session."""
        yield from self._waiting.pop(session, deque())
