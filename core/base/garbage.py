"""Collects garbage now and then, for all sessions together.

Streamlit would collect after every run of a script. That holds the interpreter for as long as it takes to look at
everything that 50 sessions keep: some 15 ms a run, as much as a small page itself (measured). So it is switched off there
(``runner.postScriptGC`` in .streamlit/config.toml) and done here every few seconds, whoever has just finished; compiled
programs and arrays that are held by a cycle wait no longer than that.
"""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable

from core.base.limits import LIMITS


class Collector:
    """Collects when the last time was long enough ago; safe from any thread.

    Args:
        seconds: between two collections; the default is the limit ``collect_every``.
        now: a clock that never goes back, in seconds.
        collect: what is done.
    """

    def __init__(
        self,
        seconds: float | None = None,
        now: Callable[[], float] = time.monotonic,
        collect: Callable[[], object] = gc.collect,
    ) -> None:
        self._seconds = LIMITS["collect_every"].value if seconds is None else seconds
        self._now = now
        self._collect = collect
        self._busy = threading.Lock()
        self._last = now()

    def now_and_then(self) -> bool:
        """Collect if it is time and nobody else is at it; whether it was done."""
        if self._now() - self._last < self._seconds or not self._busy.acquire(blocking=False):
            return False
        try:
            self._last = self._now()
            self._collect()
        finally:
            self._busy.release()
        return True


#: Of this process.
COLLECTOR = Collector()
