"""The engine: facts -> findings -> one message per root cause -> fixes that were tried -> a report.

A fix reaches a report only after the change was made, the whole check was run again, that violation was gone, nothing
new broke and execution got at least as far as before. A proof's number is measured on the subject as it stands and on
the mended one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from core.base.measures import Part, timed
from core.base.outcome import Outcome, RawError, Report
from core.base.violation import FieldEdit, Fix, Proof, Severity, TextEdit, Violation
from core.contract.facts import Facts, ScanFacts, facts_of
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage, all_rules
from core.contract.subject import Subject
from core.runners.memo import one_check


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A repair carried out: the mended subject and the edit that leads there (None when there is nothing to edit)."""

    subject: Subject
    edit: TextEdit | FieldEdit | None = None


class Bench(Protocol):
    """Where repairs are carried out: on a call (the default), on a page's inputs, on a script."""

    def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
        """Carry out all of these, from the state as it stands; None when this bench cannot."""


class CallBench:
    """Repairs the subject itself: for calls made from Python, without any page or source."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
        """The subject with each repair applied in turn."""
        subject: Subject | None = self._subject
        for repair in repairs:
            subject = None if subject is None else repair.apply(subject)
        return None if subject is None else Attempt(subject)


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """A finding with its rule."""

    rule: Rule
    finding: Finding

    @property
    def severity(self) -> Severity:
        """The finding's own, else the rule's."""
        return self.finding.severity or self.rule.severity

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same fault in another check: code and path."""
        return self.rule.code, self.finding.path


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """Findings of one pass, without fixes: what verification compares."""

    facts: Facts
    found: tuple[Found, ...]
    reached: Stage
    error: RawError | None = None

    @property
    def breaking(self) -> frozenset[tuple[str, str]]:
        """Keys of everything that is not a note."""
        return frozenset(f.key for f in self.found if f.severity.breaks)


def diagnose(subject: Subject, rules: Iterable[Rule] | None = None, *, late: bool = False) -> Diagnosis:
    """One pass over the rules, stage by stage; a stage with an error ends it, for what follows would be a cascade.

    `late` adds the stage that a check before the plot leaves out.
    """
    return diagnose_facts(facts_of(subject), rules, (*BEFORE_RUN, Stage.RUN, *((Stage.LATE,) if late else ())))


#: The stages that compute nothing: an abstract trace is enough for them.
BEFORE_RUN = (Stage.LIMIT, Stage.INPUT, Stage.TRACE)


def diagnose_facts(
    facts: Facts, rules: Iterable[Rule] | None, stages: tuple[Stage, ...], before: Diagnosis | None = None
) -> Diagnosis:
    """Some stages of a pass over facts that are known already; `before` is the diagnosis of the stages before these.

    A diagnosis whose last stage had no error has reached the stage after it.
    """
    if before is not None and (before.error is not None or _stops(before.found)):
        return before
    chosen = [r for r in (all_rules() if rules is None else rules) if facts.on in r.on]
    found: list[Found] = [] if before is None else list(before.found)
    for stage in stages:
        for rule in (r for r in chosen if r.stage is stage):
            found += [Found(rule, finding) for finding in rule.check(facts)]
        if _stops(found):
            return Diagnosis(facts, _most_specific(found), stage)
        error = _raw(facts, stage)
        if error is not None:
            return Diagnosis(facts, _most_specific(found), stage, error)
    reached = {Stage.TRACE: Stage.RUN, Stage.LATE: Stage.LATE}.get(stages[-1], Stage.DONE)
    return Diagnosis(facts, _most_specific(found), reached)


def _stops(found: Iterable[Found]) -> bool:
    return any(f.severity in (Severity.ERROR, Severity.LIMIT) for f in found)


def _raw(facts: Facts, stage: Stage) -> RawError | None:
    """What JAX raised although no rule knows why."""
    raised = None
    if stage is Stage.TRACE:
        raised = facts.jax
    elif stage is Stage.RUN and facts.on == "scan":
        from core.contract.trace import Raised

        run = facts.run  # type: ignore[union-attr]  # only ScanFacts are on "scan"
        raised = run if isinstance(run, Raised) else None
    if raised is None:
        return None
    return RawError(raised.type, raised.text, facts.places.find("step", "scan", "cell"), ())


