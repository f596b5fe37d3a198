"""What a step of a lesson asks for, as a line of text, and whether a page is so.

A line is one of: ``field length == 0`` (with ==, !=, <, <=, >, >=), ``code S104``, ``no code S104``, ``fixed S104`` (it
was there, is gone, and nothing is broken), ``kept`` (ran, nothing broken), ``broken``, ``ran`` (there is an answer, whatever
it says), ``page lstm``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from core.base.outcome import Outcome, Report
from core.base.text import fill
from core.inputs.fields import Value

UNKNOWN_CHECK = "“{text}” is no check; one is: {known}"
KNOWN = "field NAME == VALUE, code CODE, no code CODE, fixed CODE, kept, broken, ran, page NAME"
NO_NUMBER = "“{value}” is no number, and {relation} compares numbers"

_RELATIONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_FIELD: Final = re.compile(r"field (?P<name>[a-z][a-z0-9_]*) (?P<relation>==|!=|<=|>=|<|>) ?(?P<value>.*)")
_CODE: Final = re.compile(r"(?P<kind>code|no code|fixed) (?P<name>[A-Z]\d{3})")
_PAGE: Final = re.compile(r"(?P<kind>page) (?P<name>[a-z]+)")
_PLAIN: Final = frozenset({"kept", "broken", "ran"})


@dataclass(frozen=True, slots=True)
class PageFacts:
    """What a page says of itself after a run.

    Attributes:
        page: its name.
        values: its inputs.
        codes: of everything that was found, in order.
        outcome: how the check ended; None where there is none yet, or it is of the inputs before.
        broken: whether what was found breaks something.
        seen: codes that this page has shown since the lesson came to it.
    """

    page: str
    values: Mapping[str, Value]
    codes: tuple[str, ...] = ()
    outcome: Outcome | None = None
    broken: bool = False
    seen: frozenset[str] = field(default=frozenset())

    @classmethod
    def of_report(
        cls, page: str, values: Mapping[str, Value], report: Report | None, seen: frozenset[str] = frozenset()
    ) -> PageFacts:
        """The facts that a page's report means; None is no answer for these inputs."""
        if report is None:
            return cls(page, dict(values), seen=seen)
        broken = bool(report.broken) or report.outcome is not Outcome.OK
        return cls(page, dict(values), report.codes, report.outcome, broken, seen | frozenset(report.codes))


@dataclass(frozen=True, slots=True)
class Check:
    """One condition. `kind` is the first word of its line; `name`, `relation` and `value` are what it asks about."""

    kind: str
    name: str = ""
    relation: str = ""
    value: str = ""

    def holds(self, facts: PageFacts) -> bool:
        """Whether the page is so. An unknown field is not."""
        match self.kind:
            case "field":
                return self.name in facts.values and _compare(facts.values[self.name], self.relation, self.value)
            case "page":
                return facts.page == self.name
            case "ran":
                return facts.outcome is not None
            case "kept":
                return facts.outcome is Outcome.OK and not facts.broken
            case "broken":
                return facts.broken
            case "code":
                return self.name in facts.codes
            case "no code":
                return facts.outcome is not None and self.name not in facts.codes
            case _:
                gone = self.name in facts.seen and self.name not in facts.codes
                return gone and facts.outcome is Outcome.OK and not facts.broken


def read_check(text: str) -> Check:
    """The check that a line means.

    Raises:
        ValueError: it is none; the message is a sentence for whoever wrote the lesson.
    """
    text = text.strip()
    if text in _PLAIN:
        return Check(text)
    if found := _CODE.fullmatch(text) or _PAGE.fullmatch(text):
        return Check(found["kind"], found["name"])
    if found := _FIELD.fullmatch(text):
        if found["relation"] not in ("==", "!=") and not _is_number(found["value"]):
            raise ValueError(fill(NO_NUMBER, value=found["value"], relation=found["relation"]))
        return Check("field", found["name"], found["relation"], found["value"])
    raise ValueError(fill(UNKNOWN_CHECK, text=text, known=fill(KNOWN)))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except (ValueError, OverflowError):
        return False
    return True


def _compare(have: Value, relation: str, want: str) -> bool:
    # Numbers that are typed as text count as numbers: 16777216.0 is 16777216.
    if _is_number(want) and (not isinstance(have, str) or _is_number(have)):
        return _RELATIONS[relation](float(have), float(want))
    same = str(have) == want
    return same if relation == "==" else relation == "!=" and not same
