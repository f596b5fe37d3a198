"""The class tally: how often each answer was given, counted for a teacher who opened a room for it.

A room holds whole numbers by challenge and choice, and nothing else: no text that anybody typed, no session, no time of a
vote but that of the last one. It is in the memory of this process alone, and gone when it is closed, or after some hours.
That nobody counts twice is each session's own business (it remembers where it has voted, and the tab of its browser does
over a reload); a room could only tell by remembering who voted, and that is what it must not do.

Nor does a room know who opened it. So that nobody keeps all rooms to themselves, a session opens few (`pages.widgets`
counts them), and a room whose owner has gone gives way sooner: to hold a room, a browser must stay.
"""

from __future__ import annotations

import math
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from core.base.limits import LIMITS
from core.challenges.challenge import Challenge
from core.challenges.fields import CODE, OWNER
from core.challenges.grading import choices_of

#: Letters and digits that nobody mistakes for one another on a projector.
LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
#: Between a room's code and its owner's part.
MARK: Final = "-"

type Counts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Key:
    """What opens a room: the code that everybody has, and the owner's part that only its teacher has ("" for others)."""

    code: str
    owner: str = ""

    @classmethod
    def of(cls, text: str) -> Key:
        """What stands in a link."""
        code, _, owner = text.strip().partition(MARK)
        return cls(code.upper(), owner)

    def __str__(self) -> str:
        return f"{self.code}{MARK}{self.owner}" if self.owner else self.code


@dataclass(slots=True)
class _Room:
    owner: str
    opened: float
    last: float
    owners: int = 1
    counts: dict[str, dict[str, int]] = field(default_factory=dict)


class Tally:
    """All rooms of this process. Every method may be called by any thread.

    Args:
        now: a clock that never goes back, in seconds.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._lock = threading.Lock()
        self._rooms: dict[str, _Room] = {}

    def open(self) -> Key | None:
        """A new room, its owner in it; None when there are as many as there may be, and all are in use."""
        with self._lock:
            self._forget()
            if len(self._rooms) >= LIMITS["tally_rooms"].value:
                return None
            code = next(code for code in iter(_code, None) if code not in self._rooms)
            now = self._now()
            self._rooms[code] = _Room(secrets.token_hex(OWNER // 2), now, now)
            return Key(code, self._rooms[code].owner)

    def close(self, key: Key) -> None:
        """The owner closes it: its counts are gone. Nobody else can."""
        with self._lock:
            if self._owned(key) is not None:
                del self._rooms[key.code]

    def come(self, key: Key) -> None:
        """Its owner is here, in one window more."""
        with self._lock:
            room = self._owned(key)
            if room is not None:
                room.owners += 1

    def leave(self, key: Key) -> None:
        """A window of its owner is gone."""
        with self._lock:
            room = self._owned(key)
            if room is not None:
                room.owners = max(0, room.owners - 1)
                room.last = max(room.last, self._now()) if not room.owners else room.last

    def is_open(self, key: Key) -> bool:
        """Whether there is a room with this code."""
        with self._lock:
            return self._room(key) is not None

    def owned(self, key: Key) -> bool:
        """Whether this key is its owner's."""
        with self._lock:
            return self._owned(key) is not None

    def vote(self, key: Key, challenge: Challenge, choice: str) -> bool:
        """Count one answer. Whether it was counted: not in a closed room, not beyond its bounds, no choice of another kind."""
        with self._lock:
            room = self._room(key)
            if room is None or choice not in choices_of(challenge):
                return False
            known = room.counts.get(challenge.key)
            if known is None:
                if len(room.counts) >= LIMITS["tally_challenges"].value:
                    return False
                known = room.counts[challenge.key] = dict.fromkeys(choices_of(challenge), 0)
            if sum(known.values()) >= LIMITS["tally_votes"].value:
                return False
            known[choice] = known.get(choice, 0) + 1
            room.last = self._now()
            return True

    def counts(self, key: Key) -> Mapping[str, Counts]:
        """By challenge, how often each choice was made: for everybody who has the room's code; nothing of any other room."""
        with self._lock:
            room = self._room(key)
            return {} if room is None else {name: dict(counts) for name, counts in room.counts.items()}

    def minutes_left(self, key: Key) -> int:
        """How long it stays open, in minutes, begun ones counted; 0 when it is closed."""
        with self._lock:
            room = self._room(key)
            return 0 if room is None else math.ceil((room.opened + LIMITS["tally_seconds"].value - self._now()) / 60)

    def _room(self, key: Key) -> _Room | None:
        self._forget()
        return self._rooms.get(key.code)

    def _owned(self, key: Key) -> _Room | None:
        room = self._room(key)
        given = key.owner.encode(errors="replace")
        return room if room is not None and secrets.compare_digest(room.owner.encode(), given) else None

    def _forget(self) -> None:
        """Rooms whose time is over go; when all are taken, so does one that nobody has voted in for long.

        One that nobody has ever voted in gives way sooner: whoever opens rooms for fun must not keep a class out.
        """
        now = self._now()
        old = now - LIMITS["tally_seconds"].value
        self._rooms = {code: room for code, room in self._rooms.items() if room.opened > old}
        if len(self._rooms) >= LIMITS["tally_rooms"].value:
            code = max(self._rooms, key=lambda one: _overdue(self._rooms[one], now))
            if _overdue(self._rooms[code], now) > 0:
                del self._rooms[code]


def _overdue(room: _Room, now: float) -> float:
    """For how many seconds a room may have given way to a new one; negative as long as it need not."""
    patience = LIMITS["tally_quiet" if room.counts else "tally_empty"].value
    if not room.owners:
        patience = min(patience, LIMITS["tally_left"].value)
    return now - room.last - patience


def _code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(CODE))
