"""What the tests of the scan rules share: the real `lax.scan` as oracle, one rule's violation, a verified fix."""

from __future__ import annotations

from typing import Any

import jax
import pytest
from jax import lax

from core.base.outcome import Outcome, Report
from core.base.violation import Violation
from core.contract.engine import check, diagnose
from core.contract.subject import ScanCall


def run(call: ScanCall) -> Any:
    """What the real `lax.scan` returns, computed; whatever it raises."""
    kwargs = {"length": call.length, "reverse": call.reverse, "unroll": call.unroll}
    return jax.block_until_ready(lax.scan(call.body, call.init, call.xs, **kwargs))


def only(call: ScanCall, code: str) -> Violation:
    """The one violation of a call that JAX raises at: nothing else is broken."""
    with pytest.raises(Exception):  # which one is JAX's affair
        run(call)
    report = check(call)
    assert report.outcome is Outcome.VIOLATIONS
    assert [v.code for v in report.broken] == [code], [(v.code, v.message) for v in report.violations]
    violation = report.broken[0]
    assert not violation.silent
    assert violation.jax_said
    return violation


def several(call: ScanCall, code: str) -> list[Violation]:
    """All violations of a call that JAX raises at, when they are all of one rule; in the order of their paths."""
    with pytest.raises(Exception):
        run(call)
    report = check(call)
    assert {v.code for v in report.broken} == {code}
    return sorted(report.broken, key=lambda v: v.path)


def clean(call: ScanCall) -> Report:
    """The report of a call that JAX runs and that keeps the contract."""
    run(call)
    report = check(call)
    assert report.outcome is Outcome.OK, [(v.code, v.message) for v in report.violations]
    return report


def mended(call: ScanCall, code: str, kind: str, path: str | None = None) -> ScanCall:
    """The call after the rule's repair of this kind, which must be among its verified fixes."""
    titles = {fix.title for v in check(call).violations if v.code == code for fix in v.fixes}
    repairs = [
        repair
        for found in diagnose(call).found
        if found.rule.code == code and path in (None, found.finding.path)
        for repair in found.finding.repairs
        if repair.kind == kind and repair.title in titles
    ]
    assert repairs, f"no verified {kind} among {titles}"
    subject = repairs[0].apply(call)
    assert isinstance(subject, ScanCall)
    return subject


def kinds(call: ScanCall, code: str) -> list[str]:
    """Kinds of the verified fixes of a rule, in order."""
    titles = [fix.title for v in check(call).violations if v.code == code for fix in v.fixes]
    by_title = {
        repair.title: repair.kind
        for found in diagnose(call).found
        if found.rule.code == code
        for repair in found.finding.repairs
    }
    return [by_title[title] for title in titles]
