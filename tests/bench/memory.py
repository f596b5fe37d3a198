"""What a process holds and has used, from /proc."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path


class Memory:
    """Of one process; without a pid everything is 0."""

    def __init__(self, pid: int | None) -> None:
        self._proc = None if pid is None else Path("/proc") / str(pid)
        self.samples: list[float] = []

    def rss(self) -> float:
        """Resident memory in MB (2²⁰ bytes)."""
        if self._proc is None:
            return 0.0
        pages = int((self._proc / "statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def maps(self) -> int:
        """Memory maps."""
        if self._proc is None:
            return 0
        with (self._proc / "maps").open("rb") as lines:
            return sum(1 for _ in lines)

    def cpu_seconds(self) -> float:
        """Of user and system."""
        if self._proc is None:
            return 0.0
        fields = (self._proc / "stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    async def sample(self, every: float = 0.1) -> None:
        """Keeps `samples` of the resident memory, until it is cancelled."""
        while self._proc is not None:
            self.samples.append(self.rss())
            await asyncio.sleep(every)


def children(pid: int) -> list[int]:
    """Processes below this one, its grandchildren too."""
    out, todo = [], [pid]
    while todo:
        parent = todo.pop()
        for task in (Path("/proc") / str(parent) / "task").iterdir():
            try:
                found = [int(text) for text in (task / "children").read_text().split()]
            except OSError:
                continue
            out += found
            todo += found
    return out
