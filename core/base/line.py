"""A line of those who take turns at work that is done in the server itself, one piece at a time.

Nobody waits inside: whoever asks is told their place, and asks again. Whoever stops asking (a page that was left) loses
the place. Nothing is kept of anybody but a token that means nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable


class Line:
    """First come, first served, a piece of work each; safe from any thread.

    Args:
        patience: seconds without being asked for, after which a place is lost; the one at work keeps it.
        now: a clock that never goes back, in seconds.
    """

    def __init__(self, patience: float = 3.0, now: Callable[[], float] = time.monotonic) -> None:
        self._patience = patience
        self._now = now
        self._lock = threading.Lock()
        self._seen: dict[Hashable, float] = {}
        self._at_work: Hashable | None = None

    def come(self, who: Hashable) -> int:
        """Stand in line, or stay there: 0 for whose turn it is, who then works and must `leave`; n for the n-th behind."""
        with self._lock:
            now = self._now()
            self._seen[who] = now
            self._seen = {
                one: at for one, at in self._seen.items() if one == self._at_work or now - at <= self._patience
            }
            place = list(self._seen).index(who)
            if self._at_work is None and place == 0:
                self._at_work = who
                return 0
            return max(1, place)

    def leave(self, who: Hashable) -> None:
        """A piece is done, or given up. For another one it comes again, and stands at the end of the line."""
        with self._lock:
            self._seen.pop(who, None)
            if self._at_work == who:
                self._at_work = None
