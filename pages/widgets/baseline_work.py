"""The work behind the panel "Baseline": one recording or one comparison in this session, a case at a time.

Between two cases Streamlit has its turn, so that a page is never held up for longer than one case takes; and in the whole
process one case is run at a time, in turns, so that a class that records together does not slow everybody down.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import streamlit as st

from core.base.line import Line
from core.base.text import fill
from core.inputs.fields import Value
from core.regress.baseline import Baseline, NoToleranceError
from core.regress.case import TooLargeError
from core.regress.compare import Checker, Verdict
from core.regress.file import UnreadableError, from_bytes, to_bytes
from core.regress.record import NotRecordedError, Recorder
from core.regress.state import page_state
from core.weights.cell import CellWeights

FAILED = "Carry Lab failed here, not you. Nothing was changed. ({kind})"

_LOG = logging.getLogger("carry_lab")
#: Who runs the next case. It keeps nothing of anybody but tokens that mean nothing.
_LINE: Final = Line()


@dataclass(slots=True)
class Recording:
    """A recording: what it is of, how far it is, and what came of it.

    Attributes:
        token: the values it is of, to say when the page has moved on.
        baseline, data: what came of it, and its file.
        problem: why there is none.
    """

    token: Mapping[str, Value]
    recorder: Recorder | None = None
    baseline: Baseline | None = None
    data: bytes = b""
    problem: str = ""

    @property
    def busy(self) -> bool:
        """Whether there is more to do."""
        return self.recorder is not None

    @property
    def done(self) -> tuple[str, int, int]:
        """(the case that is next, its number, how many there are)."""
        return _done(self.recorder)

    def step(self) -> None:
        """One case; the file after the last."""
        recorder = self.recorder
        if recorder is None:
            return
        recorder.step()
        if not recorder.left:
            self.baseline = recorder.baseline()
            self.data = to_bytes(self.baseline)
            self.recorder = None


@dataclass(slots=True)
class Comparing:
    """A comparison with a file that was given.

    Attributes:
        name: of the file.
        given: its bytes; None once they are read.
        baseline, verdict: what it holds, and what came of it.
        problem: why there is no verdict.
    """

    name: str
    given: bytes | None = None
    checker: Checker | None = None
    baseline: Baseline | None = None
    verdict: Verdict | None = None
    problem: str = ""

    @property
    def busy(self) -> bool:
        """Whether there is more to do."""
        return self.given is not None or self.checker is not None

    @property
    def done(self) -> tuple[str, int, int]:
        """(the case that is next, its number, how many there are)."""
        return _done(self.checker)

    def step(self) -> None:
        """Read the file, or run one case."""
        if self.given is not None:
            given, self.given = self.given, None
            self.baseline = from_bytes(given)
            self.checker = Checker(self.baseline)
            return
        checker = self.checker
        if checker is None:
            return
        checker.step()
        if not checker.left:
            self.verdict, self.checker = checker.verdict, None


def _done(work: Recorder | Checker | None) -> tuple[str, int, int]:
    return ("", 0, 0) if work is None or not work.left else (str(work.now), work.all - work.left + 1, work.all)


@dataclass(slots=True)
class Desk:
    """What this session has of one page's baselines.

    Attributes:
        taken: how often the box for files was emptied.
        watched: its line is drawn.
        token: by which it stands in line. place: how many are before it there, as far as it was told.
    """

    recording: Recording | None = None
    comparing: Comparing | None = None
    taken: int = 0
    watched: bool = False
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    place: int = 0

    @property
    def now(self) -> Recording | Comparing | None:
        """What is under way."""
        return next((job for job in (self.recording, self.comparing) if job is not None and job.busy), None)


def desk_of(page: str) -> Desk:
    """This session's, of a page."""
    desk: Desk = st.session_state.setdefault(f"{page}:baseline", Desk())
    return desk


def start_recording(page: str, values: Mapping[str, Value], file: CellWeights | None, own_key: str) -> None:
    """For `on_click`. `own_key`: of the box "keep what I typed"."""
    own = bool(st.session_state.get(own_key, False))
    work = Recording(values)
    desk_of(page).recording = work
    try:
        work.recorder = Recorder(page_state(page), values, file=file, own=own)
    except Exception as error:  # noqa: BLE001  # no traceback may reach the browser
        _failed(work, error)


def start_comparing(page: str, key: str) -> None:
    """For `on_change` of the box: what was put in is compared; what was taken out is forgotten."""
    file = st.session_state.get(key)
    desk_of(page).comparing = None if file is None else Comparing(str(file.name), file.getvalue())


def cancel(page: str) -> None:
    """For `on_click`: nothing more is run. What was there before the click on “Record” is gone already."""
    desk = desk_of(page)
    if desk.recording is not None and desk.recording.busy:
        desk.recording = None
    if desk.comparing is not None and desk.comparing.busy:
        desk.comparing = None
        desk.taken += 1


def go_on(desk: Desk) -> int:
    """Do one step of what is under way, and give 0; where others are first, their number."""
    work = desk.now
    if work is None:
        return 0
    desk.place = _LINE.come(desk.token)
    if desk.place:
        return desk.place
    try:
        work.step()
    except (NotRecordedError, TooLargeError, UnreadableError, NoToleranceError) as error:
        _stop(work, str(error))
    except Exception as error:  # noqa: BLE001  # no traceback may reach the browser, and no step may be tried for ever
        _failed(work, error)
    finally:
        _LINE.leave(desk.token)
    return 0


def _failed(work: Recording | Comparing, error: Exception) -> None:
    """The log gets the type alone: a message may hold what somebody typed."""
    _LOG.error("baseline: %s", type(error).__name__)
    _stop(work, fill(FAILED, kind=type(error).__name__))


def _stop(work: Recording | Comparing, problem: str) -> None:
    work.problem = problem
    if isinstance(work, Recording):
        work.recorder = None
    else:
        work.given = work.checker = None
