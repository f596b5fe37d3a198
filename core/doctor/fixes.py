"""Which fixes of a script hold: each is carried out in the text, the whole edited script runs again, and is compared.

A fix is kept when its fault is gone, nothing new is broken and execution gets at least as far as before. One that gets
there by taking something away (a statement, a scan, a cell's step) is no fix, however clean the rest is.
"""

from __future__ import annotations

import ast
import bisect
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import jax

from core.base.limits import LIMITS
from core.base.places import Place, Span
from core.base.violation import Fix, TextEdit
from core.contract.engine import Found
from core.contract.facts import Facts
from core.contract.rule import Measure, Repair, Stage
from core.contract.source import Source
from core.doctor.edits import Desk, Edits, candidates
from core.doctor.more import repairs_of_scripts
from core.doctor.pen import Pen, apply_edits, merged, offsets, position
from core.doctor.script import Measures, ScriptRun

#: Fixes shown for one fault, and edits tried for it.
SHOWN, TRIED = LIMITS["fixes_shown"].value, LIMITS["fixes_tried"].value
#: What ends a script.
EXITS = frozenset({"SystemExit", "exit", "quit", "_exit"})
#: Kinds of repairs that are no advice where a better one holds: a pair made anew at every step forgets the carry.
INSTEAD: dict[str, frozenset[str]] = {"carry_through": frozenset({"carry_pair", "carry_init"})}


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One fault of a script.

    Attributes:
        found: the finding with its rule.
        facts: what it was found in.
        scan: index of the scan it is about; None for cells outside scans and for the script itself.
        number: what its proof measures, as the script stands; None when there is nothing to measure.
    """

    found: Found
    facts: Facts
    scan: int | None = None
    number: float | None = None

    @property
    def breaks(self) -> bool:
        """Whether the contract counts as broken."""
        return self.found.severity.breaks


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A script after a run: what is wrong with it and how far it got.

    Attributes:
        run: the run itself.
        cases: its faults, each once.
        unexplained: whether it ended in an exception that no rule explains.
    """

    run: ScriptRun
    cases: tuple[Case, ...]
    unexplained: bool

    @property
    def left(self) -> int:
        """Statements of the module that were not reached, the one that failed included; 0 when it ran to its end."""
        failure = self.run.record.failure
        body = self.run.record.source.tree.body
        if failure is None:
            return 0
        line = failure.frames[0].span.line
        return sum(1 for s in body if (s.end_lineno or s.lineno) >= line)

    @property
    def clean(self) -> bool:
        """Whether it ran to its end and breaks no rule."""
        return self.run.record.failure is None and not any(case.breaks for case in self.cases)


@dataclass(frozen=True, slots=True, eq=False)
class Verified:
    """A fix that holds: the button, the whole fixed script, its run, and the proof's number in it."""

    fix: Fix
    text: str
    outcome: Outcome
    number: float | None = None


type Again = Callable[[Source, Measures], Outcome]


