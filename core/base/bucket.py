"""A token bucket: what one session may have compiled at a stretch, and how fast that comes back.

Nobody is refused and nothing is lost: what has begun is done and may leave the bucket in debt, and what comes next waits
until there is a token again. Each session has a bucket of its own, in its own state, so that one that asks for much waits
for itself and for nobody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from core.base.limits import LIMITS


class Bucket:
    """Tokens of one session, one for each program compiled. It holds two numbers and no value of anybody's.

    Args:
        size: tokens that a full one has; the default is the limit ``compile_burst``. A debt never grows beyond as many.
        refill: tokens a second; the default is the limit ``compile_refill``.
        now: a clock that never goes back, in seconds. Where one does, nothing is lost and nothing is given.
    """

    def __init__(
        self, size: int | None = None, refill: float | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._size = LIMITS["compile_burst"].value if size is None else size
        self._refill = LIMITS["compile_refill"].value if refill is None else refill
        self._now = now
        self._tokens = float(self._size)
        self._at = now()

    @property
    def tokens(self) -> float:
        """What is in it now; negative while it is in debt."""
        now = self._now()
        self._tokens = min(float(self._size), self._tokens + self._refill * max(0.0, now - self._at))
        self._at = now
        return self._tokens

    @property
    def wait(self) -> float:
        """Seconds until something may be compiled; 0 when it may be now."""
        return max(0.0, (1.0 - self.tokens) / self._refill)

    @property
    def overdrawn(self) -> bool:
        """Whether more was compiled on credit than a full bucket holds: by what compiles where nobody can hold it up."""
        return self.tokens <= -self._size

    def take(self, count: int) -> None:
        """Pay for what was compiled."""
        self._tokens = max(-float(self._size), self.tokens - count)
