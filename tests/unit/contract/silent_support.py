"""What the tests of the silent rules share: JAX runs the call, one rule speaks, a proof moves before the fix only."""

from __future__ import annotations

from typing import Any

from core.base.outcome import Outcome
from core.base.violation import Severity, Violation
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import run


def warned(call: ScanCall, code: str) -> Violation:
    """The one thing that is broken in a call that JAX runs without a word: a warning with a proof that moves."""
    run(call)
    report = check(call)
    assert report.error is None
    assert [v.code for v in report.broken] == [code], [(v.code, v.message) for v in report.violations]
    assert report.outcome is Outcome.VIOLATIONS
    violation = report.broken[0]
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert violation.jax_said is None
    assert violation.proof is not None
    assert violation.proof.before != violation.proof.expected
    if violation.fixes:
        assert violation.proof.after == violation.proof.expected
    return violation


def noted(call: ScanCall, code: str) -> Violation:
    """The one note of this rule on a call that JAX runs and in which nothing is broken."""
    run(call)
    report = check(call)
    assert report.outcome is Outcome.OK, [(v.code, v.message) for v in report.violations]
    found = [v for v in report.notes if v.code == code]
    assert len(found) == 1, [(v.code, v.message) for v in report.violations]
    return found[0]


def quiet(call: ScanCall, code: str) -> None:
    """JAX runs the call, nothing is broken, and this rule has not even a note."""
    run(call)
    report = check(call)
    assert report.outcome is Outcome.OK, [(v.code, v.message) for v in report.violations]
    assert code not in report.codes, [v.message for v in report.violations if v.code == code]


def add(carry: Any, x: Any) -> tuple[Any, Any]:
    """A running sum; y is no leaf of the carry."""
    return carry + x, (carry + x) * 1
