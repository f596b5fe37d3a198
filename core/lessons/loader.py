"""Lessons read from their files (``data/NN-name.md``); what is wrong in one is said with file and line.

A file is a header between two lines ``---`` (``title``, ``page``, ``link``, ``minutes``, ``docs``), a text, and a ``##``
heading for each step. In a step, a line that begins with ``check:``, ``hint:``, ``link:``, ``ask:``, ``choice:`` or
``answer:`` is no text but says what its word means. In the Doctor, a block of code that opens with ```` ```python opening ````
(the script as the lesson, or a step, begins) or ```` ```python solution ```` (as a step leaves it) is the script itself,
and is not shown as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

from core.base.text import fill
from core.catalogue.documents import DOCUMENTS, Document
from core.contract.rule import all_rules
from core.doctor.link import CODE_URL, pack
from core.doctor.link import PAGE as DOCTOR
from core.inputs.fields import VERSION, VERSION_NAME
from core.lessons.checks import Check, read_check
from core.lessons.lesson import Lesson, LessonStep, Question, Setting
from core.lessons.pages import PAGES

DATA: Final = Path(__file__).parent / "data"

AT = "{file}, line {line}: {reason}"
NO_NUMBER = "the name must begin with the lesson's number, like 03-shapes.md"
TWICE = "there is another lesson {number}"
NO_HEADER = "the file must begin with a header between two lines of three dashes"
NO_COLON = "a line of the header is a name, a colon and a value"
UNKNOWN_NAME = "“{name}” is nothing that a header has; it has {known}"
MISSING = "the header has no {name}"
NOT_MINUTES = "minutes must be a whole number from 1 to 60"
NO_PAGE = "“{name}” is no page with controls; there are {known}"
NO_DOCUMENT = "“{name}” is no page of documentation that core/catalogue/documents.py knows"
NO_STEPS = "a lesson needs at least one step, a line that begins with ##"
NO_TASK = "a step must begin with a paragraph that says what to do"
NO_CHECK = "a step needs a line check: or ask:, else it is never done"
NO_ANSWER = "a step that asks needs choices, and an answer that is one of them"
NO_ASK = "a choice or an answer needs a line ask:"
NO_CODE = "there is no code {code}"
NO_FIELD = "the page has no field “{name}” when the step is set up"
REFUSED = "the page refuses this link: {sentence}"
WRONG_PLACE = "such a block of code cannot stand here"
OPEN_FENCE = "a block of code is not closed"

_HEADER: Final = ("title", "page", "link", "minutes", "docs")
_OPTIONAL: Final = frozenset({"link", "docs"})
_WORDS: Final = ("check", "hint", "link", "ask", "choice", "answer")
_WORD: Final = re.compile(rf"(?P<word>{'|'.join(_WORDS)}):(?P<text>.*)")
_FENCE: Final = re.compile(r"```(?P<info>.*)")
_NAME: Final = re.compile(r"(?P<number>\d{1,3})-[a-z0-9-]+\.md")
_MINUTES: Final = (1, 60)
_OPENING, _SOLUTION = "python opening", "python solution"


class LessonError(ValueError):
    """A file that is no lesson; the message names the file, the line and what is wrong with it."""


@dataclass(slots=True)
class _Part:
    """The intro or a step, as read: its lines of text, its words with their lines, its blocks of code."""

    title: str
    line: int
    text: list[str] = field(default_factory=list)
    words: list[tuple[str, str, int]] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    scripts: dict[str, tuple[str, int]] = field(default_factory=dict)

    def said(self, word: str) -> list[tuple[str, int]]:
        return [(text, line) for name, text, line in self.words if name == word]

    def last(self, word: str) -> str:
        said = self.said(word)
        return said[-1][0] if said else ""


@cache
def lessons() -> tuple[Lesson, ...]:
    """All lessons, by number.

    Raises:
        LessonError: one of the files is none.
    """
    found: dict[int, Lesson] = {}
    for path in sorted(DATA.glob("*.md")):
        lesson = read_lesson(path.read_text(encoding="utf-8"), path.name)
        if lesson.number in found:
            raise LessonError(fill(AT, file=path.name, line=1, reason=fill(TWICE, number=lesson.number)))
        found[lesson.number] = lesson
    return tuple(found[number] for number in sorted(found))


def lesson_of(number: int) -> Lesson | None:
    """The lesson with this number; None when there is none."""
    return next((lesson for lesson in lessons() if lesson.number == number), None)


def read_lesson(text: str, file: str) -> Lesson:
    """The lesson in a file's text; `file` is its name, which begins with its number.

    Raises:
        LessonError: it is none.
    """
    return _Reader(text, file).lesson()


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = text.splitlines()

    def fail(self, line: int, reason: str) -> LessonError:
        return LessonError(fill(AT, file=self.file, line=line, reason=reason))

    def lesson(self) -> Lesson:
        named = _NAME.fullmatch(self.file)
        if named is None:
            raise self.fail(1, fill(NO_NUMBER))
        header, end = self.header()
        intro, *parts = self.parts(end)
        if not parts:
            raise self.fail(end, fill(NO_STEPS))
        for _, _, line in intro.words[:1]:
            raise self.fail(line, fill(NO_STEPS))
        minutes, at = header["minutes"]
        if not minutes.isdecimal() or not _MINUTES[0] <= int(minutes) <= _MINUTES[1]:
            raise self.fail(at, fill(NOT_MINUTES))
        page, at = header["page"]
        if page not in PAGES:
            raise self.fail(at, fill(NO_PAGE, name=page, known=", ".join(PAGES)))
        link, at = header.get("link", ("", at))
        setting = self.scripted(intro.scripts, self.setting(link, page, at), _OPENING)
        steps = []
        for part in parts:
            steps.append(self.step(part, setting))
            setting = steps[-1].setting
        return Lesson(
            int(named["number"]),
            header["title"][0],
            int(minutes),
            "\n".join(intro.text).strip(),
            tuple(self.documents(*header.get("docs", ("", 1)))),
            tuple(steps),
            tuple(intro.code),
        )

    def header(self) -> tuple[dict[str, tuple[str, int]], int]:
        """Names with their values and lines, and the number of the line that closes the header."""
        if not self.lines or self.lines[0].strip() != "---" or "---" not in self.lines[1:]:
            raise self.fail(1, fill(NO_HEADER))
        end = self.lines.index("---", 1) + 1
        out: dict[str, tuple[str, int]] = {}
        for number, line in enumerate(self.lines[1 : end - 1], 2):
            name, colon, value = line.partition(":")
            if not colon:
                raise self.fail(number, fill(NO_COLON))
            if name.strip() not in _HEADER:
                raise self.fail(number, fill(UNKNOWN_NAME, name=name.strip(), known=", ".join(_HEADER)))
            out[name.strip()] = value.strip(), number
        for name in _HEADER:
            if name not in _OPTIONAL and not out.get(name, ("",))[0]:
                raise self.fail(end, fill(MISSING, name=name))
        return out, end

    def parts(self, end: int) -> Iterator[_Part]:
        part = _Part("", end)
        info, opened = "", 0
        block: list[str] | None = None
        for number, line in enumerate(self.lines[end:], end + 1):
            fence = _FENCE.fullmatch(line.rstrip())
            if block is not None:
                if fence is None:
                    block.append(line)
                    continue
                self.block(part, info, "\n".join(block) + "\n", opened)
                block = None
            elif fence is not None:
                info, block, opened = fence["info"].strip(), [], number
            elif line.startswith("## "):
                yield part
                part = _Part(line.removeprefix("## ").strip(), number)
            elif word := _WORD.fullmatch(line):
                part.words.append((word["word"], word["text"].strip(), number))
            else:
                part.text.append(line)
        if block is not None:
            raise self.fail(opened, fill(OPEN_FENCE))
        yield part

    def block(self, part: _Part, info: str, code: str, line: int) -> None:
        if info in (_OPENING, _SOLUTION):
            part.scripts[info] = code, line
            return
        part.text += [f"```{info}", *code.splitlines(), "```"]
        if info == "python":
            part.code.append(code)

    def step(self, part: _Part, opening: Setting) -> LessonStep:
        task, _, more = "\n".join(part.text).strip().partition("\n\n")
        if not task or task.startswith("```"):
            raise self.fail(part.line, fill(NO_TASK))
        links = part.said("link")
        setting = self.setting(*_on_page(links[-1], opening.page)) if links else opening
        own = {_OPENING: part.scripts[_OPENING]} if _OPENING in part.scripts else {}
        if setting.page != opening.page:  # the step begins on a page that nobody has set up
            opening = Setting(setting.page, {VERSION_NAME: VERSION})
        opening = self.scripted(own, opening, _OPENING)
        if own and not links:
            setting = opening
        setting = self.scripted({k: v for k, v in part.scripts.items() if k not in own}, setting, _SOLUTION)
        checks = tuple(self.check(text, line, setting) for text, line in part.said("check"))
        question = self.question(part)
        if not checks and question is None:
            raise self.fail(part.line, fill(NO_CHECK))
        return LessonStep(
            part.title,
            " ".join(task.split()),
            more.strip(),
            checks,
            question,
            part.last("hint"),
            opening,
            setting,
            tuple(part.code),
            part.line,
        )

    def question(self, part: _Part) -> Question | None:
        choices = tuple(text for text, _ in part.said("choice"))
        answer, text = part.last("answer"), part.last("ask")
        if not text:
            for word in ("choice", "answer"):
                for _, line in part.said(word)[:1]:
                    raise self.fail(line, fill(NO_ASK))
            return None
        if answer not in choices:
            raise self.fail(part.said("ask")[-1][1], fill(NO_ANSWER))
        return Question(text, choices, answer)

    def check(self, text: str, line: int, setting: Setting) -> Check:
        try:
            check = read_check(text)
        except ValueError as reason:
            raise self.fail(line, str(reason)) from None
        if check.kind == "page" and check.name not in PAGES:
            raise self.fail(line, fill(NO_PAGE, name=check.name, known=", ".join(PAGES)))
        if check.kind in ("code", "no code", "fixed") and check.name not in {rule.code for rule in all_rules()}:
            raise self.fail(line, fill(NO_CODE, code=check.name))
        if check.kind == "field" and check.name not in PAGES[setting.page].read(setting.params).values:
            raise self.fail(line, fill(NO_FIELD, name=check.name))
        return check

    def setting(self, link: str, page: str, line: int) -> Setting:
        """What a link means: ``T=3&rev=1`` on the same page, ``lstm?batch=2`` on another one."""
        name, mark, query = link.partition("?")
        page, query = (name, query) if mark else (page, link)
        if page not in PAGES:
            raise self.fail(line, fill(NO_PAGE, name=page, known=", ".join(PAGES)))
        params = {VERSION_NAME: VERSION, **dict(parse_qsl(query, keep_blank_values=True))}
        for sentence in PAGES[page].read(params).refused[:1]:
            raise self.fail(line, fill(REFUSED, sentence=sentence))
        return Setting(page, params)

    def scripted(self, scripts: Mapping[str, tuple[str, int]], setting: Setting, info: str) -> Setting:
        """The same with the script that is given for it, for the Doctor; `scripts` by kind, each with its line."""
        for name, (script, line) in scripts.items():
            if name != info or setting.page != DOCTOR:
                raise self.fail(line, fill(WRONG_PLACE))
            setting = Setting(DOCTOR, {VERSION_NAME: VERSION, CODE_URL: pack(script)}, script)
        if setting.page == DOCTOR and not setting.script:
            script = str(PAGES[DOCTOR].read(setting.params).values["text"])
            setting = Setting(DOCTOR, setting.params, script)
        return setting

    def documents(self, text: str, line: int) -> Iterator[Document]:
        known: Mapping[str, Document] = {document.title: document for document in DOCUMENTS}
        for name in filter(None, (part.strip() for part in text.split(";"))):
            if name not in known:
                raise self.fail(line, fill(NO_DOCUMENT, name=name))
            yield known[name]


def _on_page(link: tuple[str, int], page: str) -> tuple[str, str, int]:
    """A link with its line, and the page that it is on where it names none."""
    return link[0], page, link[1]
