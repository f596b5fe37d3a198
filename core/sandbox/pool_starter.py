"""The thread that has workers made: it waits for the fork server so that nobody else need.

It makes a fork server when there is none that lives, each time with a filler of its own, and tries again, ever more
seldom, while nothing comes of it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from core.base.text import fill
from core.sandbox import forkserver
from core.sandbox.pool_process import CannotStart, ForkServer, WorkerProcess

#: Attempts in a row that may fail before those who wait are told so; seconds before the first new attempt, and at most.
ATTEMPTS, AGAIN, SELDOM = 3, 0.2, 5.0
#: Seconds that closing waits for the thread.
PATIENCE: Final = 15.0
#: Seconds between the end of a worker and that of the fork server it died with; seconds after which that is long ago.
MOMENT, LATELY = 0.05, 1.0
NO_SERVER = "the fork server does not answer ({error})"


class Starter:
    """Makes as many workers as it is asked for.

    Args:
        lock: the pool's; everything but `close` and `start` is called with it held, and so are these functions:
        welcome: takes a new process, and whether it is a filler.
        give_up: tells those who wait for a worker that there will be none.
        server: makes a fork server.
    """

    def __init__(
        self,
        lock: threading.Lock,
        welcome: Callable[[WorkerProcess, bool], None],
        give_up: Callable[[], None],
        server: Callable[[], ForkServer],
    ) -> None:
        self.server: ForkServer | None = None
        #: When a dead one was last replaced (`time.monotonic`).
        self._replaced = -LATELY
        self.wanted = 0
        self.trouble = ""
        self._lock = lock
        self._changed = threading.Condition(lock)
        self._welcome = welcome
        self._give_up = give_up
        self._make = server
        self._failures = 0
        self._not_before = 0.0
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="carry-lab-pool-start", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether there is a fork server, and it runs."""
        return self.server is not None and self.server.alive

    @property
    def lost(self) -> bool:
        """Whether the fork server died just now: its workers ended with it.

        They do so a moment before it can be seen to be dead, and it may have been replaced since.
        """
        if time.monotonic() - self._replaced < LATELY:
            return True
        return self.server is not None and self.server.ended_within(MOMENT)

    @property
    def again(self) -> float | None:
        """When it tries again after a failure (`time.monotonic`); None when there was none."""
        return self._not_before if self._failures else None

    def order(self, count: int) -> None:
        """Have so many more workers made."""
        self.wanted += count
        if self.wanted:
            self._changed.notify()

    def succeeded(self) -> None:
        """A worker is ready: what went wrong before is over."""
        self._failures, self.trouble = 0, ""

    def fail(self, trouble: str) -> None:
        """No worker came of an attempt. After some in a row, nobody is left waiting for one."""
        self._failures += 1
        self.trouble = trouble
        self._not_before = time.monotonic() + min(AGAIN * 2.0**self._failures, SELDOM)
        if self._failures >= ATTEMPTS:
            self._give_up()

    def stop(self) -> None:
        """Make no more."""
        self._closed = True
        self._changed.notify_all()

    def close(self) -> None:
        """End the fork server and the thread, after `stop`. Without the lock."""
        if self.server is not None:
            self.server.close()
        self._thread.join(PATIENCE)

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._lock:
                while not self._closed and not (self.wanted and time.monotonic() >= self._not_before):
                    self._changed.wait(max(0.01, self._not_before - time.monotonic()) if self.wanted else None)
                if self._closed:
                    return
            try:
                process = self._living().fork(forkserver.WORKER)
            except (CannotStart, OSError) as error:
                with self._lock:
                    self.wanted = 0
                    self.fail(fill(NO_SERVER, error=type(error).__name__))
                continue
            with self._lock:
                self.wanted = max(0, self.wanted - 1)
                self._welcome(process, False)

    def _living(self) -> ForkServer:
        """The fork server; a new one when there is none that lives.

        Raises:
            CannotStart, OSError: it does not start.
        """
        server = self.server
        if server is not None and server.alive:
            return server
        if server is not None:
            self._replaced = time.monotonic()
            server.close()
        server = self._make()
        with self._lock:
            self.server = server
            closed = self._closed
        if closed:
            server.close()
            raise CannotStart
        filler = server.fork(forkserver.FILLER)
        with self._lock:
            self._welcome(filler, True)
        return server
