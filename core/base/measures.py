"""Counts and times of this process that hold nothing of anybody's.

A label takes one of a few words that were fixed beforehand: whatever else it is given is counted as ``other``. So no value,
script, key or address can come into a measure, by mistake or by intent, and their number is bounded. Recording costs some
microseconds and works in any thread; nothing is written anywhere until somebody asks (`core.measures`, the status page).

    with on_page("lstm"):          # a run of a page
        with timed(Part.COMPILE):     # a part of it, wherever that is in core
            …
    CHECKS.add(page="lstm", outcome="violations")
"""

from __future__ import annotations

import bisect
import enum
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from core.base.outcome import Outcome

#: What a label says where the word is none of its own.
OTHER: Final = "other"
#: The pages by their addresses; the first one's is the root.
PAGES: Final = "scan lstm sequence gradients lessons challenges doctor catalogue report regress weights status".split()
#: Upper bounds of a time's buckets in seconds, the issue's 0.1 and 0.4 among them.
BUCKETS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)


#: When this process began to count, by a clock that nobody sets.
_BEGAN: Final = time.monotonic()


def seconds_up() -> float:
    """For how long this process has counted; a wall clock that jumps does not move it."""
    return time.monotonic() - _BEGAN


class Part(enum.StrEnum):
    """What takes time."""

    PAGE = "page"  # a whole run of a page's script
    CHECK = "check"  # the rules, with the fixes they try
    COMPILE = "compile"  # of one program
    QUEUED = "queued"  # a job, until a worker takes it
    WORKER = "worker"  # a job, in its worker


class _Labelled:
    """A name, its help text, its labels with their words, and numbers by label values; safe in any thread."""

    def __init__(self, name: str, said: str, **labels: Iterable[str]) -> None:
        self.name = name
        self.said = said
        self.labels = tuple(labels)
        self._words = {label: frozenset(words) for label, words in labels.items()}
        self._lock = threading.Lock()

    def allow(self, label: str, words: Iterable[str]) -> None:
        """The words of a label that only an outer module knows, in place of those so far."""
        self._words[label] = frozenset(words)

    def _key(self, given: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(str(given[label]) if given.get(label) in self._words[label] else OTHER for label in self.labels)


class Counter(_Labelled):
    """Something that is counted; it only grows."""

    def __init__(self, name: str, said: str, **labels: Iterable[str]) -> None:
        super().__init__(name, said, **labels)
        self._counts: dict[tuple[str, ...], int] = {}

    def add(self, **labels: str) -> None:
        """One more."""
        key = self._key(labels)
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1

    def values(self) -> dict[tuple[str, ...], int]:
        """The counts by the values of the labels."""
        with self._lock:
            return dict(self._counts)

    def total(self, **labels: str) -> int:
        """The sum over all that have these values."""
        at = {self.labels.index(label): value for label, value in labels.items()}
        return sum(n for key, n in self.values().items() if all(key[i] == value for i, value in at.items()))


@dataclass(frozen=True, slots=True)
class Spread:
    """How times are spread: how many lie in each bucket (the last one is open above), and their sum in seconds."""

    counts: tuple[int, ...] = (0,) * (len(BUCKETS) + 1)
    sum: float = 0.0

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(self.counts)

    def quantile(self, share: float) -> float | None:
        """About the time in seconds that this share stays below: linear within its bucket; None without any.

        What lies above the last bound is given as that bound.
        """
        if not self.count:
            return None
        wanted, below, seen = share * self.count, 0.0, 0
        for bound, count in zip(BUCKETS, self.counts, strict=False):
            if count and seen + count >= wanted:
                return below + (bound - below) * (wanted - seen) / count
            below, seen = bound, seen + count
        return BUCKETS[-1]

    def __add__(self, other: Spread) -> Spread:
        """Both together."""
        return Spread(tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)), self.sum + other.sum)


