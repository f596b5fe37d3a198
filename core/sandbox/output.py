"""What a script prints: kept up to a limit, from any thread."""

from __future__ import annotations

import threading
from typing import Final

from core.base.limits import LIMITS

#: Characters of output that are kept (DESIGN.md section 5).
OUTPUT_LIMIT: Final = LIMITS["script_output"].value


class Output:
    """A script's standard output, at most `limit` characters of it; `cut` says that there was more."""

    def __init__(self, limit: int = OUTPUT_LIMIT) -> None:
        self._limit = limit
        self._parts: list[str] = []
        self._length = 0
        self._lock = threading.Lock()
        self.cut = False

    def write(self, text: str) -> None:
        """Add text. What is over the limit is dropped; callbacks of compiled programs write from their own threads."""
        with self._lock:
            room = self._limit - self._length
            self.cut = self.cut or len(text) > room
            if room > 0 and text:
                self._parts.append(text[:room])
                self._length += min(len(text), room)

    @property
    def text(self) -> str:
        """Everything kept."""
        with self._lock:
            return "".join(self._parts)