def _most_specific(found: list[Found]) -> tuple[Found, ...]:
    """Drop what a more specific rule already said of the same leaf."""
    return tuple(f for f in found if not any(beats(winner, f) for winner in found if winner is not f))


def beats(winner: Found, loser: Found) -> bool:
    """Whether one finding says more precisely what the other says of the same leaf.

    What JAX raises at is not hidden by less than that.
    """
    one, other = winner.finding, loser.finding
    return (
        loser.rule.code in winner.rule.beats
        and (loser.severity is not Severity.ERROR or winner.severity is Severity.ERROR)
        and (other.path in (one.path, *one.covers) or not other.path or not one.path)
    )


def check(subject: Subject, bench: Bench | None = None, rules: Iterable[Rule] | None = None) -> Report:
    """The whole check of one subject.

    Args:
        subject: the call or trial.
        bench: where repairs are tried; by default on the subject itself.
        rules: all of them by default.

    Returns:
        the report, violations worst first. Never raises for anything the learner did.
    """
    return examine(subject, bench, rules)[0]


@timed(Part.CHECK)
def examine(subject: Subject, bench: Bench | None = None, rules: Iterable[Rule] | None = None) -> tuple[Report, Facts]:
    """As `check`, with the facts it rests on: a page draws the run that was checked, it does not run it again."""
    chosen = tuple(all_rules() if rules is None else rules)
    with one_check():
        diagnosis = diagnose(subject, chosen)
        bench = bench or CallBench(subject)
        violations = [_violation(f, diagnosis, bench, chosen) for f in diagnosis.found]
    violations.sort(key=lambda v: v.severity.rank)
    return Report(_outcome(diagnosis, violations), tuple(violations), diagnosis.error), diagnosis.facts


def check_late(subject: Subject, rules: Iterable[Rule] | None = None) -> tuple[Violation, ...]:
    """Violations of the rules that wait until after the plot (`Stage.LATE`), for a subject whose check ran clean."""
    chosen = tuple(all_rules() if rules is None else rules)
    with one_check():
        facts = facts_of(subject)
        late = [r for r in chosen if r.stage is Stage.LATE and facts.on in r.on]
        found = tuple(Found(rule, finding) for rule in late for finding in rule.check(facts))
        diagnosis = Diagnosis(facts, found, Stage.LATE)
        return tuple(_violation(f, diagnosis, CallBench(subject), chosen) for f in found)


def _outcome(diagnosis: Diagnosis, violations: list[Violation]) -> Outcome:
    if any(v.severity is Severity.LIMIT for v in violations):
        return Outcome.LIMIT
    if diagnosis.error is not None and not any(v.severity is Severity.ERROR for v in violations):
        return Outcome.ERROR
    return Outcome.VIOLATIONS if any(v.severity.breaks for v in violations) else Outcome.OK


def _violation(found: Found, diagnosis: Diagnosis, bench: Bench, rules: tuple[Rule, ...]) -> Violation:
    tried = list(_verified(found, diagnosis, bench, rules))
    proof = _proof(found.finding, diagnosis, tried[0][1] if tried else None)
    return violation(found, diagnosis.facts, tuple(fix for fix, _ in tried), proof)


def violation(found: Found, facts: Facts, fixes: tuple[Fix, ...], proof: Proof | None = None) -> Violation:
    """A finding with its verified fixes and its proof, as a reader gets it."""
    finding, rule = found.finding, found.rule
    unasked = found.severity in (Severity.NOTE, Severity.LIMIT)  # what is over a limit must not be run to hear JAX
    raised = None if unasked else facts.jax
    silent = finding.silent if finding.silent is not None else (rule.jax is Jax.SILENT or raised is None)
    return Violation(
        code=rule.code,
        name=rule.name,
        severity=found.severity,
        silent=silent,
        message=finding.message,
        place=finding.place,
        why=finding.why or rule.why,
        because=finding.because,
        expected=finding.expected,
        got=finding.got,
        fixes=fixes,
        jax_said=None if silent or raised is None else f"{raised.type}: {raised.text}",
        proof=proof,
        path=finding.path,
        title=finding.title or "",
    )