@dataclass(slots=True, eq=False)
class Fixer:
    """Tries fixes of one script. `again` runs an edited one from scratch."""

    before: Outcome
    again: Again
    #: Whether the proof's number is measured on the first fix.
    proofs: bool = True
    #: By edited text, how it ended: two repairs may come to the same text.
    _tried: dict[str, Outcome | None] = field(default_factory=dict)
    #: By edited text, for which fault something was measured in its run.
    _measured: dict[str, Case] = field(default_factory=dict)

    def fixes(self, case: Case) -> Iterator[Verified]:
        """The fixes of a fault that hold, at most one for each repair."""
        shown, texts, beaten = 0, set[str](), frozenset[str]()
        for repair in (*case.found.finding.repairs, *repairs_of_scripts(case.found, self.before.run.record)):
            if shown >= SHOWN:
                return
            measure = case.found.finding.measure if self.proofs and case.number is not None and not shown else None
            good = None if repair.kind in beaten else self._first(case, repair, measure)
            if good is not None and good.text not in texts:
                beaten |= INSTEAD.get(repair.kind, frozenset())
                texts.add(good.text)
                shown += 1
                yield good

    def _first(self, case: Case, repair: Repair, measure: Measure | None) -> Verified | None:
        """The first edit for this repair that holds."""
        source = self.before.run.record.source
        record = self.before.run.record
        site = None if case.scan is None else record.scans[case.scan]
        desk = Desk(Pen(source), repair, case.found.finding, site, record)
        for tried, edits in enumerate(_careful(candidates(desk), record.x64)):
            if tried >= TRIED:
                return None
            good = self._try(case, repair.title, edits, measure)
            if good is not None:
                return good
        return None

    def _try(self, case: Case, title: str, edits: Edits, measure: Measure | None) -> Verified | None:
        source = self.before.run.record.source
        text, edit = apply_edits(source.text, edits), merged(source.text, edits)
        if text is None or edit is None or text == source.text or removes(source.text, text):
            return None
        if swallows(source.text, text) or skips(source.text, text):
            return None
        after = self._run(text, case, measure)
        if after is None or not holds(case, self.before, after, edits):
            return None
        left = sorted({c.found.rule.code for c in after.cases if c.breaks})
        failure = after.run.record.failure
        left += [type(failure.error).__name__] if failure is not None and after.unexplained else []
        return Verified(Fix(title, edit, tuple(left)), text, after, _number(case, after))

    def _run(self, text: str, case: Case, measure: Measure | None) -> Outcome | None:
        known = text in self._tried
        if known and (measure is None or self._tried[text] is None or self._measured.get(text) is case):
            return self._tried[text]
        key = case.facts.on if case.scan is None else case.scan
        try:
            self._tried[text] = self.again(Source(text), {} if measure is None else {key: measure})
        except (SyntaxError, ValueError):  # what parses need not compile: a keyword given twice
            self._tried[text] = None
        self._measured[text] = case
        return self._tried[text]


def _careful(edits: Iterator[Edits], x64: bool) -> Iterator[Edits]:
    """The candidates, made as wide as the script's numbers are; one that cannot be written for this script ends them."""
    while True:
        try:
            with jax.enable_x64(x64):
                made = next(edits)
        except (StopIteration, KeyError, TypeError, ValueError, IndexError, AttributeError):
            return
        yield made


def _number(case: Case, after: Outcome) -> float | None:
    """The proof's number after the fix."""
    if case.scan is None:
        return after.run.measured.get(case.facts.on)
    looks = after.run.looks[case.scan : case.scan + 1]
    return looks[0].measured if looks else None


# --- does it hold ---------------------------------------------------------------------------------------------------


def holds(case: Case, before: Outcome, after: Outcome, edits: Edits) -> bool:
    """Whether a fix did what it says: that fault gone, nothing new broken, execution at least as far as before."""
    one, two = before.run.record, after.run.record
    if after.left > before.left or len(two.scans) < len(one.scans) or _emptied(before, after):
        return False
    if any(code == case.found.rule.code for code, _ in after.run.problems):  # it was not asked: nothing is known
        return False
    spots = Spots(one.source.text, edits)
    if two.failure is not None and not _further(before, after, spots, again=not after.unexplained):
        return False
    was = {_key(c, spots.before) for c in before.cases}
    now = {_key(c, spots.after(two.source.text)) for c in after.cases}
    if _key(case, spots.before) in now:
        return False
    broken = [c for c in after.cases if c.breaks and _key(c, spots.after(two.source.text)) not in was]
    return all(_beyond(c, before) or _hidden(c, case) for c in broken)


