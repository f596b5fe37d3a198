"""A report cannot be made without what every report must carry."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.report.model import (
    Criterion,
    IncompleteReportError,
    Latency,
    Name,
    Negative,
    Status,
    Verdict,
    Versions,
)
from tests.unit.report.made import report, with_status


def test_a_report_needs_a_negative_test():
    with pytest.raises(IncompleteReportError, match="negative"):
        replace(report(), negatives=())


def test_a_report_needs_its_versions():
    with pytest.raises(IncompleteReportError, match="flax"):
        Versions("3.12.1", "0.11.2", "0.11.2", "", "2.5.0")
    with pytest.raises(IncompleteReportError, match="versions"):
        replace(report(), versions=None)


@pytest.mark.parametrize("change", ["missing", "twice", "out of order"])
def test_each_criterion_stands_there_once_and_in_order(change):
    criteria = list(report().criteria)
    if change == "missing":
        del criteria[3]
    elif change == "twice":
        criteria[3] = criteria[2]
    else:
        criteria.reverse()
    with pytest.raises(IncompleteReportError, match="criterion"):
        replace(report(), criteria=tuple(criteria))


def test_a_report_says_what_it_does_not_prove():
    with pytest.raises(IncompleteReportError, match="prove"):
        replace(report(), not_proved=())


def test_a_latency_is_there_or_the_reason_why_not():
    with pytest.raises(IncompleteReportError, match="latency"):
        replace(report(), latency=None)
    with pytest.raises(IncompleteReportError, match="latency"):
        replace(report(), latency_missing="too slow")
    replace(report(), latency=None, latency_missing="too slow")


def test_a_latency_is_a_distribution_of_thirty_runs_at_least():
    with pytest.raises(IncompleteReportError, match="30"):
        Latency("a scan", 29, 3, 1.0, 2.0, 3.0, 4.0, 5.0)
    with pytest.raises(IncompleteReportError, match="none"):
        Latency("a scan", 30, 3, 1.0, 0.5, 3.0, 4.0, 5.0)  # a 90th percentile below the median


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        ({}, Verdict.PASS),
        ({Name.RANGE: Status.NOT_APPLICABLE}, Verdict.PASS),
        ({Name.JIT: Status.NOT_RUN}, Verdict.INCOMPLETE),
        ({Name.JIT: Status.NOT_RUN, Name.KEYS: Status.FAIL}, Verdict.FAIL),
    ],
)
def test_the_verdict_is_the_worst_of_the_criteria(statuses, verdict):
    assert with_status(statuses).verdict is verdict


def test_a_negative_test_that_raised_something_else_is_no_pass():
    assert Negative("x", "TypeError", "TypeError").ok
    assert not Negative("x", "TypeError", "ValueError").ok
    assert not Negative("x", "TypeError", "").ok


def test_a_criterion_is_found_by_its_name():
    found = report()[Name.KEYS]
    assert isinstance(found, Criterion)
    assert found.name is Name.KEYS
