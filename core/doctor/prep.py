"""From what somebody pasted to a script: prompts, fences, magics, notebooks, tabs, typographic quotes; with the way back.

The script keeps one line for each pasted line (what is no code becomes an empty line), so only columns move, and where
they do, each line knows by how much. A notebook is the exception: its cells are put one below the other, and places
are those of the script made of them.
"""

from __future__ import annotations

import ast
import enum
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from core.base.places import Place, Span
from core.base.text import fill

NOTE_PROMPTS = "Prompts were taken off; the output between them was left out."
NOTE_FENCES = "Only what stands between the fences was taken."
NOTE_MAGICS = "{count} lines for IPython alone were left out: {first}"
NOTE_NOTEBOOK = "{count} code cells of a notebook, one below the other."
NOTE_QUOTES = "Typographic quotes, dashes and spaces were made plain ones."
NOTE_TABS = "Tabs were made spaces."
NOTE_INDENT = "The common indentation was taken off."

#: What an editor that means well makes of plain characters.
PLAIN = {
    "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'", "\u201a": "'", "\u2032": "'",
    "\u2013": "-", "\u2014": "-", "\u2212": "-", "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u3000": " ",
    "\u00d7": "*", "\uff08": "(", "\uff09": ")", "\uff0c": ",", "\uff1a": ":",
}  # fmt: skip
#: Characters that nobody sees; they are taken out.
UNSEEN = "\ufeff\u200b\u200c\u200d\u2060\u00ad"

FENCE = re.compile(r"^(?P<pad>\s*)(?P<mark>```+|~~~+)\s*\{?\.?(?P<tag>[\w+-]*).*$")
CODE_TAGS = frozenset({"", "python", "py", "python3", "pycon", "ipython", "jax", "code-cell"})
PROMPT = re.compile(r"^\s*(?:>>>|\.\.\.)(?: |$)")
FIRST_PROMPT = re.compile(r"^\s*>>>(?: |$)")
IPYTHON_IN = re.compile(r"^In \[[\d* ]*\]: ?")
IPYTHON_MORE = re.compile(r"^ {2,}\.\.\.: ?")
IPYTHON_OUT = re.compile(r"^Out ?\[[\d* ]*\]: ?")
MAGIC = re.compile(r"^(?P<pad>\s*)(?P<mark>%%?|!|\?)(?P<name>[\w.]*)(?P<rest>.*)$")
ASK = re.compile(r"^\s*[\w.]+\?\??\s*$")
#: Line magics whose argument is a statement to be run.
TIMED = frozenset({"time", "timeit", "prun", "memit"})
ERROR_LINE = re.compile(r"^\s*(?:[\w.]+\.)?\w*(?:Error|Exception|Warning)\b")


class Kind(enum.StrEnum):
    """What was pasted."""

    SCRIPT = "script"
    NOTEBOOK = "notebook"
    ERROR = "error"
    TEXT = "text"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True)
class Prepared:
    """What was pasted, and the script in it.

    Attributes:
        text: as it was pasted.
        script: what is run.
        kind: what it is.
        shifts: by line of the script (the first has index 0), by how many characters the pasted line is longer in
            front; for a line whose tabs were replaced, the column of each of its characters.
        notes: what was done to it, for the reader.
        magics: lines for IPython alone, with their numbers.
    """

    text: str
    script: str
    kind: Kind
    shifts: tuple[int | tuple[int, ...], ...] = ()
    notes: tuple[str, ...] = ()
    magics: tuple[tuple[int, str], ...] = ()

    @property
    def lines(self) -> list[str]:
        """The lines that places are in: of what was pasted; of a notebook, of the script made of it."""
        if not self.shifts:
            return self.script.split("\n")
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def place(self, place: Place | None) -> Place | None:
        """A place of the script in what was pasted."""
        if not isinstance(place, Span):
            return place
        return Span(
            place.line, self._col(place.line, place.col), place.end_line, self._col(place.end_line, place.end_col)
        )

    def _col(self, line: int, col: int) -> int:
        shift = self.shifts[line - 1] if 0 < line <= len(self.shifts) else 0
        if isinstance(shift, int):
            return col + shift
        return shift[col] if col < len(shift) else (shift[-1] + 1 + col - len(shift) if shift else col)


@dataclass(slots=True)
class _Line:
    """A line on its way: its text, and how far its beginning moved."""

    text: str
    shift: int | tuple[int, ...] = 0

    def cut(self, count: int) -> None:
        """Take characters off the front."""
        self.text = self.text[count:]
        self.shift = self.shift + count if isinstance(self.shift, int) else self.shift[count:]

    def drop(self) -> None:
        """Leave it out."""
        self.text, self.shift = "", 0