def _further(before: Outcome, after: Outcome, spots: Spots, *, again: bool) -> bool:
    """Whether a run that raises gets further than one that raised before it: by the places of its calls, outermost first.

    What raises inside a call comes before what the same call raises when that is done, and after what a scan refuses
    before it calls its step. `again`: the same place will do, for a fault that is known there (its code says whether it
    is the old one).
    """
    was, now = before.run.record.failure, after.run.record.failure
    if was is None or now is None:
        return was is not None
    spot = spots.after(after.run.record.source.text)
    there, here = (
        (*(spot(f.span) for f in now.frames), _end(after)),
        (*(spots.before(f.span) for f in was.frames), _end(before)),
    )
    return there > here or (again and there == here)


def _end(outcome: Outcome) -> float:
    """Where in its last call a run raised: before all that is inside, or after it."""
    failure, looks = outcome.run.record.failure, outcome.run.looks
    if failure is None or failure.scan is None or failure.in_step or failure.scan >= len(looks):
        return math.inf
    return -math.inf if looks[failure.scan].diagnosis.reached <= Stage.INPUT else math.inf


def _key(case: Case, spot: Callable[[Place | None], int]) -> tuple[str, str, int]:
    """What makes it the same fault in the edited script: code, path, and where it stands but for the edit."""
    return case.found.rule.code, case.found.finding.path, spot(case.found.finding.place)


def _beyond(case: Case, before: Outcome) -> bool:
    """Whether the run before the fix never got as far as this fault: it is not new then, only not seen."""
    if case.scan is None:
        return before.left > 0
    if case.scan >= len(before.run.looks):
        return before.left > 0
    return case.found.rule.stage > before.run.looks[case.scan].diagnosis.reached


#: What `lax.scan` asks of what the step returns, in its order. Where the first fails it does not ask for the rest.
ASKED = ("S101", "S102", "S103", "S104")
HIDING = ASKED[:2]


def _hidden(case: Case, mended: Case) -> bool:
    """Whether a fault could not be seen for the one that was mended."""
    code, before = case.found.rule.code, mended.found.rule.code
    return case.scan == mended.scan and before in HIDING and code in ASKED[ASKED.index(before) + 1 :]


def _emptied(before: Outcome, after: Outcome) -> bool:
    """Whether a scan runs no step any more, carries nothing any more, or cells are built or used less often."""
    for was, now in zip(before.run.record.scans, after.run.record.scans, strict=False):
        ran = was.facts.length != 0 and 0 not in was.facts.leading
        if (ran and now.facts.length == 0) or (was.facts.init_types and not now.facts.init_types):
            return True
    one, two = before.run.record.events, after.run.record.events
    return any(
        len(b) < len(a) for a, b in ((one.builds, two.builds), (one.carries, two.carries), (one.steps, two.steps))
    )


def removes(before: str, after: str) -> bool:
    """Whether an edit takes statements or decorators away (or comments them out), or does not parse.

    Fewer statements that compute more are no removal: an `if` and its assignment become one `jnp.where`.
    """
    try:
        one, two = _statements(before), _statements(after)
        return (len(two) < len(one) and _expressions(two) <= _expressions(one)) or _decorators(two) < _decorators(one)
    except (SyntaxError, ValueError):
        return True


def swallows(before: str, after: str) -> bool:
    """Whether an edit catches exceptions that the script let through; both texts parse."""
    return _catching(after) > _catching(before)


def _catching(text: str) -> int:
    names = ("suppress", "contextlib")
    return sum(
        isinstance(n, ast.Try | ast.TryStar) or (isinstance(n, ast.Name | ast.Attribute) and _last_name(n) in names)
        for n in ast.walk(ast.parse(text))
    )


def skips(before: str, after: str) -> bool:
    """Whether an edit adds a way past statements: an exception, an exit, a branch decided in the text; both texts parse."""
    return _skipping(after) > _skipping(before)


def _skipping(text: str) -> int:
    return sum(_skips(node) for node in ast.walk(ast.parse(text)))


def _skips(node: ast.AST) -> bool:
    if isinstance(node, ast.Name | ast.Attribute):
        return _last_name(node) in EXITS
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return not any(isinstance(part, ast.Name) for part in ast.walk(node.test))
    return isinstance(node, ast.Raise)


