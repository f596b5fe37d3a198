"""Room for programs that JAX keeps by itself: those of eager operations.

`PROGRAMS` bounds what is compiled on purpose. But a cell that is built or called without jit, a Python loop, a proof:
each of their operations compiles a small program per shape too, and JAX keeps it for the life of the process. A hidden
size never seen before costs a score of them and some 90 memory maps (measured); after about 700 sizes the process
would die at the kernel's 65,530 maps. So they are counted, and dropped all at once when there are many.
"""

from __future__ import annotations

import threading
from typing import Final

import jax
import jax.monitoring

from core.base.limits import LIMITS

#: JAX's own event around each compilation by the backend.
_COMPILE_EVENT: Final = "/jax/core/compile/backend_compile_duration"


class _Counter:
    """Compilations of the whole process since the last time everything was dropped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0

    def add(self) -> None:
        """One more compilation."""
        with self._lock:
            self._count += 1

    def take(self, limit: int) -> bool:
        """Whether there were more than `limit`; then counting starts anew, for one caller only."""
        with self._lock:
            over = self._count > limit
            self._count = 0 if over else self._count
        return over


_counter = _Counter()


def _on_duration(event: str, duration_secs: float, **kwargs: str | int) -> None:  # noqa: ARG001  # jax's protocol
    if event == _COMPILE_EVENT:
        _counter.add()


jax.monitoring.register_event_duration_secs_listener(_on_duration)


def keep_room(limit: int | None = None) -> bool:
    """Drop what JAX keeps of eager operations when there is much of it; programs in `PROGRAMS` stay.

    Call it before work that runs eagerly on sizes somebody chose. It costs nothing until then, a quarter of a second
    when it drops, and later some compilations again.

    Args:
        limit: compilations after which everything is dropped; the default is the limit ``eager_programs``.

    Returns:
        whether it dropped anything.
    """
    if not _counter.take(LIMITS["eager_programs"].value if limit is None else limit):
        return False
    jax.clear_caches()  # type: ignore[no-untyped-call]
    return True
