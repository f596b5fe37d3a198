"""What a pool may use: the rows of `core.base.limits` that are about workers, and what the machine has left."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil

from core.base.limits import LIMITS

_MB: Final = 1_000_000
#: Memory that a container may use, and uses (cgroup v2).
_MAX, _CURRENT = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")


def available() -> int:
    """Bytes that this machine, or the container we are in, has left."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError):
        free = min(free, int(_MAX.read_text()) - int(_CURRENT.read_text()))
    return free


@dataclass(frozen=True, slots=True)
class Bounds:
    """Times in seconds, memory in bytes; see the rows of the same names."""

    running: int
    workers: int
    spares: int
    seconds: float
    alarm: float
    start: float
    idle: float
    memory: int
    idle_memory: int
    room: int
    kept: int
    jobs: int
    queue: int
    available: Callable[[], int] = available

    def has_room(self, more: int) -> bool:
        """Whether the machine has memory for so many more workers."""
        return self.available() - self.kept >= more * self.room

    def short(self) -> bool:
        """Whether what belongs to the pages is being used up."""
        return self.available() < self.kept


def from_limits() -> Bounds:
    """The bounds as the table of limits has them."""

    def row(name: str) -> int:
        return LIMITS[name].value

    return Bounds(
        running=row("running"),
        workers=row("workers"),
        spares=row("spares"),
        seconds=float(row("worker_seconds")),
        alarm=min(row("worker_alarm") / 1e3, 0.8 * row("worker_seconds")),
        start=float(row("worker_start")),
        idle=float(row("worker_idle")),
        memory=row("worker_memory") * _MB,
        idle_memory=row("worker_idle_memory") * _MB,
        room=row("worker_room") * _MB,
        kept=row("memory_kept") * _MB,
        jobs=row("worker_jobs"),
        queue=row("queue"),
    )
