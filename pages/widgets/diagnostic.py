"""What the code editor is given and what it tells: plain, frozen, the same for the editor and for its stand-in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from core.base.outcome import Report
from core.base.places import Span
from core.base.violation import Severity, Violation


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A fault in the text, drawn at its place: squiggle, mark in the gutter, message under the line.

    Attributes:
        span: where, in the text that was checked: lines from 1, columns from 0 in characters. Without a width it marks
            the character it stands at; lines and columns beyond the text are taken back into it.
        severity: its icon and its colour.
        message: one sentence; what stands between backticks is drawn as code.
        code: catalogue code; "" for an error that no rule explains.
        number: of the fault, the same as on its card, from 1; 0 for none.
        differs: the part of the line's shapes that differs from the contract (``float32[]``), drawn in the colour of
            the fault where the line's shapes contain it; "" for none.
        because: the second place, where the expectation was set; marked quietly. None when there is none in the text.
        because_text: what is said there.
    """

    span: Span
    severity: Severity
    message: str
    code: str = ""
    number: int = 0
    differs: str = ""
    because: Span | None = None
    because_text: str = ""


#: Faults of what a line returns: only there are the line's shapes those of the leaf at fault.
_OF_RETURNED = frozenset({"S102", "S103", "S104"})


@dataclass(frozen=True, slots=True)
class EditorEvent:
    """What is in the editor.

    Attributes:
        text: its text, lines ended by a line feed. Typing arrives a moment after it stops.
        revision: of the text; always the one that was given, since an event of an older document is not passed on.
        run: rises with every Ctrl+Enter; a number above the last one seen asks for a run. 0 when there was none.
        cursor: line from 1, column from 0 in characters, as of the last event.
    """

    text: str
    revision: int
    run: int = 0
    cursor: tuple[int, int] = (1, 0)


def diagnostics_of(report: Report | None) -> tuple[Diagnostic, ...]:
    """What a report says about places in the text, numbered as its cards are; faults without such a place are left out."""
    return tuple(_diagnostics(report)) if report is not None else ()


def _diagnostics(report: Report) -> Iterator[Diagnostic]:
    for number, violation in enumerate(report.violations, 1):
        if isinstance(violation.place, Span):
            yield _of_violation(number, violation, violation.place)
    error = report.error
    if error is not None and isinstance(error.place, Span):
        said = error.message.strip().split("\n", 1)[0]
        yield Diagnostic(error.place, Severity.ERROR, f"{error.type}: {said}" if said else error.type)


def _of_violation(number: int, violation: Violation, span: Span) -> Diagnostic:
    because = violation.because
    second = because.place if because is not None and isinstance(because.place, Span) else None
    return Diagnostic(
        span,
        violation.severity,
        violation.message,
        code=violation.code,
        number=number,
        differs=str(violation.got[0]) if violation.got and violation.code in _OF_RETURNED else "",
        because=second if second != span else None,
        because_text=because.text if because is not None and second is not None else "",
    )


def one_line_ends(text: str) -> str:
    """The text with every line ended by a line feed alone, as the editor keeps it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")