def prepared(text: str) -> Prepared:
    """The script in a pasted text.

    Returns:
        always something: of a text that holds no code, `kind` says so, and `script` is that text.
    """
    notebook = _notebook(text)
    if notebook is not None:
        return notebook
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")
    plain = plain.removeprefix("\ufeff")
    if not plain.strip():
        return Prepared(text, "", Kind.EMPTY)
    lines = [_Line(line) for line in plain.split("\n")]
    notes = [note for step in (_fences, _prompts) if (note := step(lines))]
    tree = _parsed(lines)
    magics = _magics(lines) if tree is None else []
    if magics:
        notes.append(fill(NOTE_MAGICS, count=len(magics), first=magics[0][1]))
    if tree is None:
        notes += [note for step in (_dedent, _characters, _tabs) if not _parses(lines) and (note := step(lines))]
        tree = _parsed(lines)
    script = "\n".join(line.text for line in lines)
    kind = _of_script(tree) if tree is not None else _what(plain)
    return Prepared(text, script, kind, tuple(line.shift for line in lines), tuple(notes), tuple(magics))


def _parsed(lines: list[_Line]) -> ast.Module | None:
    try:
        return ast.parse("\n".join(line.text for line in lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _parses(lines: list[_Line]) -> bool:
    return _parsed(lines) is not None


def _of_script(tree: ast.Module) -> Kind:
    """What a text is that parses: it may be comments alone, or a word that somebody typed."""
    body = [s for s in tree.body if not isinstance(s, ast.Pass)]
    if not body:
        return Kind.EMPTY
    words = all(isinstance(s, ast.Expr) and isinstance(s.value, ast.Name | ast.Constant) for s in body)
    return Kind.TEXT if words else Kind.SCRIPT


def _what(text: str) -> Kind:
    """What a text is that does not parse: an error message, code with a mistake, or words."""
    lines = [line for line in text.split("\n") if line.strip()]
    if "Traceback (most recent call last)" in text or any(ERROR_LINE.match(line) for line in lines[:1] + lines[-1:]):
        return Kind.ERROR
    marks = re.compile(r"^\s*(?:import |from \w|def |class |@|for |while |if |return\b|with )|[=(\[{]")
    codelike = sum(1 for line in lines if marks.search(line))
    return Kind.SCRIPT if 2 * codelike >= len(lines) else Kind.TEXT


# --- steps ----------------------------------------------------------------------------------------------------------


def _fences(lines: list[_Line]) -> str:
    """Keep what stands in Markdown fences for Python; a text without a fence is left alone."""
    marks = [(i, m) for i, line in enumerate(lines) if (m := FENCE.match(line.text))]
    if not marks or (marks[0][0] and _python_before(lines, marks[0][0])):
        return ""
    inside: re.Match[str] | None = None
    for line in lines:
        mark = FENCE.match(line.text)
        if inside is None:
            inside = mark
            line.drop()
        elif mark is not None and mark["mark"].startswith(inside["mark"]) and not mark["tag"]:
            inside = None
            line.drop()
        elif inside["tag"].lower() not in CODE_TAGS:
            line.drop()
        else:
            pad = len(inside["pad"])
            line.cut(min(pad, len(line.text) - len(line.text.lstrip())))
    return NOTE_FENCES


def _python_before(lines: list[_Line], end: int) -> bool:
    """Whether a fence stands inside a string of a script (a docstring with Markdown in it)."""
    return _parses(lines) and any(line.text.strip() for line in lines[:end])


def _prompts(lines: list[_Line]) -> str:
    """Take off ``>>>`` and ``In [1]:``; what stands between them is output."""
    if any(FIRST_PROMPT.match(line.text) for line in lines):
        for line in lines:
            found = PROMPT.match(line.text)
            if found:
                line.cut(found.end())
            else:
                line.drop()
        return NOTE_PROMPTS
    if any(IPYTHON_IN.match(line.text) for line in lines):
        code = False
        for line in lines:
            found = IPYTHON_IN.match(line.text) or (IPYTHON_MORE.match(line.text) if code else None)
            if found:
                code = True
                line.cut(found.end())
            elif IPYTHON_OUT.match(line.text) or not line.text.strip():
                code = False
                line.drop()
            elif not code:
                line.drop()
        return NOTE_PROMPTS
    return ""


def _magics(lines: list[_Line]) -> list[tuple[int, str]]:
    """Of a text that does not parse, leave out lines that only IPython understands; of timed statements the statement stays."""
    out = []
    for number, line in enumerate(lines, 1):
        found = MAGIC.match(line.text)
        if not found and not ASK.match(line.text):
            continue
        before = line.text
        if found and found["mark"] == "%" and found["name"] in TIMED and found["rest"].strip():
            rest = re.sub(r"^(?:\s+-\w+(?:\s+\d+)?)*\s*", "", found["rest"])
            shift = len(before) - len(rest) - len(found["pad"])
            line.text = found["pad"] + rest
            line.shift = line.shift + shift if isinstance(line.shift, int) else line.shift
            continue
        if found and found["mark"] in ("%", "%%") and not found["name"]:
            continue  # a line that goes on with `% 3`
        pad = found["pad"] if found else ""
        line.text = f"{pad}pass" if pad else ""
        out.append((number, before.strip()))
    return out


def _dedent(lines: list[_Line]) -> str:
    """Take off an indentation that all lines have."""
    pads = [len(line.text) - len(line.text.lstrip()) for line in lines if line.text.strip()]
    common = min(pads, default=0)
    if not common:
        return ""
    for line in lines:
        if line.text.strip():
            line.cut(common)
    return NOTE_INDENT


def _characters(lines: list[_Line]) -> str:
    """Make typographic quotes, dashes and spaces plain, and take out what nobody sees."""
    changed = False
    for line in lines:
        unseen = [i for i, c in enumerate(line.text) if c in UNSEEN]
        if unseen:
            columns = _columns(line)
            kept = [i for i in range(len(line.text)) if i not in unseen]
            line.shift = tuple(columns[i] for i in kept)
            line.text = "".join(line.text[i] for i in kept)
            changed = True
        plain = "".join(PLAIN.get(c, c) for c in line.text)
        changed |= plain != line.text
        line.text = plain
    return NOTE_QUOTES if changed else ""


def _tabs(lines: list[_Line]) -> str:
    """Make tabs spaces: to stops of 8, as Python counts them, else of 4."""
    if not any("\t" in line.text for line in lines):
        return ""
    before = [line.text for line in lines]
    for stop in (8, 4):
        for line, text in zip(lines, before, strict=True):
            line.text = text.expandtabs(stop)
        if _parses(lines):
            break
    else:
        for line, text in zip(lines, before, strict=True):
            line.text = text
        return ""
    for line, text in zip(lines, before, strict=True):
        if "\t" in text:
            columns = _columns(_Line(text, line.shift))
            line.shift = tuple(columns[i] for i in _expanded(text, stop))
    return NOTE_TABS


def _columns(line: _Line) -> list[int]:
    """The pasted column of each character of a line."""
    if isinstance(line.shift, int):
        return [i + line.shift for i in range(len(line.text))]
    return list(line.shift)


def _expanded(text: str, stop: int) -> Iterator[int]:
    """For each character of the expanded line, the index of the one it came from."""
    width = 0
    for i, char in enumerate(text):
        count = stop - width % stop if char == "\t" else 1
        width += count
        yield from (i for _ in range(count))


# --- notebooks ------------------------------------------------------------------------------------------------------


def _notebook(text: str) -> Prepared | None:
    """The code cells of an .ipynb, one below the other, each under a line that names it; None for anything else."""
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return None
    try:
        data: Any = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    cells = data.get("cells") if isinstance(data, dict) else None
    if cells is None and isinstance(data, dict) and isinstance(data.get("worksheets"), list):
        sheets = (sheet.get("cells") for sheet in data["worksheets"] if isinstance(sheet, dict))
        cells = [cell for of_sheet in sheets if isinstance(of_sheet, list) for cell in of_sheet]
    if not isinstance(cells, list):
        return None
    parts: list[str] = []
    magics: list[tuple[int, str]] = []
    count = 0
    for cell in cells:
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))
        source = "".join(map(str, source)) if isinstance(source, list) else str(source)
        if source.startswith("%%") and not source.startswith(("%%time", "%%capture")):
            continue  # a cell in another language
        count += 1
        inner = [_Line(line) for line in source.replace("\r\n", "\n").split("\n")]
        first = sum(part.count("\n") + 1 for part in parts) + 1
        magics += [(first + number, line) for number, line in _magics(inner)]
        parts.append("\n".join([f"# cell {count}", *(line.text for line in inner)]))
    if not parts:
        return Prepared(text, "", Kind.EMPTY)
    notes = [fill(NOTE_NOTEBOOK, count=count)]
    if magics:
        notes.append(fill(NOTE_MAGICS, count=len(magics), first=magics[0][1]))
    return Prepared(text, "\n".join(parts), Kind.NOTEBOOK, (), tuple(notes), tuple(magics))
