"""A violation: one broken rule, where, why, and fixes that have been tried. Never a bare string."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.base.avals import LeafType
from core.base.places import Because, Place, Span


class Severity(enum.StrEnum):
    """How bad: `error` JAX raises or the result is wrong; `warning` silent and surely not meant; `note`; `limit` ours."""

    ERROR = "error"
    WARNING = "warning"
    LIMIT = "limit"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 is the worst; cards and counts are ordered by it."""
        return list(Severity).index(self)

    @property
    def breaks(self) -> bool:
        """Whether the contract counts as broken: everything but a note."""
        return self is not Severity.NOTE


@dataclass(frozen=True, slots=True)
class TextEdit:
    """A fix in code: this span is replaced by this text."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class FieldEdit:
    """A fix on a page: these inputs (by field name of the page's state) get these values."""

    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit that was applied, after which the whole check ran again: it is only ever made when that went well.

    Attributes:
        title: what the button says.
        edit: what it changes.
        remaining: codes of errors and warnings that are still there after it ("S104 gone, L301 remains"), and the type
            of the exception that no rule knows, where there is one.
    """

    title: str
    edit: TextEdit | FieldEdit | None
    remaining: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proof:
    """A number on the learner's own data that moves and should not.

    Attributes:
        claim: what was done and what was watched, one sentence.
        before: the number as the program stands (unit: that of the watched value).
        after: the same number with the first verified fix; None when no fix could be verified.
        expected: what it must be when the contract is kept.
    """

    claim: str
    before: float
    after: float | None = None
    expected: float = 0.0


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule (DESIGN.md section 3).

    Attributes:
        code: stable catalogue code, never reused.
        name: the rule's name, after the mistake.
        severity: see `Severity`.
        silent: JAX raises nothing here.
        message: one sentence with the learner's own names and paths.
        place: the smallest expression or the input it came from.
        because: the second place, where the expectation was set.
        expected, got: only the leaves that differ.
        why: the contract sentence.
        fixes: verified only.
        jax_said: JAX's own text, folded away; None when it said nothing.
        proof: for silent faults.
        path: pytree path of the leaf at fault, "" when it is not about one leaf.
        title: the mistake in a few words, where it is not the rule's own title; "" when it is.
    """

    code: str
    name: str
    severity: Severity
    silent: bool
    message: str
    place: Place | None
    why: str
    because: Because | None = None
    expected: tuple[LeafType, ...] = ()
    got: tuple[LeafType, ...] = ()
    fixes: tuple[Fix, ...] = field(default=())
    jax_said: str | None = None
    proof: Proof | None = None
    path: str = ""
    title: str = ""
