"""How a check or a job ended: an enumeration with human text, not an exception."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from core.base.places import Place
from core.base.violation import Severity, Violation


class Outcome(enum.StrEnum):
    """The ways a check can end."""

    OK = "ok"
    VIOLATIONS = "violations"
    LIMIT = "limit"
    ERROR = "error"

    @property
    def text(self) -> str:
        """A short sentence for the verdict strip."""
        return _TEXT[self]


_TEXT = {
    Outcome.OK: "Contract kept",
    Outcome.VIOLATIONS: "Contract broken",
    Outcome.LIMIT: "Over a limit",
    Outcome.ERROR: "JAX raised an error no rule explains",
}


@dataclass(frozen=True, slots=True)
class RawError:
    """An exception that no rule knows: shown as it is, at its place, with the operand types; never our stack trace."""

    type: str
    message: str
    place: Place | None = None
    operands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What a check found. `violations` are sorted: worst first, then in the order of the place."""

    outcome: Outcome
    violations: tuple[Violation, ...] = ()
    error: RawError | None = None

    @property
    def broken(self) -> tuple[Violation, ...]:
        """Everything that is not a note."""
        return tuple(v for v in self.violations if v.severity.breaks)

    @property
    def notes(self) -> tuple[Violation, ...]:
        """The notes alone."""
        return tuple(v for v in self.violations if v.severity is Severity.NOTE)

    @property
    def codes(self) -> tuple[str, ...]:
        """All codes, in order."""
        return tuple(v.code for v in self.violations)
