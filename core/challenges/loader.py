"""Reviewed challenges read from their files (``data/NN-name.md``); what is wrong in one is said with file and line.

A file is a header between two lines ``---``, the story, one or two blocks of code, sections ``## Hint``, and ``## Why``:

    title, kind (predict, fix, spot), level (1, 2, 3)
    ask: shape of ys; value of final        what is to be predicted
    results: total, levels                  names whose values a mended script must get right
    swap: rain = jnp.array([2.0])           other data that it must be right for; once for each name
    options: P204, R401                     reasons to choose from, one of which is right
    see: S113                               a code of the catalogue, or a page's state: scan?T=3
    docs: jax.lax.scan; JAX: pytrees        titles of `core.catalogue.documents`

The code that is run, broken or wrong opens with ```` ```python program ````; a mended or a right one with ```` ```python other ````.
No answer is written down: it is found by running these.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from core.base.text import fill
from core.catalogue.documents import Document
from core.challenges.challenge import ASK, Ask, Challenge, Kind, Level, What, documents_named
from core.contract.rule import all_rules

DATA: Final = Path(__file__).parent / "data"

AT = "{file}, line {line}: {reason}"
NO_NUMBER = "the name must begin with the challenge's number, like 03-shapes.md"
TWICE = "there is another challenge {number}"
NO_HEADER = "the file must begin with a header between two lines of three dashes"
NO_COLON = "a line of the header is a name, a colon and a value"
UNKNOWN_NAME = "“{name}” is nothing that the header of a {kind} has; it has {known}"
MISSING = "the header has no {name}"
NO_KIND = "kind must be predict, fix or spot"
NO_LEVEL = "level must be 1, 2 or 3"
NO_ASK = "“{text}” asks nothing; write: shape of ys; dtype of carry[0]; value of final"
NO_SWAP = "a swap is one assignment to a name of the program"
NO_CODE = "there is no code {code}"
FEW_OPTIONS = "a reason is chosen from three options at least"
NO_DOCUMENT = "“{title}” is no page of documentation that core/catalogue/documents.py knows"
NO_SEE = "see is a code, or a page and its query, like scan?T=3"
NO_BLOCK = "a {kind} needs a block of code that opens with ```python {name}"
UNKNOWN_BLOCK = "such a block of code cannot stand here"
OPEN_FENCE = "a block of code is not closed"
NO_PYTHON = "this is no Python: {reason}"
NO_SUCH_NAME = "the code has no name “{name}”"
UNKNOWN_SECTION = "a section is ## Hint or ## Why"
NO_STORY, NO_HINT, NO_WHY = "there is no story", "there must be two hints or three", "there is no ## Why"

PROGRAM, OTHER = "program", "other"
_HINTS: Final = (2, 3)
_NAME: Final = re.compile(r"(?P<number>\d{1,3})-[a-z0-9-]+\.md")
_SEE: Final = re.compile(r"(?:scan|lstm|sequence|gradients)\?[\w=&.,%+\[\]():-]+")
_LEVEL: Final = re.compile(r"[123]")
_BY_KIND: Final = {
    Kind.PREDICT: ("ask",),
    Kind.FIX: ("results", "swap"),
    Kind.SPOT: ("options",),
}
_COMMON: Final = ("title", "kind", "level", "docs", "see")
_MUST: Final = ("title", "kind", "level", "docs", "ask", "results", "swap", "options")


class ChallengeError(ValueError):
    """A file that is no challenge; the message names the file, the line and what is wrong with it."""


@dataclass(slots=True)
class _Parts:
    """A file's body: the text of the story and of each section with its line, blocks of code and their lines by name."""

    sections: list[tuple[str, int, list[str]]] = field(default_factory=list)
    blocks: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)

    def texts(self, head: str) -> tuple[str, ...]:
        """The texts of all sections with a heading."""
        return tuple("\n".join(lines).strip() for name, _, lines in self.sections if name == head)


@cache
def reviewed() -> tuple[Challenge, ...]:
    """All reviewed challenges, by number.

    Raises:
        ChallengeError: one of the files is none.
    """
    found: dict[int, Challenge] = {}
    for path in sorted(DATA.glob("*.md")):
        one = read_challenge(path.read_text(encoding="utf-8-sig"), path.name)
        if one.number in found:
            raise ChallengeError(fill(AT, file=path.name, line=1, reason=fill(TWICE, number=one.number)))
        found[one.number] = one
    return tuple(found[number] for number in sorted(found))