class Times(_Labelled):
    """Times in seconds, in buckets."""

    def __init__(self, name: str, said: str, **labels: Iterable[str]) -> None:
        super().__init__(name, said, **labels)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, seconds: float, **labels: str) -> None:
        """One more time."""
        key, bucket = self._key(labels), bisect.bisect_left(BUCKETS, seconds)
        with self._lock:
            counts = self._counts.setdefault(key, [0] * (len(BUCKETS) + 1))
            counts[bucket] += 1
            self._sums[key] = self._sums.get(key, 0.0) + seconds

    def values(self) -> dict[tuple[str, ...], Spread]:
        """How they are spread, by the values of the labels."""
        with self._lock:
            return {key: Spread(tuple(counts), self._sums[key]) for key, counts in self._counts.items()}


@dataclass(frozen=True, slots=True)
class Reading:
    """Numbers that somebody else keeps, read when they are asked for.

    Attributes:
        name, said, label: as of a counter; the label's values are words of ours, not of a visitor.
        read: the numbers, by the label's value ("" without a label).
        grows: whether it only grows (a counter) or may fall (a gauge).
    """

    name: str
    said: str
    label: str
    read: Callable[[], Mapping[str, float]]
    grows: bool = False


#: Times by page and stage.
TIMES: Final = Times(
    "carry_lab_seconds", "Seconds of a page's run and of its stages.", page=PAGES, stage=[str(s) for s in Part]
)
CUT: Final = Counter(
    "carry_lab_runs_cut_short", "Runs of a page that a newer input cut short, in no time above.", page=PAGES
)
SLOWED: Final = Counter(
    "carry_lab_runs_slowed", "Runs of a page whose new sizes waited for a token to be compiled.", page=PAGES
)
CHECKS: Final = Counter(
    "carry_lab_checks",
    "Runs of a page with a checked input, by how the check ended.",
    page=PAGES,
    outcome=[str(o) for o in Outcome],
)
FAULTS: Final = Counter(
    "carry_lab_faults", "Checked inputs in which a code was found, each code once a run.", page=PAGES, code=()
)
NUMERIC: Final = Counter(
    "carry_lab_numeric_errors", "Checked inputs with a numeric fault (a code that begins with N).", page=PAGES
)
FAILURES: Final = Counter("carry_lab_failures", "Failures of Carry Lab's own that a page showed calmly.", page=PAGES)
SESSIONS: Final = Counter("carry_lab_sessions", "Sessions that began and that ended.", what=("began", "ended"))

COUNTERS: Final = (CUT, SLOWED, CHECKS, FAULTS, NUMERIC, FAILURES, SESSIONS)

_readings: dict[str, Reading] = {}


def watch(reading: Reading) -> None:
    """Have these numbers among the measures; one of the same name gives way."""
    _readings[reading.name] = reading


def readings() -> tuple[Reading, ...]:
    """All that are watched."""
    return tuple(_readings.values())


# --- where we are ---------------------------------------------------------------------------------------------------


class _Here(threading.local):
    """The page whose run this thread is busy with; a run stays on its thread."""

    page: str = OTHER


_here = _Here()


def page_here() -> str:
    """The page whose run this thread is busy with, ``other`` outside of any."""
    return _here.page


@contextmanager
def on_page(page: str) -> Iterator[None]:
    """A run of a page: timed when it comes to its end, counted as cut short when an exception ends it."""
    before, _here.page = _here.page, page
    start = time.perf_counter()
    try:
        yield
    except BaseException:
        CUT.add(page=page)
        raise
    else:
        TIMES.observe(time.perf_counter() - start, page=page, stage=Part.PAGE)
    finally:
        _here.page = before


@contextmanager
def timed(stage: Part) -> Iterator[None]:
    """A stage of whatever page this thread runs; timed however it ends."""
    start = time.perf_counter()
    try:
        yield
    finally:
        TIMES.observe(time.perf_counter() - start, page=_here.page, stage=stage)
