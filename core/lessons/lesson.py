"""A lesson: a title, a page with live controls, and steps that are done when the page is as they ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from core.catalogue.documents import Document
from core.lessons.checks import Check, PageFacts


@dataclass(frozen=True, slots=True)
class Setting:
    """A page in a state: what its address says. `script`: in the Doctor, the script that it holds; "" elsewhere."""

    page: str
    params: Mapping[str, str]
    script: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What a step asks. `choices` in the order of the file; `answer` is the right one."""

    text: str
    choices: tuple[str, ...]
    answer: str


@dataclass(frozen=True, slots=True)
class LessonStep:
    """One step.

    Attributes:
        title: its heading.
        task: the first paragraph (Markdown): what to do, short enough for the rail.
        more: what stands behind it, "" for nothing.
        checks: all must hold.
        question: must be answered, too; None where nothing is asked.
        hint: "" for none.
        opening: the page as the step finds it: the setting of the step before.
        setting: the page as the step leaves it ("Set it up").
        code: blocks of Python in its text, with their doctests: CI runs them.
        line: of its heading in the file, counting from 1.
    """

    title: str
    task: str
    more: str
    checks: tuple[Check, ...]
    question: Question | None
    hint: str
    opening: Setting
    setting: Setting
    code: tuple[str, ...]
    line: int

    def done(self, facts: PageFacts | None, answer: str | None = None) -> bool:
        """Whether a page, and what was answered, are what the step asks for."""
        if self.question is not None and answer != self.question.answer:
            return False
        if not self.checks:
            return self.question is not None
        return facts is not None and facts.page == self.setting.page and all(one.holds(facts) for one in self.checks)


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson.

    Attributes:
        number: from the file's name; its address is ``lesson=<number>``.
        title, minutes: of its header.
        intro: the text before the first step (Markdown).
        documents: where the official documentation speaks of it.
        steps: at least one.
        code: blocks of Python in the intro.
    """

    number: int
    title: str
    minutes: int
    intro: str
    documents: tuple[Document, ...]
    steps: tuple[LessonStep, ...]
    code: tuple[str, ...] = ()

    def goes_on(self, at: int, facts: PageFacts | None, answer: str | None) -> bool:
        """Whether a page is as step `at` (counting from 1) begins, because the step before is done on it right now.

        Not so when step `at` begins anew (its script is its own), or would be done there before anything was done.
        """
        if facts is None or at < 2 or not self.steps[at - 2].done(facts, answer):
            return False
        step = self.steps[at - 1]
        if step.opening != self.steps[at - 2].setting:
            return False
        at_first = replace(facts, seen=frozenset(facts.codes))
        return not step.checks or not all(check.holds(at_first) for check in step.checks)
