"""The workers that there are, whose they are, and which of them may be given to whom.

A worker that ran a script belongs to that session until it ends. One that ran none is as good as new: it may be kept
ready for a session (*reserved*) and still be handed to another one that needs it now.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from core.sandbox.pool_process import WorkerProcess
from core.sandbox.pool_ticket import StopReason, Ticket


@dataclass(slots=True, eq=False)
class Worker:
    """One worker.

    Attributes:
        ready: it has warmed up.
        session: whose it is, or for whom it is kept ready; None for a spare one.
        used: it ran a script of that session.
        ticket: what it is doing; None when it is idle.
        sent: when it was sent its request. cpu: what it had used of a core by then, in seconds. started: when it said that it begins; None until then.
        touched: when it last had anything to do.
        jobs: requests that it answered.
        doomed: why it is to be killed, and when at the latest: it was asked to say where it is first.
    """

    process: WorkerProcess
    made: float = field(default_factory=time.monotonic)
    ready: bool = False
    session: str | None = None
    used: bool = False
    ticket: Ticket | None = None
    sent: float = 0.0
    cpu: float = 0.0
    started: float | None = None
    touched: float = field(default_factory=time.monotonic)
    jobs: int = 0
    doomed: tuple[StopReason, float] | None = None

    def share(self, now: float) -> float:
        """The share of one core that it had since it was sent its request: above 1 where it used several, 1 if not known."""
        used = self.process.cpu() - self.cpu
        return used / (now - self.sent) if used >= 0 and now > self.sent else 1.0

    @property
    def idle(self) -> bool:
        """Warmed up, with nothing to do."""
        return self.ready and self.ticket is None


class Crew:
    """All workers. Not safe for threads: the pool holds its lock."""

    def __init__(self) -> None:
        self._all: dict[Worker, None] = {}

    def __iter__(self) -> Iterator[Worker]:
        return iter(tuple(self._all))

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, worker: Worker) -> bool:
        return worker in self._all

    def add(self, worker: Worker) -> None:
        """One more."""
        self._all[worker] = None

    def remove(self, worker: Worker) -> None:
        """One less."""
        del self._all[worker]

    def of(self, session: str) -> Worker | None:
        """The session's own worker, warmed up or not."""
        return next((w for w in self._all if w.session == session), None)

    def running(self) -> list[Worker]:
        """Those with a request."""
        return [w for w in self._all if w.ticket is not None]

    def warming(self) -> list[Worker]:
        """Those that are not ready yet."""
        return [w for w in self._all if not w.ready]

    def unbound(self) -> list[Worker]:
        """Those that nobody has, ready or not."""
        return [w for w in self._all if w.session is None]

    def spare(self) -> Worker | None:
        """One that is ready and nobody's."""
        return next((w for w in self._all if w.idle and w.session is None), None)

    def borrowed(self, but_not: frozenset[str]) -> Worker | None:
        """One that is ready and only reserved, not for one of these sessions: the one reserved longest ago."""
        clean = (w for w in self._all if w.idle and not w.used and w.session is not None and w.session not in but_not)
        return min(clean, key=lambda w: w.touched, default=None)

    def oldest_idle(self, but_not: frozenset[str]) -> Worker | None:
        """The one whose session has asked for nothing for the longest time."""
        idle = (w for w in self._all if w.idle and w.used and w.session not in but_not)
        return min(idle, key=lambda w: w.touched, default=None)
