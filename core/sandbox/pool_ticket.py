"""What whoever asks the pool holds in his hand: a ticket with a place, and in the end a result."""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from core.base.measures import TIMES, Part, page_here


class StopReason(enum.StrEnum):
    """Why there is no answer."""

    TIME = "time"  # it was stopped at the limit ``worker_seconds``
    MEMORY = "memory"  # it was stopped at the limit ``worker_memory``, or found none left
    DIED = "died"  # the worker crashed (a stack overflow in C), sent garbage, or failed by our own fault
    OUTPUT = "output"  # the answer was over the limit ``answer_bytes``
    CANCELLED = "cancelled"  # by `Ticket.cancel`, or its session is over, or the pool was closed
    REPLACED = "replaced"  # by a newer request of its session, while it waited
    BUSY = "busy"  # the queue was full


@dataclass(frozen=True, slots=True)
class Done:
    """An answer, as the handler gave it: read it strictly (`core.doctor.wire`), for a stranger's worker sent it.

    `seconds`: how long the worker took. `waited`: how long it was queued before. `share`: of one core, that it had
    meanwhile: well below 1 where the machine was busy with others.
    """

    answer: dict[str, Any]
    seconds: float = 0.0
    waited: float = 0.0
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Stopped:
    """No answer. `line`: where the script was, as far as that could be seen from outside; a line of the script.

    `share`: as of an answer.
    """

    reason: StopReason
    seconds: float = 0.0
    line: int | None = None
    share: float = 1.0


type Result = Done | Stopped


class _Desk(Protocol):
    """What a ticket asks of the pool."""

    def place(self, ticket: Ticket) -> int:
        """Its place in the queue."""

    def cancel(self, ticket: Ticket) -> None:
        """Give it up."""


class Ticket:
    """One request on its way. Any thread may ask it.

    Attributes:
        session: whose it is.
        wish: its kind, as its handler calls it.
        frame: what the worker is sent.
        page: on which it was asked for.
    """

    def __init__(self, desk: _Desk, session: str, wish: str, frame: bytes) -> None:
        self.session = session
        self.wish = wish
        self.frame = frame
        self.page = page_here()
        self.asked = time.monotonic()
        self.tries = 0
        self._desk = desk
        self._result: Result | None = None
        self._done = threading.Event()

    @property
    def place(self) -> int:
        """0 while it runs and when it is done, n as the n-th in the queue."""
        return 0 if self._done.is_set() else self._desk.place(self)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until it is done, at most so long. Whether it is."""
        return self._done.wait(seconds)

    def cancel(self) -> None:
        """Give it up: it leaves the queue, or the worker that runs it is killed. Nothing happens when it is done."""
        self._desk.cancel(self)

    @property
    def result(self) -> Result | None:
        """How it ended; None until then."""
        return self._result

    def finish(self, result: Result) -> None:
        """Set the result, once (the pool's business)."""
        if not self._done.is_set():
            self._result = result
            if isinstance(result, Done):
                TIMES.observe(result.waited, page=self.page, stage=Part.QUEUED)
                TIMES.observe(result.seconds, page=self.page, stage=Part.WORKER)
            self.frame = b""
            self._done.set()


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """A look at the pool, for the status page.

    Attributes:
        alive: whether it takes requests and its fork server runs.
        limit: workers that may compute at the same time.
        running, queued: requests.
        warming, spare, reserved, kept: workers that warm up, wait for anybody, wait for a session that has asked for
            nothing yet, and wait for the session whose script they ran.
        made, lost: workers since the start: forked, and ended for any reason.
        memory: bytes resident in all workers together (pages they share are counted for each).
        stopped: results without an answer, by reason.
        walls: name, whether it is in force, and why not, as the workers found them; empty until one is ready.
        failed: our own failures in workers: type of the exception and places in our code, the last few.
        trouble: why there are no workers, "" when there are.
    """

    alive: bool
    limit: int
    running: int = 0
    queued: int = 0
    warming: int = 0
    spare: int = 0
    reserved: int = 0
    kept: int = 0
    made: int = 0
    lost: int = 0
    memory: int = 0
    stopped: Mapping[StopReason, int] = field(default_factory=dict)
    walls: tuple[tuple[str, bool, str], ...] = ()
    failed: tuple[str, ...] = ()
    trouble: str = ""