def _last_name(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _statements(text: str) -> list[ast.stmt]:
    kept = (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt) and not isinstance(n, ast.Pass))
    return [n for n in kept if not _idle(n)]


def _decorators(statements: list[ast.stmt]) -> int:
    return sum(len(getattr(s, "decorator_list", ())) for s in statements)


def _expressions(statements: list[ast.stmt]) -> int:
    """How many expressions the statements are made of (those of inner statements are counted there)."""
    return sum(1 for s in statements for part in ast.iter_child_nodes(s) for n in ast.walk(part)
               if isinstance(n, ast.expr) and not isinstance(part, ast.stmt))  # fmt: skip


def _idle(node: ast.stmt) -> bool:
    """A bare constant or name does nothing."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant | ast.Name)


class Spots:
    """Positions before and after some edits, made comparable: what stands in an edit is where the edit begins."""

    def __init__(self, text: str, edits: Iterable[TextEdit]) -> None:
        self._starts = offsets(text)
        spots = []
        for edit in edits:
            begin = position(self._starts, edit.span.line, edit.span.col)
            end = position(self._starts, edit.span.end_line, edit.span.end_col)
            spots.append((begin, end, len(edit.text)))
        self._edits = sorted(spots)
        shifts, moved = [], 0
        for begin, end, length in self._edits:
            shifts.append((begin + moved, begin + moved + length, begin, end))
            moved += length - (end - begin)
        self._after = shifts

    def before(self, place: Place | None) -> int:
        """A place in the text as it was; -1 for none."""
        if not isinstance(place, Span):
            return -1
        at = position(self._starts, place.line, place.col)
        for begin, end, _ in self._edits:
            if begin <= at < end:
                return begin
        return at

    def after(self, text: str) -> Callable[[Place | None], int]:
        """The same for a place in the edited text."""
        starts = offsets(text)

        def spot(place: Place | None) -> int:
            if not isinstance(place, Span):
                return -1
            at = position(starts, place.line, place.col)
            number = bisect.bisect_right([a for a, _, _, _ in self._after], at) - 1
            if number < 0:
                return at
            _, new_end, begin, end = self._after[number]
            return begin if at < new_end else at - new_end + end

        return spot


# --- all together ---------------------------------------------------------------------------------------------------

#: How many fixes "Apply all" puts together at most.
TOGETHER = LIMITS["fixes_together"].value
TITLE_ALL = "Apply all"


def all_together(first: Verified, again: Callable[[Outcome], Fixer], original: str) -> Verified | None:
    """Fix after fix until the script runs clean: the whole way as one edit; None when it does not get there."""
    good, count = first, 1
    while not good.outcome.clean and count < TOGETHER:
        fixer = again(good.outcome)
        breaking = [case for case in good.outcome.cases if case.breaks]
        step = next((v for case in breaking for v in fixer.fixes(case)), None)
        if step is None:
            return None
        good, count = step, count + 1
    if count < 2 or not good.outcome.clean:
        return None
    return Verified(Fix(TITLE_ALL, difference(original, good.text)), good.text, good.outcome)


def difference(before: str, after: str) -> TextEdit:
    """The one edit that leads from a text to another, on whole characters."""
    start = 0
    while start < min(len(before), len(after)) and before[start] == after[start]:
        start += 1
    end = 0
    while end < min(len(before), len(after)) - start and before[-1 - end] == after[-1 - end]:
        end += 1
    line, col = _line_col(before, start)
    end_line, end_col = _line_col(before, len(before) - end)
    return TextEdit(Span(line, col, end_line, end_col), after[start : len(after) - end])


def _line_col(text: str, at: int) -> tuple[int, int]:
    line = text.count("\n", 0, at) + 1
    return line, at - (text.rfind("\n", 0, at) + 1)