def _verified(found: Found, before: Diagnosis, bench: Bench, rules: tuple[Rule, ...]) -> Iterator[tuple[Fix, Subject]]:
    offered: list[TextEdit | FieldEdit] = []
    for repair in found.finding.repairs:
        attempt = bench.attempt((repair,))
        # Two repairs may come to one edit (of a page's switch, say): one button is enough.
        if attempt is None or attempt.edit in offered:
            continue
        after = diagnose(attempt.subject, rules, late=before.reached is Stage.LATE)
        if holds(found, before, after):
            offered += [] if attempt.edit is None else [attempt.edit]
            left = sorted({f.rule.code for f in after.found if f.severity.breaks})
            left += [] if after.error is None else [after.error.type]
            yield Fix(repair.title, attempt.edit, tuple(left)), attempt.subject


def holds(found: Found, before: Diagnosis, after: Diagnosis) -> bool:
    """Whether a fix did what it says: that fault gone, nothing new broken, execution at least as far as before.

    A fault of a later stage is not new when the earlier pass never got there. A scan with nothing left in it breaks no
    rule either: that is no fix.
    """
    if found.key in {f.key for f in after.found} or _emptied(before.facts, after.facts):
        return False
    if after.reached < before.reached or (after.error is not None and after.reached <= before.reached):
        return False
    new = [f for f in after.found if f.severity.breaks and f.key not in before.breaking]
    return all(f.rule.stage > before.reached for f in new)


def _emptied(before: Facts, after: Facts) -> bool:
    """Whether a mended scan runs no step, or carries nothing, although the one before did."""
    if not isinstance(before, ScanFacts) or not isinstance(after, ScanFacts):
        return False
    ran = before.length != 0 and 0 not in before.leading
    return (ran and after.length == 0) or (bool(before.init_types) and not after.init_types)


def _proof(finding: Finding, diagnosis: Diagnosis, mended: Subject | None) -> Proof | None:
    measure = finding.measure
    if measure is None:
        return None
    subject = diagnosis.facts.subject
    before = number_of(measure, subject)
    if before is None:
        return None
    after = None if mended is None else number_of(measure, mended)
    return Proof(measure.claim, before, after, measure.expected)


def number_of(measure: Measure, subject: Subject) -> float | None:
    """The measured number; None when it cannot be measured on this subject (then there is no proof to show)."""
    try:
        return float(measure.of(subject))
    except Exception:  # noqa: BLE001  # a proof is a bonus: a subject it does not fit must not break the check
        return None


def fix_all(subject: Subject, report_bench: Bench, rules: Iterable[Rule] | None = None) -> Fix | None:
    """The first verified fix of every broken rule, together, when the result runs clean; None otherwise."""
    with one_check():
        return _fix_all(subject, report_bench, tuple(all_rules() if rules is None else rules))


def _fix_all(subject: Subject, report_bench: Bench, chosen: tuple[Rule, ...]) -> Fix | None:
    before = diagnose(subject, chosen)
    repairs: list[Repair] = []
    waiting: list[Found] = []
    for found in (f for f in before.found if f.severity.breaks):
        own = next((r for r in found.finding.repairs if _mends(found, before, report_bench, chosen, (r,))), None)
        if own is None:
            waiting.append(found)
        else:
            repairs.append(own)
    for found in waiting:  # what can only be mended once the others are: lengths for a layer that misreads its axes
        together = (r for r in found.finding.repairs if _mends(found, before, report_bench, chosen, (*repairs, r)))
        own = next(together, None)
        if own is None:
            return None
        repairs.append(own)
    if len(repairs) < 2:
        return None
    attempt = report_bench.attempt(tuple(repairs))
    if attempt is None:
        return None
    after = diagnose(attempt.subject, chosen)
    if after.breaking or after.error is not None or after.reached is not Stage.DONE:
        return None
    return Fix(TITLE_ALL, attempt.edit)


def _mends(
    found: Found, before: Diagnosis, bench: Bench, chosen: tuple[Rule, ...], repairs: tuple[Repair, ...]
) -> bool:
    """Whether these repairs together do what they say of this fault."""
    attempt = bench.attempt(repairs)
    return attempt is not None and holds(found, before, diagnose(attempt.subject, chosen))


TITLE_ALL = "Apply all"