def read_challenge(text: str, file: str) -> Challenge:
    """The challenge in a file's text; `file` is its name, which begins with its number.

    Raises:
        ChallengeError: it is none.
    """
    return _Reader(text, file).challenge()


class _Reader:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = text.splitlines()

    def fail(self, line: int, reason: str) -> ChallengeError:
        return ChallengeError(fill(AT, file=self.file, line=line, reason=reason))

    def challenge(self) -> Challenge:
        named = _NAME.fullmatch(self.file)
        if named is None:
            raise self.fail(1, fill(NO_NUMBER))
        header, end = self.header()
        kind = self.kind(*self.one(header, "kind", end))
        self.known(header, kind, end)
        level, at = self.one(header, "level", end)
        if not _LEVEL.fullmatch(level):
            raise self.fail(at, fill(NO_LEVEL))
        parts = self.parts(end)
        self.complete(parts, kind, end)
        program = parts.blocks[PROGRAM]
        names = frozenset[str]().union(*(self.names(parts, block) for block in parts.blocks))
        return Challenge(
            key=str(int(named["number"])),
            number=int(named["number"]),
            kind=kind,
            level=Level(int(level)),
            title=self.one(header, "title", end)[0],
            story=parts.texts("")[0],
            program=program,
            other=parts.blocks.get(OTHER, ""),
            asks=tuple(self.ask(text, line, names) for text, line in _listed(header.get("ask", []), ";")),
            results=tuple(self.known_name(*one, names) for one in _listed(header.get("results", []), ",")),
            swap="\n".join(self.swap(text, line, program) for text, line in header.get("swap", [])),
            options=self.options(header),
            hints=parts.texts("Hint"),
            why=parts.texts("Why")[0],
            see=self.see(header),
            documents=self.documents(header),
        )

    def header(self) -> tuple[dict[str, list[tuple[str, int]]], int]:
        """Values with their lines by name, and the number of the line that closes the header."""
        if not self.lines or self.lines[0] != "---" or "---" not in self.lines[1:]:
            raise self.fail(1, fill(NO_HEADER))
        end = self.lines.index("---", 1) + 1
        out: dict[str, list[tuple[str, int]]] = {}
        for number, line in enumerate(self.lines[1 : end - 1], 2):
            name, colon, value = line.partition(":")
            if not colon or not value.strip():
                raise self.fail(number, fill(NO_COLON))
            out.setdefault(name.strip(), []).append((value.strip(), number))
        return out, end

    def one(self, header: dict[str, list[tuple[str, int]]], name: str, end: int) -> tuple[str, int]:
        if name not in header:
            raise self.fail(end, fill(MISSING, name=name))
        return header[name][-1]

    def kind(self, text: str, line: int) -> Kind:
        try:
            return Kind(text)
        except ValueError:
            raise self.fail(line, fill(NO_KIND)) from None

    def known(self, header: dict[str, list[tuple[str, int]]], kind: Kind, end: int) -> None:
        """Every name is one that this kind has, and none is missing."""
        names = (*_COMMON, *_BY_KIND[kind])
        for name, said in header.items():
            if name not in names:
                raise self.fail(said[0][1], fill(UNKNOWN_NAME, name=name, kind=kind, known=", ".join(names)))
        for name in names:
            if name in _MUST and name not in header:
                raise self.fail(end, fill(MISSING, name=name))

    def parts(self, end: int) -> _Parts:
        parts, lines = _Parts(), list[str]()
        parts.sections.append(("", end, lines))
        block: list[str] | None = None
        name, opened = "", 0
        for number, line in enumerate(self.lines[end:], end + 1):
            if block is not None:
                if line.rstrip() != "```":
                    block.append(line)
                    continue
                parts.blocks[name] = "\n".join(block).rstrip("\n") + "\n"
                block = None
            elif line.startswith("```"):
                name = line.removeprefix("```python").strip()
                if name not in (PROGRAM, OTHER) or name in parts.blocks or not line.startswith("```python "):
                    raise self.fail(number, fill(UNKNOWN_BLOCK))
                block, opened = [], number
                parts.lines[name] = number
            elif line.startswith("## "):
                head, lines = line.removeprefix("## ").strip(), []
                if head not in ("Hint", "Why"):
                    raise self.fail(number, fill(UNKNOWN_SECTION))
                parts.sections.append((head, number, lines))
            else:
                lines.append(line)
        if block is not None:
            raise self.fail(opened, fill(OPEN_FENCE))
        return parts

    def complete(self, parts: _Parts, kind: Kind, end: int) -> None:
        """All that a challenge of this kind needs is there."""
        if not parts.texts("")[0]:
            raise self.fail(end, fill(NO_STORY))
        wanted = (PROGRAM,) if kind is Kind.PREDICT else (PROGRAM, OTHER)
        for name in wanted:
            if name not in parts.blocks:
                raise self.fail(end, fill(NO_BLOCK, kind=kind, name=name))
        if len(parts.blocks) > len(wanted):
            raise self.fail(end, fill(UNKNOWN_BLOCK))
        hints = [text for text in parts.texts("Hint") if text]
        if not _HINTS[0] <= len(hints) <= _HINTS[1] or len(hints) != len(parts.texts("Hint")):
            raise self.fail(len(self.lines), fill(NO_HINT))
        if len(parts.texts("Why")) != 1 or not parts.texts("Why")[0]:
            raise self.fail(len(self.lines), fill(NO_WHY))

    def names(self, parts: _Parts, block: str) -> frozenset[str]:
        """What a block of code assigns to, anywhere."""
        try:
            tree = ast.parse(parts.blocks[block])
        except SyntaxError as error:
            reason = fill(NO_PYTHON, reason=error.msg)
            raise self.fail(parts.lines[block] + (error.lineno or 1), reason) from None
        return frozenset(n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))

    def known_name(self, name: str, line: int, names: frozenset[str]) -> str:
        if name not in names:
            raise self.fail(line, fill(NO_SUCH_NAME, name=name))
        return name

    def ask(self, text: str, line: int, names: frozenset[str]) -> Ask:
        found = ASK.fullmatch(text)
        if found is None:
            raise self.fail(line, fill(NO_ASK, text=text))
        return Ask(What(found["what"]), self.known_name(found["name"], line, names), found["path"])

    def swap(self, text: str, line: int, program: str) -> str:
        try:
            new, old = ast.parse(text).body, ast.parse(program).body
        except SyntaxError:
            raise self.fail(line, fill(NO_SWAP)) from None
        names = [_assigned(node) for node in old]
        if len(new) != 1 or not _assigned(new[0]) or names.count(_assigned(new[0])) != 1:
            raise self.fail(line, fill(NO_SWAP))
        return text

    def options(self, header: dict[str, list[tuple[str, int]]]) -> tuple[str, ...]:
        codes = {rule.code for rule in all_rules()}
        listed = _listed(header.get("options", []), ",")
        for code, line in listed:
            if code not in codes:
                raise self.fail(line, fill(NO_CODE, code=code))
        options = tuple(dict.fromkeys(code for code, _ in listed))
        if listed and len(options) < 3:
            raise self.fail(listed[0][1], fill(FEW_OPTIONS))
        return options

    def documents(self, header: dict[str, list[tuple[str, int]]]) -> tuple[Document, ...]:
        out: list[Document] = []
        for title, line in _listed(header["docs"], ";"):
            try:
                out += documents_named([title])
            except KeyError:
                raise self.fail(line, fill(NO_DOCUMENT, title=title)) from None
        return tuple(out)

    def see(self, header: dict[str, list[tuple[str, int]]]) -> str:
        text, line = header.get("see", [("", 1)])[-1]
        if text and not _SEE.fullmatch(text) and text not in {rule.code for rule in all_rules()}:
            raise self.fail(line, fill(NO_SEE))
        return text


def _listed(said: list[tuple[str, int]], mark: str) -> list[tuple[str, int]]:
    return [(part.strip(), line) for text, line in said for part in text.split(mark) if part.strip()]


def _assigned(node: ast.stmt) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
    return target.id if isinstance(target, ast.Name) else ""
