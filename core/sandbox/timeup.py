"""The worker's own alarm: raised in the middle of a script that has had its time, a little before it is killed.

A script cannot keep it off for good: where its own code swallowed it (``except BaseException``, a ``finally`` that goes
on), it is raised again and again for as long as anything of the script is on the stack. Our own code, once it caught
it, is left alone. What runs in one long call of C hears nothing; there the pool's SIGKILL is the last word.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import Final

from core.sandbox.words import FILENAME

#: Seconds between two alarms.
AGAIN: Final = 0.05
#: Frames that are looked at for one of the script's.
DEEP: Final = 10_000


class TimeUp(BaseException):
    """A script has had its time. No `Exception`: a script's own ``except`` is not to catch it."""


class _Bell:
    """Whether the alarm that is set was raised once."""

    rung = False


def arm(seconds: float) -> None:
    """Raise `TimeUp` in the main thread after so many seconds; 0 takes the alarm back. Not from any other thread."""
    signal.signal(signal.SIGALRM, _ring)
    _Bell.rung = False
    signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN if seconds else 0.0)


def _ring(_number: int, frame: FrameType | None) -> None:
    if not _Bell.rung or _in_script(frame):
        _Bell.rung = True
        raise TimeUp


def _in_script(frame: FrameType | None) -> bool:
    for _ in range(DEEP):
        if frame is None:
            return False
        if frame.f_code.co_filename == FILENAME:
            return True
        frame = frame.f_back
    return True
