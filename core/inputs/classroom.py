"""What a teacher's link says around a page's inputs: hidden or locked controls, presentation mode, a step of a lesson.

These settings belong to the class, not to a page: they stay while somebody walks from page to page, and stand in every
address, so that a reload keeps them. Like everything in a link they are a stranger's: bounded, and refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.class_panels import KEPT
from core.inputs.fields import REFUSED, shorten

HIDE, LOCK, PRESENT, LESSON = "hide", "lock", "present", "lesson"
#: No page may use these names for a field of its own.
NAMES: Final = (HIDE, LOCK, PRESENT, LESSON)

LABELS: Final[Mapping[str, str]] = {
    HIDE: "Hidden controls",
    LOCK: "Locked controls",
    PRESENT: "Presentation mode",
    LESSON: "The lesson",
}
NO_LESSON = "it must be a lesson’s number, or lesson and step, such as 3.2"
UNKNOWN_LESSON = "there is no such lesson, or it has no such step"
NO_KEY = "“{key}” is no key of a control, such as {example}"
#: A key of each page, to show what one looks like; where none is known, that of the first page.
EXAMPLES: Final[Mapping[str, str]] = {
    "scan": "scan_length",
    "lstm": "lstm_batch",
    "sequence": "sequence_length",
    "gradients": "gradients_length",
    "doctor": "doctor_gallery",
    "lessons": "lessons_steps",
    "challenges": "challenges_hints",
    "catalogue": "catalogue_search",
}
TOO_MANY = "it names {count} controls, more than {limit}"
NO_FLAG = "it must be 0 or 1"
#: Controls that one link may name, each for hiding and locking.
MOST: Final = LIMITS["class_keys"].value
_KEY: Final = re.compile(r"[a-z]+_[a-z0-9_]{1,38}")
_LESSON: Final = re.compile(r"(?P<number>[1-9]\d{0,2})(?:\.(?P<step>[1-9]\d{0,1}))?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Classroom:
    """What is set for the class.

    Attributes:
        hide, lock: stable keys of controls (``scan_length``), in the order of the link.
        present: presentation mode.
        lesson: number of the lesson and of the step that is open, both counting from 1; None where none is.
        refused: a sentence for each thing that the link could not have.
    """

    hide: tuple[str, ...] = ()
    lock: tuple[str, ...] = ()
    present: bool = False
    lesson: tuple[int, int] | None = None
    refused: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def of_link(cls, params: Mapping[str, str], page: str = "scan") -> Classroom:
        """What the address of a page says. Never raises: what cannot be had is refused by name."""
        refused: list[str] = []
        hide, lock = (_keys(params.get(name, ""), name, page, refused) for name in (HIDE, LOCK))
        flag = params.get(PRESENT, "0")
        if flag not in {"0", "1"}:
            refused.append(_refusal(PRESENT, flag, fill(NO_FLAG)))
        lesson = _lesson(params.get(LESSON, ""), refused)
        return cls(hide, lock, flag == "1", lesson, tuple(refused))

    @property
    def params(self) -> dict[str, str]:
        """The same as an address says it; empty where nothing is set."""
        out = {HIDE: ",".join(self.hide), LOCK: ",".join(self.lock), PRESENT: "1" if self.present else ""}
        if self.lesson is not None:
            number, step = self.lesson
            out[LESSON] = str(number) if step == 1 else f"{number}.{step}"
        return {name: text for name, text in out.items() if text}

    def locks(self, keys: Iterable[str]) -> frozenset[str]:
        """Those of `keys` that are locked."""
        return frozenset(keys) & frozenset(self.lock)


def no_such_lesson(lesson: tuple[int, int]) -> str:
    """The sentence that refuses a lesson, or a step of it, that is not there."""
    return _refusal(LESSON, f"{lesson[0]}.{lesson[1]}".removesuffix(".1"), fill(UNKNOWN_LESSON))


def _lesson(text: str, refused: list[str]) -> tuple[int, int] | None:
    if not text:
        return None
    found = _LESSON.fullmatch(text)
    if found is None:
        refused.append(_refusal(LESSON, text, fill(NO_LESSON)))
        return None
    return int(found["number"]), int(found["step"] or 1)


def _keys(text: str, name: str, page: str, refused: list[str]) -> tuple[str, ...]:
    given = list(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(given) > MOST:
        refused.append(_refusal(name, text, fill(TOO_MANY, count=len(given), limit=MOST)))
        given = given[:MOST]
    bad = [key for key in given if not _KEY.fullmatch(key) or key.startswith(KEPT)]
    example = EXAMPLES.get(page, EXAMPLES["scan"])
    refused += [_refusal(name, text, fill(NO_KEY, key=shorten(key), example=example)) for key in bad[:1]]
    return tuple(key for key in given if key not in bad)


def _refusal(name: str, text: str, reason: str) -> str:
    return fill(REFUSED, label=fill(LABELS[name]), value=shorten(text), reason=reason)
