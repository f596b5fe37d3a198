"""A checkup for a terminal: the code as written with carets under the exact columns, the second place, the fix's diff."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from core.base.avals import LeafType
from core.base.outcome import Outcome, RawError
from core.base.places import Place, Span
from core.base.text import fill
from core.base.violation import Severity, Violation
from core.doctor.check import NO_CODE, Checkup
from core.doctor.messages import NOTHING, code_of_message
from core.doctor.prep import Kind
from core.doctor.report import versions

HEAD = "{name}: {verdict}"
VERDICT_CLEAN = "contract kept"
VERDICT_NOTES = "contract kept, {notes}"
VERDICT_BROKEN = "contract broken, {counts}"
VERDICT_LIMIT = "over a limit, {counts}"
VERDICT_ERROR = "{error}, which no rule explains"
COUNT = "{count} {what}"
COUNTS = "{count} {what}s"
TITLE = "{severity} {code}  {name}"
SILENT = "JAX is silent"
WHY = "why   {why}"
SAID = "JAX   {text}"
EXPECTED = "expected  {path}  {type}"
GOT = "got       {path}  {type}"
PROOF = "proof {claim}"
PROOF_NUMBERS = "      {before:.7g} as it stands, {expected:.7g} when the contract is kept"
PROOF_FIXED = "      {before:.7g} as it stands, {after:.7g} with the fix"
FIX = "fix   {title}"
FIX_LEAVES = "fix   {title} ({left} remains)"
ALL = "all of them together run clean:"
OPERAND = "      {operand}"
AT = "{name}:{line}:{col}"
BECAUSE = "second place"
SCANS = "line {line}: scan of {length} steps, {carry}"
PRINTED = "printed"
FOOT = "jax {jax}, flax {flax}, python {python}"
NOT_READ = "not a script: {type}: {message}"
MORE = "… {count} more lines"

#: Lines of context above the first place.
CONTEXT = 1
#: Lines that a script printed and that are shown.
PRINTED_LINES = 12
CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.LIMIT: "cyan", Severity.NOTE: "blue"}


@dataclass(frozen=True, slots=True)
class Paint:
    """Colours, where they are wanted; without them the text says the same."""

    on: bool

    def __call__(self, text: str, *styles: str) -> str:
        """The text in these styles."""
        if not self.on or not text:
            return text
        return f"\x1b[{';'.join(CODES[s] for s in styles)}m{text}\x1b[0m"


def as_text(checkup: Checkup, name: str, *, colour: bool = False) -> str:
    """The whole report; `name` is what the script is called (a file)."""
    return "\n".join(_lines(checkup, name, Paint(colour))) + "\n"


def _lines(checkup: Checkup, name: str, paint: Paint) -> Iterator[str]:
    report = checkup.report
    lines = checkup.given.lines
    yield paint(fill(HEAD, name=name, verdict=verdict(checkup)), "bold")
    for note in checkup.given.notes:
        yield paint(note, "dim")
    if checkup.given.kind in NO_CODE:
        yield from _guess(checkup, paint)
    elif report.error is not None:
        yield ""
        yield from _raw(report.error, lines, name, paint)
    for violation, sources in zip(report.violations, checkup.sources, strict=True):
        yield ""
        yield from _violation(violation, sources, checkup.given.script, lines, name, paint)
    if checkup.together is not None:
        yield ""
        yield paint(ALL, "green")
        yield from _diff(checkup.given.script, checkup.together.text, paint)
    yield from _run(checkup, paint)
    yield ""
    yield paint(fill(FOOT, **versions()), "dim")


def verdict(checkup: Checkup) -> str:
    """The verdict in one phrase."""
    report = checkup.report
    if checkup.given.kind in NO_CODE:
        return fill(NO_CODE[checkup.given.kind])
    if checkup.unread is not None:
        return fill(NOT_READ, type=checkup.unread.type, message=checkup.unread.message)
    counts = ", ".join(
        fill(COUNT if n == 1 else COUNTS, count=n, what=str(severity))
        for severity in Severity
        if (n := sum(1 for v in report.violations if v.severity is severity))
    )
    if report.outcome is Outcome.OK:
        return fill(VERDICT_NOTES, notes=counts) if counts else fill(VERDICT_CLEAN)
    if report.outcome is Outcome.ERROR and report.error is not None:
        return fill(VERDICT_ERROR, error=report.error.type)
    return fill(VERDICT_LIMIT if report.outcome is Outcome.LIMIT else VERDICT_BROKEN, counts=counts)


# --- one violation --------------------------------------------------------------------------------------------------


def _violation(
    violation: Violation, sources: list[str], script: str, lines: list[str], name: str, paint: Paint
) -> Iterator[str]:
    colour = COLOURS[violation.severity]
    head = fill(TITLE, severity=str(violation.severity), code=violation.code, name=violation.name)
    badge = f"  [{SILENT}]" if violation.silent and violation.severity is not Severity.LIMIT else ""
    yield paint(head, "bold", colour) + paint(badge, "yellow")
    yield violation.message
    marks = [Mark(violation.place, "", colour, "^")]
    if violation.because is not None:
        marks.append(Mark(violation.because.place, violation.because.text, "cyan", "-"))
    yield from frame(lines, marks, name, paint)
    yield from _types(violation, paint)
    yield fill(WHY, why=violation.why)
    if violation.jax_said:
        yield paint(fill(SAID, text=violation.jax_said.split("\n")[0]), "dim")
    if violation.proof is not None:
        proof = violation.proof
        yield fill(PROOF, claim=proof.claim)
        shown = PROOF_NUMBERS if proof.after is None else PROOF_FIXED
        yield fill(shown, before=proof.before, after=proof.after, expected=proof.expected)
    for fix, source in zip(violation.fixes, sources, strict=True):
        text = FIX_LEAVES if fix.remaining else FIX
        yield paint(fill(text, title=fix.title, left=", ".join(fix.remaining)), "green")
        yield from _diff(script, source, paint)


def _types(violation: Violation, paint: Paint) -> Iterator[str]:
    for template, leaves, colour in ((EXPECTED, violation.expected, "green"), (GOT, violation.got, "red")):
        for leaf in leaves:
            yield paint(fill(template, path=leaf.path, type=str(leaf)), colour)


def _raw(error: RawError, lines: list[str], name: str, paint: Paint) -> Iterator[str]:
    yield paint(error.type, "bold", "red")
    yield error.message
    yield from frame(lines, [Mark(error.place, "", "red", "^")], name, paint)
    for operand in error.operands:
        yield fill(OPERAND, operand=operand)


def _guess(checkup: Checkup, paint: Paint) -> Iterator[str]:
    """What a pasted error message, without code, belongs to."""
    if checkup.given.kind is not Kind.EMPTY:
        match = code_of_message(checkup.given.text)
        yield paint(fill(NOTHING) if match is None else match.text, "bold")


def _diff(before: str, after: str, paint: Paint) -> Iterator[str]:
    lines = difflib.unified_diff(before.split("\n"), after.split("\n"), lineterm="", n=0)
    for line in list(lines)[2:]:
        if line.startswith("-"):
            yield "      " + paint(line, "red")
        elif line.startswith("+"):
            yield "      " + paint(line, "green")


def _run(checkup: Checkup, paint: Paint) -> Iterator[str]:
    run = checkup.run
    if run is None:
        return
    if run.record.scans:
        yield ""
    for site in run.record.scans:
        place = checkup.given.place(site.facts.places.find("scan"))
        line = place.line if isinstance(place, Span) else "?"
        carry = ", ".join(f"{leaf.path} {leaf}" for leaf in site.facts.carry_in)
        yield paint(fill(SCANS, line=line, length=site.facts.length, carry=carry), "dim")
    printed = run.record.stdout.rstrip("\n").split("\n") if run.record.stdout.strip() else []
    if printed:
        yield paint(PRINTED, "dim")
        yield from (f"      {line}" for line in printed[:PRINTED_LINES])
        if len(printed) > PRINTED_LINES:
            yield paint("      " + fill(MORE, count=len(printed) - PRINTED_LINES), "dim")


# --- the code frame -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mark:
    """A place to be underlined: with what, and what is said behind it."""

    place: Place | None
    text: str
    colour: str
    sign: str


def frame(lines: list[str], marks: list[Mark], name: str, paint: Paint) -> Iterator[str]:
    """The lines of code that the marks are on, numbered, with the marks under their exact columns."""
    known = [m for m in marks if isinstance(m.place, Span) and 0 < m.place.line <= len(lines)]
    if not known:
        return
    first = known[0].place
    assert isinstance(first, Span)  # noqa: S101  # filtered above; for the type checker
    yield paint("  " + fill(AT, name=name, line=first.line, col=first.col + 1), "dim")
    shown = sorted({m.place.line for m in known if isinstance(m.place, Span)})
    shown = sorted(
        {n for line in shown for n in range(max(1, line - CONTEXT), line + 1) if lines[n - 1].strip()} | set(shown)
    )
    width = len(str(shown[-1]))
    before = shown[0]
    for number in shown:
        if number > before + 1:
            yield paint(" " * (width + 1) + "⋮", "dim")
        before = number
        yield paint(f" {number:>{width}} │ ", "dim") + _expand(lines[number - 1])
        for mark in known:
            if isinstance(mark.place, Span) and mark.place.line == number:
                yield paint(" " * (width + 2) + "│ ", "dim") + _underline(lines[number - 1], mark, paint)


def _underline(line: str, mark: Mark, paint: Paint) -> str:
    assert isinstance(mark.place, Span)  # noqa: S101  # see `frame`
    end = mark.place.end_col if mark.place.end_line == mark.place.line else len(line.rstrip())
    start = _width(line[: mark.place.col])
    length = max(1, _width(line[: max(end, mark.place.col)]) - start)
    text = f" {mark.text}" if mark.text else ""
    return " " * start + paint(mark.sign * length + text, mark.colour)


def _expand(line: str) -> str:
    return line.expandtabs(4)


def _width(text: str) -> int:
    """Columns that a text takes up in a terminal: wide characters take two, combining ones none."""
    count = 0
    for char in text:
        if char == "\t":
            count += 4 - count % 4
        elif not unicodedata.combining(char):
            count += 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return count


def types_text(leaves: tuple[LeafType, ...]) -> str:
    """Leaves in one line."""
    return ", ".join(f"{leaf.path} {leaf}" for leaf in leaves)
