"""An answer as the page shows it: places in the fields that were typed, fixes as edits of those fields."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from core.base.outcome import Outcome, RawError, Report
from core.base.places import Because, Place, Span
from core.base.text import fill
from core.base.violation import FieldEdit, Fix, Violation
from core.contract.rules import x602
from core.contract.script_record import MEMORY, TIME
from core.doctor.answer import Answer, ScanPanel, Wish
from core.doctor.prep import Kind
from core.sandbox.pool_ticket import StopReason
from pages.widgets.cards import rule_of
from pages.widgets.doctor_check import Look
from pages.widgets.doctor_state import DoctorState, Script

ALL = "All fixes together"
LINE_TYPE = "{name} {type}"
BETWEEN = " · "
#: Lines of a change that a card shows.
MOST_LINES = 14
MORE_LINES = "… {count} more lines"


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """What cards, editor and scans draw.

    Attributes:
        report: with places of what was typed, and fixes that edit it; None when nothing is known.
        fix_all: all fixes as one, where that runs clean.
        shapes: (line, what is said beside it) of the code in the editor.
        scans: with lines of the code in the editor.
        stale: of the text before the last edit: nothing of it can be applied.
    """

    report: Report | None = None
    fix_all: Fix | None = None
    shapes: tuple[tuple[int, str], ...] = ()
    scans: tuple[ScanPanel, ...] = ()
    stale: bool = False


def shown(look: Look, script: Script, state: DoctorState) -> Shown:
    """What to draw of what is known."""
    answer = look.answer or look.before
    report = None if answer is None else answer.report
    if look.halted is not None and look.answer is None:
        answer = report = None
    if answer is None or report is None:
        return Shown(_stopped(None, look, script))
    stale = look.answer is None
    violations = tuple(
        _violation(violation, () if stale else answer.sources[n], script, state)
        for n, violation in enumerate(report.violations)
    )
    report = replace(report, violations=violations, error=_error(report.error, script, state))
    fix_all = None
    if answer.together is not None and not stale:
        fix_all = Fix(fill(ALL), state.edit_of(answer.together))
    return Shown(
        _stopped(report, look, script),
        fix_all,
        tuple(_shapes(answer, script)),
        tuple(_scans(answer, script)),
        stale=stale,
    )


def _violation(violation: Violation, sources: tuple[str, ...], script: Script, state: DoctorState) -> Violation:
    because = violation.because
    if because is not None:
        because = Because(_place(because.place, script, state), because.text)
    fixes = tuple(
        replace(fix, edit=state.edit_of(source)) for fix, source in zip(violation.fixes, sources, strict=False)
    )
    return replace(violation, place=_place(violation.place, script, state), because=because, fixes=fixes)


def _error(error: RawError | None, script: Script, state: DoctorState) -> RawError | None:
    return None if error is None else replace(error, place=_place(error.place, script, state))


def _place(place: Place | None, script: Script, state: DoctorState) -> Place | None:
    return place if script.composed is None else script.composed.place(place, state.labels)


def _line(line: int | None, script: Script) -> int | None:
    """A line of the script in the editor; None where it is not in it."""
    if script.composed is None or line is None:
        return line
    part = script.composed.part(line)
    return line - part.line + 1 if part is not None and part.name == "step" else None


def _shapes(answer: Answer, script: Script) -> Iterator[tuple[int, str]]:
    if answer.kind is Kind.NOTEBOOK:
        return  # its lines are not those that were pasted
    lines: dict[int, list[str]] = {}
    for shape in answer.shapes:
        line = _line(shape.line, script)
        if line is not None:
            said = fill(LINE_TYPE, name=shape.name, type=shape.type) if shape.name else shape.type
            lines.setdefault(line, []).append(said)
    for line, said_there in lines.items():
        yield line, BETWEEN.join(said_there)


def _scans(answer: Answer, script: Script) -> Iterator[ScanPanel]:
    for panel in answer.scans:
        yield replace(panel, line=_line(panel.line, script))


def _stopped(report: Report | None, look: Look, script: Script) -> Report | None:
    """With the limit at which the run was stopped from outside, where its own answer could not say so."""
    halt = look.halted
    reason = _REASONS.get(halt.reason) if halt is not None else None
    rule = rule_of(x602.RULE.code)
    if halt is None or reason is None or rule is None:
        return report
    line = _line(halt.line, script)
    place = Span(line, 0, line, _width(look.text, halt.line)) if line is not None else None
    message = x602.message(reason, shapes=halt.wish is Wish.SHAPES)
    title = x602.TITLES[reason]
    limit = Violation(rule.code, rule.name, rule.severity, False, message, place, rule.why, title=title)
    return Report(Outcome.LIMIT, (limit, *(report.violations if report else ())), report.error if report else None)


_REASONS: dict[StopReason | None, str] = {StopReason.TIME: TIME, StopReason.MEMORY: MEMORY}


def _width(text: str, line: int | None) -> int:
    """Characters of a line."""
    lines = text.split("\n")
    return len(lines[line - 1]) if line is not None and 0 < line <= len(lines) else 0


# --- what a fix changes ---------------------------------------------------------------------------------------------


def changed_lines(edit: FieldEdit, before: Mapping[str, str], labels: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The lines that an edit takes out and puts in, marked ``−`` and ``+``; a long change is cut.

    Args:
        edit: new texts by field.
        before: the texts as they stand.
        labels: fields of one expression, by name, with what stands in front of it.
    """
    lines: list[tuple[str, str]] = []
    for name, text in edit.values.items():
        old, new = before.get(name, ""), str(text)
        if old == new or name not in before:
            continue
        if name in labels:
            lines += [
                ("−", fill(_FIELD, label=labels[name], text=old)),
                ("+", fill(_FIELD, label=labels[name], text=new)),
            ]
        else:
            lines += _difference(old, new)
    if len(lines) > MOST_LINES:
        rest = len(lines) - MOST_LINES
        return (*lines[:MOST_LINES], (" ", fill(MORE_LINES, count=rest)))
    return tuple(lines)


_FIELD = "{label} = {text}"


def _difference(old: str, new: str) -> Iterator[tuple[str, str]]:
    a, b = old.rstrip("\n").split("\n"), new.rstrip("\n").split("\n")
    for tag, a0, a1, b0, b1 in difflib.SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        if tag != "equal":
            yield from (("−", line) for line in a[a0:a1])
            yield from (("+", line) for line in b[b0:b1])
