"""A script's checkup: run it, gather what all rules found, say each fault once, try its fixes.

    checkup = check_script(text)
    checkup.report              # outcome, violations worst first, the raw error when no rule explains it

Verdict and fixes are two steps, so that a page can show the first at once: `examine` gives a checkup without fixes,
`with_fixes` tries them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from core.base.outcome import Outcome as Ended
from core.base.outcome import RawError, Report
from core.base.places import Because, Place, Span
from core.base.text import fill
from core.base.violation import Proof, Severity, Violation
from core.contract import engine
from core.contract.rule import Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import TIME, Failure, ScriptRecord
from core.contract.source import Source
from core.contract.trace import Raised
from core.doctor.fixes import Case, Fixer, Outcome, Verified, all_together
from core.doctor.instrument import Prepare, Refused, trusted
from core.doctor.prep import Kind, Prepared, prepared
from core.doctor.script import ALL, CONCLUSION, Measures, ScriptRun, rules_for_scripts, run_script
from core.sandbox.timeup import TimeUp

#: What a text is that holds no script, in a sentence.
NO_CODE = {
    Kind.EMPTY: "There is no code in it.",
    Kind.TEXT: "There is no code in it, only words.",
    Kind.ERROR: "This is an error message; the code that raised it is not there.",
}
NO_SCRIPT = "NoScript"
BOUND = "{path} was made here"


@dataclass(frozen=True, slots=True)
class Terms:
    """How scripts are run: by what, and how much they may print and compute (None: as much as they like).

    `again`: to be called before a script that was stopped is checked by its types, which takes time of its own.
    `proofs`: whether the numbers that prove a fault are measured.
    """

    prepare: Prepare = trusted
    output: int | None = None
    budget: int | None = None
    again: Callable[[], None] | None = None
    proofs: bool = True


PLAIN = Terms()


@dataclass(slots=True, eq=False)
class Checkup:
    """A script that was checked.

    Attributes:
        given: what was pasted, and the script in it.
        terms: how it was run, and how its edited versions are.
        outcome: its run and its faults; None when it could not be read or holds what is not run here.
        report: what a reader gets; places are those of what was pasted, edits of fixes those of the script in it.
        sources: by violation, by fix: the whole fixed script (of the script, without prompts and fences).
        together: all fixes as one, where that runs clean.
        cut: whether there was no time to try all fixes.
        runs: every run that was made, to be closed.
        unread: why the text could not be read as a script (an error's type, its text, its place); None when it could.
    """

    given: Prepared
    report: Report
    terms: Terms = PLAIN
    outcome: Outcome | None = None
    sources: list[list[str]] = field(default_factory=list)
    together: Verified | None = None
    cut: bool = False
    unread: RawError | None = None
    runs: list[ScriptRun] = field(default_factory=list)

    def close(self) -> None:
        """Take back what the script, and its edited versions, left in libraries. Their objects are not to be used then."""
        for run in self.runs:
            if run.program is not None:
                run.program.close()

    @property
    def run(self) -> ScriptRun | None:
        """The run."""
        return None if self.outcome is None else self.outcome.run


def check_script(
    text: str,
    *,
    prepare: Prepare = trusted,
    fixes: bool = True,
    output: int | None = None,
    budget: int | None = None,
) -> Checkup:
    """The whole check of what somebody pasted.

    Args:
        text: the script, as it was pasted.
        prepare: what makes it ready to run: `trusted`, or the sandbox's.
        fixes: whether to try fixes.
        output: at most so many characters of what it prints are kept.
        budget: how many numbers one scan may compute (``LIMITS["work"]``); a script over it is checked by types alone.
    """
    checkup = examine(text, Terms(prepare, output, budget))
    return with_fixes(checkup) if fixes else checkup


def examine(text: str, terms: Terms = PLAIN, *, abstract: bool = False) -> Checkup:
    """The verdict, without fixes; `abstract` computes nothing. Never raises for anything the learner did."""
    given = prepared(text)
    if given.kind in NO_CODE:
        raw = RawError(NO_SCRIPT, fill(NO_CODE[given.kind]))
        return Checkup(given, Report(Ended.ERROR, (), raw), terms, unread=raw)
    try:
        source = Source(given.script)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raw = _unread(error, given)
        return Checkup(given, Report(Ended.ERROR, (), raw), terms, unread=raw)
    try:
        outcome = run_once(source, terms, {}, abstract=abstract, proofs=terms.proofs)
    except SyntaxError as error:  # what parses need not compile: a `return` outside a function
        raw = _unread(error, given, parsed=True)
        return Checkup(given, Report(Ended.ERROR, (), raw), terms, unread=raw)
    runs = [outcome.run]
    costly = any(case.found.rule.stage is Stage.LIMIT and case.scan is not None for case in outcome.cases)
    if (costly or outcome.run.record.stopped is not None) and not abstract:
        if terms.again is not None:
            terms.again()
        outcome = _by_types(outcome, source, terms)
        runs.append(outcome.run)
    shown: list[tuple[Case, tuple[Verified, ...]]] = [(case, ()) for case in outcome.cases]
    return Checkup(given, _report(given, outcome, shown), terms, outcome, [[] for _ in shown], runs=runs)


def _by_types(stopped: Outcome, source: Source, terms: Terms) -> Outcome:
    """A script that was stopped at a limit, with what its types alone tell of the rest."""
    limits = tuple(case for case in stopped.cases if case.found.severity is Severity.LIMIT)
    outcome = run_once(source, terms, {}, abstract=True)
    printed, record = stopped.run.record, outcome.run.record
    record.stdout, record.stdout_cut = printed.stdout, printed.stdout_cut
    others = (case for case in outcome.cases if case.found.severity is not Severity.LIMIT)
    return replace(outcome, cases=tuple(sorted((*limits, *others), key=_order)))


def with_fixes(checkup: Checkup) -> Checkup:
    """The same checkup with the fixes that hold, proofs measured on the first of them, and all of them together."""
    outcome = checkup.outcome
    if outcome is None:
        return checkup
    runs = list(checkup.runs)

    def run_again(source: Source, measures: Measures) -> Outcome:
        after = run_once(source, checkup.terms, measures, abstract=outcome.run.record.abstract, proofs=False)
        runs.append(after.run)
        stopped = after.run.record.stopped
        unasked = any(code == CONCLUSION for code, _ in after.run.problems)  # rules that nobody asked found nothing
        if unasked or (stopped is not None and stopped.reason == TIME):
            raise TimeUp
        return after

    fixer = Fixer(outcome, run_again)
    tried: list[tuple[Verified, ...]] = []
    together, cut = None, True
    with suppress(TimeUp):  # fixes that there was no time to try are not shown
        for case in outcome.cases:
            tried.append(tuple(fixer.fixes(case)))  # noqa: PERF401  # what was tried before the alarm stays
        first = next((v[0] for case, v in zip(outcome.cases, tried, strict=True) if case.breaks and v), None)
        if first is not None and sum(1 for case in outcome.cases if case.breaks) + len(first.fix.remaining) > 1:
            together = all_together(first, lambda o: Fixer(o, run_again, proofs=False), outcome.run.record.source.text)
        cut = False
    tried += [()] * (len(outcome.cases) - len(tried))
    shown = list(zip(outcome.cases, tried, strict=True))
    sources = [[v.text for v in verified] for _, verified in shown]
    report = _report(checkup.given, outcome, shown)
    return replace(checkup, report=report, sources=sources, together=together, cut=cut, runs=runs)


# --- one run --------------------------------------------------------------------------------------------------------


def run_once(
    source: Source, terms: Terms, measures: Measures, *, abstract: bool = False, proofs: bool = True
) -> Outcome:
    """Run a script from scratch and gather its faults; without `proofs` only what `measures` asks is measured."""
    rules = rules_for_scripts()
    try:
        run = run_script(
            source,
            prepare=terms.prepare,
            rules=rules,
            measures=measures,
            abstract=abstract,
            output=terms.output,
            budget=terms.budget,
            proofs=proofs,
        )
    except Refused as refused:
        record = ScriptRecord(source, refused=refused.found)
        run = ScriptRun(record, script=engine.diagnose_facts(ScriptFacts(record), rules, ALL))
    cases = tuple(cases_of(run))
    return Outcome(run, cases, _unexplained(run, cases))


def cases_of(run: ScriptRun) -> Iterator[Case]:
    """Every fault once: worst first, then by where it stands. What says the same less precisely is left out."""
    cases: list[Case] = []
    for index, look in enumerate(run.looks):
        cases += [Case(f, look.diagnosis.facts, index, look.numbers.get(f.key)) for f in look.diagnosis.found]
    for diagnosis in (run.log, run.script):
        found = () if diagnosis is None else diagnosis.found
        cases += [Case(f, diagnosis.facts, None, run.numbers.get(f.key)) for f in found if diagnosis is not None]
    once: dict[tuple[str, str, object], Case] = {}
    for number, case in enumerate(cases):
        finding = case.found.finding
        once.setdefault((case.found.rule.code, finding.path, finding.place or number), case)
    kept = [c for c in once.values() if not any(_beats(w, c) for w in once.values() if w is not c)]
    yield from sorted(kept, key=_order)


def _beats(winner: Case, loser: Case) -> bool:
    """Whether one fault says more precisely what the other says, of the same scan or of the script around it."""
    together = winner.scan == loser.scan or winner.scan is None or loser.scan is None
    return together and engine.beats(winner.found, loser.found)


def _order(case: Case) -> tuple[int, tuple[int, int]]:
    """Worst first, then by where it stands."""
    return case.found.severity.rank, _where(case.found.finding.place)


def _where(place: Place | None) -> tuple[int, int]:
    return (place.line, place.col) if isinstance(place, Span) else (1 << 30, 0)


def _unexplained(run: ScriptRun, cases: tuple[Case, ...]) -> bool:
    """Whether the script ended in an exception that no finding explains."""
    failure = run.record.failure
    if failure is None or failure.explained or run.record.refused:
        return False
    return not any(c.facts.on == "script" and c.found.severity is Severity.ERROR and not _silent(c) for c in cases)


def _silent(case: Case) -> bool:
    return case.found.finding.silent is True


# --- the report -----------------------------------------------------------------------------------------------------


def _report(given: Prepared, outcome: Outcome, shown: list[tuple[Case, tuple[Verified, ...]]]) -> Report:
    violations = tuple(_violation(given, case, verified) for case, verified in shown)
    failure = outcome.run.record.failure
    error = raw_error(failure, given) if failure is not None and outcome.unexplained else None
    return Report(_ended(violations, error), violations, error)


def _ended(violations: tuple[Violation, ...], error: RawError | None) -> Ended:
    if any(v.severity is Severity.LIMIT for v in violations):
        return Ended.LIMIT
    if error is not None and not any(v.severity is Severity.ERROR for v in violations):
        return Ended.ERROR
    return Ended.VIOLATIONS if any(v.severity.breaks for v in violations) else Ended.OK


def _violation(given: Prepared, case: Case, verified: tuple[Verified, ...]) -> Violation:
    fixes = tuple(v.fix for v in verified)
    measure = case.found.finding.measure
    proof = None
    if measure is not None and case.number is not None:
        after = verified[0].number if verified else None
        proof = Proof(measure.claim, case.number, after, measure.expected)
    made = engine.violation(case.found, case.facts, fixes, proof)
    because = made.because or _binding(case)
    if because is not None:
        because = Because(given.place(because.place), because.text)
    return replace(made, place=given.place(made.place), because=because)


def _binding(case: Case) -> Because | None:
    """Of a fault of xs, where what the argument names was bound; None where that is written in the call itself."""
    finding, places = case.found.finding, case.facts.places
    path = finding.path or "xs"
    bound, here = places.find(f"xs_bound:{path}", "xs_bound"), places.find(f"xs:{path}", "xs")
    if not path.startswith("xs") or bound is None or finding.place != here or bound == here:
        return None
    return Because(bound, fill(BOUND, path=path))


def raw_error(failure: Failure, given: Prepared) -> RawError:
    """An exception as it is, at its place, with what the failing expression was made of."""
    operands = tuple(f"{o.text}: {o.type}" for o in failure.operands)
    raised = Raised(failure.error)
    return RawError(raised.type, raised.text, given.place(failure.span), operands)


def _unread(error: BaseException, given: Prepared, *, parsed: bool = False) -> RawError:
    """Why a text is no script, at its place. Python's compiler counts bytes of a line that was `parsed`, its parser not."""
    if not isinstance(error, SyntaxError) or error.lineno is None:
        return RawError(type(error).__name__, str(error))
    lines = given.script.split("\n")
    line = min(error.lineno, len(lines))
    end_line = min(error.end_lineno or line, len(lines))
    col, end = max((error.offset or 1) - 1, 0), (error.end_offset or 0) - 1
    if parsed:
        col, end = _characters(lines[line - 1], col), _characters(lines[end_line - 1], end)
    if (end_line, end) <= (line, col):
        end_line, end = line, max(col + 1, min(len(lines[line - 1]), col + 1))
    return RawError(type(error).__name__, error.msg, given.place(Span(line, col, end_line, end)))


def _characters(line: str, count: int) -> int:
    """How many characters so many bytes of a line in UTF-8 are."""
    return len(line.encode()[: max(count, 0)].decode(errors="ignore"))
