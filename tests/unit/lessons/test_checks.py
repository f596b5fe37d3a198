"""What a check asks, and when it holds."""

from __future__ import annotations

import pytest

from core.base.outcome import Outcome, Report
from core.lessons.checks import PageFacts, read_check

VALUES = {"length": 0, "reverse": True, "rate": 0.25, "init": "16777216.0", "step": "running_sum", "numbers": ""}
GREEN = PageFacts("scan", VALUES, ("S111",), Outcome.OK)
RED = PageFacts("scan", VALUES, ("S104", "S113"), Outcome.VIOLATIONS, broken=True, seen=frozenset({"S104", "S113"}))
MENDED = PageFacts("scan", VALUES, ("S113",), Outcome.OK, seen=frozenset({"S104", "S113"}))
UNKNOWN = PageFacts("scan", VALUES, seen=frozenset({"S104"}))


@pytest.mark.parametrize(
    ("line", "facts", "holds"),
    [
        ("field length == 0", GREEN, True),
        ("field length != 0", GREEN, False),
        ("field length >= 1", GREEN, False),
        ("field reverse == 1", GREEN, True),
        ("field reverse == 0", GREEN, False),
        ("field rate <= 0.25", GREEN, True),
        ("field rate < 0.25", GREEN, False),
        ("field rate > 0.2", GREEN, True),
        ("field init == 16777216", GREEN, True),
        ("field step == running_sum", GREEN, True),
        ("field step != running_sum", GREEN, False),
        ("field numbers == ", GREEN, True),
        ("field numbers > 1", GREEN, False),
        ("field nothing == 0", GREEN, False),
        ("kept", GREEN, True),
        ("kept", RED, False),
        ("kept", UNKNOWN, False),
        ("broken", RED, True),
        ("broken", GREEN, False),
        ("broken", UNKNOWN, False),
        ("ran", RED, True),
        ("ran", UNKNOWN, False),
        ("code S104", RED, True),
        ("code S104", GREEN, False),
        ("no code S104", GREEN, True),
        ("no code S104", RED, False),
        ("no code S104", UNKNOWN, False),
        ("fixed S104", MENDED, True),
        ("fixed S104", GREEN, False),
        ("fixed S104", RED, False),
        ("fixed S104", UNKNOWN, False),
        ("page scan", GREEN, True),
        ("page lstm", GREEN, False),
    ],
)
def test_a_check_holds(line: str, facts: PageFacts, holds: bool):
    assert read_check(line).holds(facts) is holds


@pytest.mark.parametrize(
    "line", ["", "kept it", "field length", "field length = 0", "code 104", "code s104", "fields x == 1"]
)
def test_what_is_no_check_is_refused_with_what_is(line: str):
    with pytest.raises(ValueError, match="is no check"):
        read_check(line)


def test_only_numbers_are_greater():
    with pytest.raises(ValueError, match="no number"):
        read_check("field step > running_sum")


def test_a_limit_is_broken_and_no_report_is_nothing():
    limit = PageFacts.of_report("scan", VALUES, Report(Outcome.LIMIT))
    assert limit.broken
    nothing = PageFacts.of_report("scan", VALUES, None, frozenset({"S104"}))
    assert nothing.outcome is None
    assert nothing.seen == {"S104"}
