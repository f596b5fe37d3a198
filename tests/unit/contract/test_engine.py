"""The engine: one message per root cause, verified fixes only, outcomes, stages.

The rules here are made up. Each finds a mark that a call carries in its `axes`, so that a fault can be put there, taken
away and exchanged without changing what JAX does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from core.base.outcome import Outcome
from core.base.places import Field, Places
from core.base.violation import FieldEdit, Severity
from core.contract.engine import Attempt, CallBench, check, check_late, diagnose, fix_all, holds
from core.contract.facts import ScanFacts
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage, all_rules
from core.contract.subject import ScanCall

XS = jnp.array([1.0, 2.0, 3.0])
MARKS = "marks"


def total(carry: Any, x: Any) -> Any:
    return carry + x, carry


def marked(*marks: str) -> ScanCall:
    """A call that JAX runs, with these faults."""
    return ScanCall(total, 0.0, XS, axes={MARKS: " ".join(marks)})


def marks(call: ScanCall) -> list[str]:
    return call.axes[MARKS].split()


def exchange(*new: str, gone: str, title: str = "mend") -> Repair:
    """A repair that takes one mark away and puts others there."""

    def apply(call: ScanCall) -> ScanCall:
        left = [mark for mark in marks(call) if mark != gone] + list(new)
        return replace(call, axes={MARKS: " ".join(left)})

    return Repair("marks", title, apply)


def rule(
    code: str,
    *repairs: Repair,
    stage: Stage = Stage.TRACE,
    severity: Severity = Severity.WARNING,
    beats: tuple[str, ...] = (),
    path: str = "",
    seen: list[str] | None = None,
    **more: Any,
) -> Rule:
    """A rule that fires on the mark of its own name; `seen` takes down that it was asked."""

    def find(facts: ScanFacts) -> Iterator[Finding]:
        if seen is not None:
            seen.append(code)
        if code in marks(facts.call):
            yield Finding(f"{code} is there", None, repairs=repairs, path=path, **more)

    return Rule(code, code.lower(), code, severity, Jax.SILENT, stage, "why", find, beats=frozenset(beats))


# --- fixes ----------------------------------------------------------------------------------------------------------


def test_a_fix_that_works_is_shown() -> None:
    report = check(marked("A"), rules=[rule("A", exchange(gone="A"))])
    assert report.outcome is Outcome.VIOLATIONS
    assert [(fix.title, fix.remaining) for fix in report.violations[0].fixes] == [("mend", ())]


def emptied(call: ScanCall) -> ScanCall:
    return replace(call, step=lambda carry, x: ((), None), init=(), axes={MARKS: ""})


SABOTAGE: dict[str, Callable[[ScanCall], ScanCall | None]] = {
    "returns its input": lambda call: call,
    "returns a copy of its input": lambda call: replace(call),
    "returns nothing": lambda call: None,
    "deletes the arguments": lambda call: ScanCall(call.step, None, None, axes={MARKS: ""}),
    "deletes xs": lambda call: replace(call, xs=None, axes={MARKS: ""}),
    "deletes the sequence": lambda call: replace(call, xs=call.xs[:0], axes={MARKS: ""}),
    "runs no step": lambda call: ScanCall(lambda c, x: (c, None), call.init, length=0, axes={MARKS: ""}),
    "deletes the carry": emptied,
    "deletes the step": lambda call: replace(call, step=None, axes={MARKS: ""}),  # type: ignore[arg-type]
    "breaks the step": lambda call: replace(call, step=lambda c, x: (jnp.append(c, x), x), axes={MARKS: ""}),
    "breaks xs": lambda call: replace(call, xs=2.0, axes={MARKS: ""}),
    "makes the step raise": lambda call: replace(call, step=lambda c, x: 1 / 0, axes={MARKS: ""}),
}


@pytest.mark.parametrize("name", SABOTAGE)
@pytest.mark.parametrize("stage", [Stage.INPUT, Stage.TRACE, Stage.RUN])
def test_a_sabotaged_fix_never_reaches_a_report(name: str, stage: Stage) -> None:
    rules = [*all_rules(), rule("A", Repair("sabotage", name, SABOTAGE[name]), exchange(gone="A"), stage=stage)]
    violation = next(v for v in check(marked("A"), rules=rules).violations if v.code == "A")
    assert [fix.title for fix in violation.fixes] == ["mend"]


@pytest.mark.parametrize("name", ["returns its input", "deletes the sequence", "deletes the carry"])
def test_real_faults_are_not_mended_by_sabotage(name: str) -> None:
    # The repair of a real rule is put out of order; the same check with the real one shows its fix.
    def sabotaged(real: Rule) -> Rule:
        def find(facts: Any) -> Iterator[Finding]:
            for finding in real.check(facts):
                yield replace(finding, repairs=tuple(replace(r, apply=SABOTAGE[name]) for r in finding.repairs))

        return replace(real, check=find)

    call = ScanCall(total, jnp.int32(0), XS, axes={MARKS: ""})
    assert [fix.title for v in check(call).violations for fix in v.fixes] == ["Make init's carry float32"]
    broken = [sabotaged(real) if real.code == "S104" else real for real in all_rules()]
    report = check(call, rules=broken)
    assert [v.code for v in report.broken] == ["S104"]
    assert report.broken[0].fixes == ()


def test_a_fix_that_brings_a_new_fault_is_dropped() -> None:
    rules = [rule("A", exchange("B", gone="A")), rule("B")]
    assert check(marked("A"), rules=rules).violations[0].fixes == ()


def test_a_fix_that_brings_a_note_is_kept() -> None:
    rules = [rule("A", exchange("B", gone="A")), rule("B", severity=Severity.NOTE)]
    assert len(check(marked("A"), rules=rules).violations[0].fixes) == 1


def test_a_fault_that_only_a_later_stage_could_see_is_not_new() -> None:
    early = rule("A", exchange("B", gone="A"), stage=Stage.INPUT, severity=Severity.ERROR)
    late = rule("B", stage=Stage.TRACE, severity=Severity.ERROR)
    (violation,) = check(marked("A"), rules=[early, late]).violations
    assert [fix.remaining for fix in violation.fixes] == [("B",)]


def test_a_fix_must_get_at_least_as_far() -> None:
    # The mended call fails a stage earlier, at a fault that was there and unseen: no, it was not there.
    early = rule("B", stage=Stage.INPUT, severity=Severity.ERROR)
    late = rule("A", exchange("B", gone="A"), stage=Stage.TRACE, severity=Severity.ERROR)
    assert check(marked("A"), rules=[early, late]).violations[0].fixes == ()


def test_what_a_fix_leaves_is_named() -> None:
    rules = [rule("A", exchange(gone="A")), rule("B", exchange(gone="B")), rule("C", severity=Severity.NOTE)]
    report = check(marked("A", "B", "C"), rules=rules)
    assert {v.code: [fix.remaining for fix in v.fixes] for v in report.violations} == {
        "A": [("B",)],
        "B": [("A",)],
        "C": [],
    }


def test_an_exception_that_a_fix_only_brings_to_light_is_named() -> None:
    call = ScanCall(lambda c, x: (1 / 0, x), 0.0, XS, length=4)
    assert [fix.remaining for v in check(call).broken for fix in v.fixes] == [("ZeroDivisionError",)]


def test_the_same_rule_at_another_leaf_is_another_fault() -> None:
    one, two = Finding("one", None, path="carry[0]"), Finding("two", None, path="carry[1]")
    made = rule("A")
    here = replace(made, check=lambda facts: [f for f in (one, two) if f.message in marks(facts.call)])
    before, after = diagnose(marked("one"), [here]), diagnose(marked("two"), [here])
    assert not holds(before.found[0], before, after)  # it moved
    assert holds(before.found[0], before, diagnose(marked(), [here]))


def test_a_bench_that_cannot_carry_a_repair_out_shows_no_fix() -> None:
    class Nowhere:
        def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
            return None

    report = check(marked("A"), bench=Nowhere(), rules=[rule("A", exchange(gone="A"))])
    assert report.violations[0].fixes == ()


def test_what_was_verified_is_what_the_edit_does() -> None:
    # A page's bench rebuilds the call from its edited inputs; a translation that changes nothing is no fix.
    edit = FieldEdit({"marks": ""})

    class Page:
        def __init__(self, works: bool) -> None:
            self.works = works

        def attempt(self, repairs: tuple[Repair, ...]) -> Attempt | None:
            return Attempt(marked() if self.works else marked("A"), edit)

    rules = [rule("A", exchange(gone="A"))]
    assert [fix.edit for fix in check(marked("A"), bench=Page(True), rules=rules).violations[0].fixes] == [edit]
    assert check(marked("A"), bench=Page(False), rules=rules).violations[0].fixes == ()


def test_fixes_keep_the_rule_s_order() -> None:
    repairs = (
        exchange(gone="A", title="first"),
        Repair("no", "no", lambda call: call),
        exchange(gone="A", title="then"),
    )
    (violation,) = check(marked("A"), rules=[rule("A", *repairs)]).violations
    assert [fix.title for fix in violation.fixes] == ["first", "then"]


# --- all together ---------------------------------------------------------------------------------------------------


def together(call: ScanCall, *rules: Rule) -> Any:
    return fix_all(call, CallBench(call), rules)


def test_apply_all_mends_everything_at_once() -> None:
    fix = together(marked("A", "B"), rule("A", exchange(gone="A")), rule("B", exchange(gone="B")))
    assert fix is not None
    assert (fix.title, fix.remaining) == ("Apply all", ())


def test_apply_all_takes_the_first_fix_that_holds() -> None:
    bad, good = exchange("C", gone="A"), exchange(gone="A")
    assert together(marked("A", "B"), rule("A", bad, good), rule("B", exchange(gone="B")), rule("C")) is not None


@pytest.mark.parametrize(
    ("call", "rules"),
    [
        (marked("A"), [rule("A", exchange(gone="A"))]),  # one fix is no "all"
        (marked("A", "B"), [rule("A", exchange(gone="A")), rule("B")]),  # one has none
        (marked("A", "B"), [rule("A", exchange(gone="A")), rule("B", Repair("no", "no", lambda call: call))]),
        (marked(), []),
    ],
)
def test_no_apply_all(call: ScanCall, rules: list[Rule]) -> None:
    assert together(call, *rules) is None


def test_no_apply_all_where_the_two_undo_each_other() -> None:
    def only(keep: str) -> Repair:
        def apply(call: ScanCall) -> ScanCall:
            other = "B" if keep == "A" else "A"
            # Each takes the other's mark away too, unless it is gone already: then it brings its own back.
            return replace(call, axes={MARKS: keep if other not in marks(call) else ""})

        return Repair("marks", "mend", apply)

    assert together(marked("A", "B"), rule("A", only("A")), rule("B", only("B"))) is None


def test_apply_all_on_real_rules() -> None:
    call = ScanCall(lambda s, x: ((s[0] + x, s[1] + x), None), (jnp.int32(0), jnp.bfloat16(0)), XS)
    assert fix_all(call, CallBench(call)) is not None
    single = ScanCall(total, jnp.int32(0), XS)
    assert fix_all(single, CallBench(single)) is None


# --- one message per root cause -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("winner", "loser", "left"),
    [
        ("carry", "carry", ["A"]),
        ("", "carry", ["A"]),
        ("carry", "", ["A"]),
        ("", "", ["A"]),
        ("carry[0]", "carry[1]", ["A", "B"]),
    ],
)
def test_the_more_specific_rule_wins_at_the_same_leaf(winner: str, loser: str, left: list[str]) -> None:
    rules = [rule("A", beats=("B",), path=winner), rule("B", path=loser)]
    assert [v.code for v in check(marked("A", "B"), rules=rules).violations] == left


def test_it_wins_at_the_other_leaves_it_covers_too() -> None:
    rules = [rule("A", beats=("B",), path="carry", covers=("carry[1]",)), rule("B", path="carry[1]")]
    assert [v.code for v in check(marked("A", "B"), rules=rules).violations] == ["A"]


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.NOTE])
def test_less_than_an_error_hides_no_error(severity: Severity) -> None:
    rules = [rule("A", beats=("B",), severity=severity), rule("B", severity=Severity.ERROR)]
    assert sorted(v.code for v in check(marked("A", "B"), rules=rules).violations) == ["A", "B"]


def test_no_rule_beats_what_it_does_not_name() -> None:
    assert [v.code for v in check(marked("A", "B"), rules=[rule("A"), rule("B")]).violations] == ["A", "B"]


def test_a_rule_that_did_not_fire_beats_nothing() -> None:
    assert [v.code for v in check(marked("B"), rules=[rule("A", beats=("B",)), rule("B")]).violations] == ["B"]


def test_worst_first() -> None:
    severities = {"A": Severity.NOTE, "B": Severity.WARNING, "C": Severity.ERROR}
    rules = [rule(code, severity=severity) for code, severity in severities.items()]
    assert check(marked("A", "B", "C"), rules=rules).codes == ("C", "B", "A")


@pytest.mark.parametrize("stage", [Stage.LIMIT, Stage.INPUT, Stage.TRACE])
def test_an_error_ends_the_check_at_its_stage(stage: Stage) -> None:
    seen: list[str] = []
    stages = [Stage.LIMIT, Stage.INPUT, Stage.TRACE, Stage.RUN]
    rules = [rule(s.name, stage=s, seen=seen) for s in stages]
    rules += [rule("A", stage=stage, severity=Severity.ERROR), rule("SAME", stage=stage, seen=seen)]
    diagnosis = diagnose(marked("A"), rules)
    assert diagnosis.reached is stage
    assert seen == [s.name for s in stages if s < stage] + [stage.name, "SAME"]


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.NOTE])
def test_what_jax_takes_does_not_end_it(severity: Severity) -> None:
    seen: list[str] = []
    rules = [rule("A", stage=Stage.INPUT, severity=severity), rule("RUN", stage=Stage.RUN, seen=seen)]
    assert diagnose(marked("A"), rules).reached is Stage.DONE
    assert seen == ["RUN"]


def test_a_fault_of_the_inputs_brings_no_fault_of_the_trace_after_it() -> None:
    # The step grows its carry, and xs has no leading axis: the first is only seen once the second is mended.
    call = ScanCall(lambda c, x: (jnp.append(c, x), x), jnp.zeros(2), 5.0)
    report = check(call)
    assert [v.code for v in report.broken] == ["S106"]
    assert [fix.remaining for v in report.broken for fix in v.fixes] == [("S103",)]


# --- outcomes -------------------------------------------------------------------------------------------------------


def test_a_clean_call() -> None:
    report = check(ScanCall(lambda c, x: (c + x, c + x), 0.0, XS))
    assert (report.outcome, report.violations, report.error) == (Outcome.OK, (), None)


def test_notes_alone_are_ok() -> None:
    report = check(marked("A"), rules=[rule("A", severity=Severity.NOTE)])
    assert report.outcome is Outcome.OK
    assert report.codes == ("A",)
    assert report.broken == ()


def test_what_no_rule_knows_is_shown_raw_at_the_step() -> None:
    def step(carry: Any, x: Any) -> Any:
        raise KeyError("rate")

    field = Field("scan_step", "step")
    report = check(ScanCall(step, 0.0, XS, places=Places({"step": field})))
    assert report.outcome is Outcome.ERROR
    assert report.violations == ()
    assert report.error is not None
    assert (report.error.type, report.error.message, report.error.place) == ("KeyError", "'rate'", field)


def test_jax_s_own_exception_is_raw_too_without_its_hints() -> None:
    report = check(ScanCall(lambda c, x: (c + jnp.ones(2) @ jnp.ones(3), x), 0.0, XS))
    assert report.outcome is Outcome.ERROR
    assert report.error is not None
    assert report.error.type == "TypeError"
    assert "Traceback" not in report.error.message
    assert "JAX_TRACEBACK_FILTERING" not in report.error.message


def test_an_exception_while_it_runs_is_raw() -> None:
    def fail(x: Any) -> Any:
        raise RuntimeError("no such sensor")

    def step(carry: Any, x: Any) -> Any:
        return carry + jax.pure_callback(fail, jax.ShapeDtypeStruct((), jnp.float32), x), None

    report = check(ScanCall(step, 0.0, XS))
    assert report.outcome is Outcome.ERROR
    assert report.error is not None
    assert "no such sensor" in report.error.message


def test_a_raw_error_beside_a_warning_stays_an_error() -> None:
    call = replace(marked("A"), step=lambda c, x: 1 / 0)
    report = check(call, rules=[rule("A", stage=Stage.INPUT)])
    assert report.outcome is Outcome.ERROR
    assert report.codes == ("A",)


def test_a_rule_s_error_explains_what_jax_raised() -> None:
    report = check(replace(marked("A"), step=lambda c, x: 1 / 0), rules=[rule("A", severity=Severity.ERROR)])
    assert report.outcome is Outcome.VIOLATIONS
    assert report.error is None


def test_over_a_limit_nothing_is_tried() -> None:
    tried: list[Any] = []

    def step(carry: Any, x: Any) -> Any:
        tried.append(x)
        return carry, x

    limit = rule("A", stage=Stage.LIMIT, severity=Severity.LIMIT)
    report = check(replace(marked("A"), step=step), rules=[limit, rule("B")])
    assert report.outcome is Outcome.LIMIT
    assert tried == []


def test_silent_and_what_jax_said() -> None:
    quiet = check(marked("A"), rules=[rule("A")]).violations[0]
    assert (quiet.silent, quiet.jax_said) == (True, None)
    loud = check(ScanCall(lambda c, x: c, 0.0, XS)).violations[0]
    assert not loud.silent
    assert loud.jax_said is not None
    assert loud.jax_said.startswith("TypeError: ")
    said = replace(rule("A", silent=False), jax=Jax.RAISES)
    assert not check(marked("A"), rules=[said]).violations[0].silent


# --- proofs ---------------------------------------------------------------------------------------------------------


def test_a_proof_is_measured_before_and_after_the_first_fix() -> None:
    measure = Measure("marks are counted", lambda call: len(marks(call)))
    (violation,) = check(marked("A"), rules=[rule("A", exchange(gone="A"), measure=measure)]).violations
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after, violation.proof.expected) == (1.0, 0.0, 0.0)


def test_a_proof_without_a_fix_has_no_after() -> None:
    (violation,) = check(marked("A"), rules=[rule("A", measure=Measure("counted", lambda call: 1.0))]).violations
    assert violation.proof is not None
    assert violation.proof.after is None


def test_what_cannot_be_measured_is_no_proof() -> None:
    (violation,) = check(marked("A"), rules=[rule("A", measure=Measure("divided", lambda call: 1 / 0))]).violations
    assert violation.proof is None


# --- after the plot -------------------------------------------------------------------------------------------------


def test_late_rules_wait() -> None:
    seen: list[str] = []
    late = rule("A", exchange(gone="A"), Repair("no", "no", lambda call: call), stage=Stage.LATE, seen=seen)
    assert check(marked("A"), rules=[late]).outcome is Outcome.OK
    assert seen == []
    (violation,) = check_late(marked("A"), rules=[late, rule("B", seen=seen)])
    assert violation.code == "A"
    assert [fix.title for fix in violation.fixes] == ["mend"]  # verified by the late rule itself
    assert check_late(marked(), rules=[late]) == ()


# --- never ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        ScanCall(None, None, None),  # type: ignore[arg-type]
        ScanCall("step", "init", "xs", length="n", reverse="r", unroll="u"),  # type: ignore[arg-type]
        ScanCall(lambda: None, 0.0, XS),
        ScanCall(lambda a, b, c: (a, b), 0.0, XS),
        ScanCall(total, {"a": object()}, XS),
        ScanCall(total, lambda: 0, XS),
        ScanCall(total, {1, 2}, XS),
        ScanCall(total, [0.0, "x"], XS),
        ScanCall(total, 0.0, {"a": XS, "b": object()}),
        ScanCall(total, float("nan"), XS, length=float("nan")),
        ScanCall(lambda c, x: (_ for _ in ()).throw(SystemError("x")), 0.0, XS),
    ],
)
def test_a_check_never_raises_for_what_a_learner_did(call: ScanCall) -> None:
    report = check(call)
    assert report.outcome in (Outcome.VIOLATIONS, Outcome.ERROR)
    assert report.broken or report.error is not None
