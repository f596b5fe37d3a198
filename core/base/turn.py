"""Turns at the interpreter: one script of a page at a time, since Python runs one at a time anyway.

Threads that want the interpreter at once share it in slices of 5 ms, and each message to a browser needs a slice of its
own: with 50 people three scripts of 30 ms at once take all three 90 ms and more. One after the other the first is done
after 30 (measured, 50 sessions on the Scan page: 95 of 100 changes within 147 ms instead of 294, on Sequence 164 ms
instead of 1,586). Who has a turn gives it away while a program is compiled, which leaves the interpreter free; and nobody
waits for ever: after the limit ``turn_wait`` a script goes on beside the one before it.

Nothing is kept of anybody but whether a thread has the turn.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from core.base.limits import LIMITS


class _Mine(threading.local):
    """Whether this thread is in a turn, and whether it really has it (else it did not want to wait any longer)."""

    inside: bool = False
    has: bool = False


class Turns:
    """One turn at a time; safe from any thread.

    Args:
        patience: seconds that somebody waits for a turn; the default is the limit ``turn_wait``.
    """

    def __init__(self, patience: float | None = None) -> None:
        self._patience = LIMITS["turn_wait"].value / 1000 if patience is None else patience
        self._free = threading.Semaphore()
        self._mine = _Mine()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Work that holds the interpreter. A turn within a turn is the same one."""
        mine = self._mine
        if mine.inside:
            yield
            return
        mine.inside, mine.has = True, self._free.acquire(timeout=self._patience)
        try:
            yield
        finally:
            self._give_back()
            mine.inside = False

    @contextmanager
    def away(self) -> Iterator[None]:
        """Within a turn: work that leaves the interpreter free (a compilation), or waits for somebody else's."""
        mine = self._mine
        self._give_back()
        try:
            yield
        finally:
            if mine.inside:
                mine.has = self._free.acquire(timeout=self._patience)

    def _give_back(self) -> None:
        if self._mine.has:
            self._mine.has = False
            self._free.release()


#: Of this process.
TURNS = Turns()
