"""A report is made in parts, so that each has its own seconds in a worker, a progress, and an outcome of its own.

    GIVEN     what was run: inputs by hash, seeds, requests for keys, the contract, the negative tests
    CHECKS    the criteria that one run settles
    GRADIENTS, FORMULA, MODE, JIT, VMAP: those that run or compile something of their own
    EAGER     what JIT and VMAP are compared with; it has no criterion of its own
    LATENCY   the times

What a part gives is a `Piece`, plain data; `core.report.compose` makes the report of them. A part that was stopped has no
piece, and its criteria say so.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from core.base.text import fill
from core.doctor.check import Terms
from core.report.case import Case, Step, UnreportableError, negatives_criterion
from core.report.cell_case import cell_case
from core.report.declared import DeclaredError
from core.report.gradient_case import gradient_case
from core.report.measure import TooSlowError, latency
from core.report.model import Asked, Criterion, Declared, Input, Latency, Name, Negative, Seed, Setting, UsedTolerance
from core.report.scan_case import scan_case
from core.report.script_case import script_case
from core.report.sequence_case import sequence_case
from core.report.wanted import GRADIENTS, LSTM, SCAN, SCRIPT, SEQUENCE, Wanted

FAILED_TIMING = "{type} was raised when it was timed."


class Part(enum.StrEnum):
    """The parts, in the order in which they are made."""

    GIVEN = "given"
    CHECKS = "checks"
    GRADIENTS = "gradients"
    FORMULA = "formula"
    MODE = "mode"
    EAGER = "eager"
    JIT = "jit"
    VMAP = "vmap"
    LATENCY = "latency"


_APART: Final[Mapping[Part, tuple[Name, ...]]] = {
    Part.GIVEN: (Name.NEGATIVE,),
    Part.GRADIENTS: (Name.LOSS, Name.GRADIENTS),
    Part.FORMULA: (Name.FORMULA,),
    Part.MODE: (Name.MODE,),
    Part.EAGER: (),
    Part.JIT: (Name.JIT,),
    Part.VMAP: (Name.VMAP,),
    Part.LATENCY: (),
}
#: The criteria of each part.
CRITERIA: Final[Mapping[Part, tuple[Name, ...]]] = {
    Part.CHECKS: tuple(name for name in Name if not any(name in names for names in _APART.values())),
    **_APART,
}


@dataclass(frozen=True, slots=True)
class Given:
    """What was run. See `core.report.model.ContractReport`."""

    page: str
    title: str
    about: str
    settings: tuple[Setting, ...]
    inputs: tuple[Input, ...]
    contract: Declared
    seeds: tuple[Seed, ...]
    asked: tuple[Asked, ...]
    asked_cut: bool
    tolerances: tuple[UsedTolerance, ...]
    negatives: tuple[Negative, ...]


@dataclass(frozen=True, slots=True)
class Piece:
    """What one part gives.

    Attributes:
        problem: why there is nothing to report of, in a sentence; then all else is empty. `field`: of what was declared,
            where that is the reason.
        given: of the part GIVEN.
        criteria: of the part.
        latency, latency_missing: of the part LATENCY.
        more: it is not done: the same part is to be asked for again.
    """

    problem: str = ""
    field: str = ""
    given: Given | None = None
    criteria: tuple[Criterion, ...] = ()
    latency: Latency | None = None
    latency_missing: str = ""
    more: bool = False


_CASES: Final[Mapping[str, Callable[[Wanted], Case]]] = {
    SCAN: scan_case,
    LSTM: cell_case,
    SEQUENCE: sequence_case,
    GRADIENTS: gradient_case,
}


def case_of(wanted: Wanted, terms: Terms) -> Case:
    """The case of what is wanted.

    Args:
        wanted: the page's values, or the script.
        terms: how scripts are run here.

    Raises:
        UnreportableError: there is nothing to make a report of.
        DeclaredError: what was declared cannot be.
        KeyError: there is no such page.
    """
    return script_case(wanted, terms) if wanted.page == SCRIPT else _CASES[wanted.page](wanted)


class Bench:
    """Makes parts; it keeps the case that it was asked about last.

    Args:
        terms: how scripts are run here.
        budget_ms: of the timed runs.
    """

    def __init__(self, terms: Terms, budget_ms: float) -> None:
        self._terms, self._budget = terms, budget_ms
        self._wanted: Wanted | None = None
        self._case: Case | None = None
        self._left: dict[Part, list[Step]] = {}

    def piece(self, wanted: Wanted, part: Part, tell: Callable[[], None] | None = None) -> Piece:
        """One part, or one step towards it (`Piece.more`).

        Args:
            wanted: of what.
            part: which.
            tell: called before each timed run; what it raises ends the part.
        """
        try:
            if self._case is None or self._wanted != wanted:
                self.close()
                self._case, self._wanted, self._left = case_of(wanted, self._terms), wanted, {}
                return Piece(
                    more=True
                )  # a worker that was replaced begins here too: what is asked comes in a turn of its own
            case = self._case
            left = self._left.setdefault(part, list(_steps(case, part)))
            if left:
                with suppress(Exception):  # what it raises is raised again where it counts
                    left.pop(0)()
                return Piece(more=bool(left) or part is not Part.EAGER)
            return self._whole(case, part, tell)
        except DeclaredError as error:
            return Piece(error.text, error.field)
        except UnreportableError as error:
            return Piece(str(error) or type(error).__name__)

    def whole(self, wanted: Wanted, part: Part) -> Piece:
        """One part to its end, however long it takes."""
        piece = self.piece(wanted, part)
        while piece.more:
            piece = self.piece(wanted, part)
        return piece

    def _whole(self, case: Case, part: Part, tell: Callable[[], None] | None) -> Piece:
        match part:
            case Part.GIVEN:
                return Piece(given=_given(case), criteria=(negatives_criterion(case.negatives),))
            case Part.EAGER:
                return Piece()
            case Part.LATENCY:
                return self._timed(case, tell)
            case _:
                return Piece(criteria=tuple(case.work[name]() for name in CRITERIA[part]))

    def _timed(self, case: Case, tell: Callable[[], None] | None) -> Piece:
        if case.timed is None:
            return Piece(latency_missing=case.not_timed)
        try:
            return Piece(latency=latency(case.timed(), self._budget, tell))
        except TooSlowError as error:
            return Piece(latency_missing=str(error))
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            NotImplementedError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            # What a program raises: it has been told already, by the criteria.
            return Piece(latency_missing=fill(FAILED_TIMING, type=type(error).__name__))

    def close(self) -> None:
        """Forget the case, and take back what a script left behind."""
        if self._case is not None:
            self._case.close()
        self._case = self._wanted = None


def _steps(case: Case, part: Part) -> Iterator[Step]:
    """What a part does before it is worked out."""
    if part is Part.EAGER:
        yield from case.begin
    for name in CRITERIA[part]:
        yield from case.ahead.get(name, ())


def _given(case: Case) -> Given:
    return Given(
        case.page,
        case.title,
        case.about,
        case.settings,
        case.inputs,
        case.contract,
        case.seeds,
        case.asked,
        case.asked_cut,
        case.tolerances,
        case.negatives,
    )
