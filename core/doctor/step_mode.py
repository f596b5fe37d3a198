"""A step, init and xs as one script, and the way back: what a person typed into which field.

The fields stand in the scan's call itself, each between two comments that mark it. So an edit that a fix makes to an
argument is an edit of its field, and a whole fixed script can be taken apart again. Nothing is parsed here: what is
typed is a stranger's, and is read in the worker alone.
"""

from __future__ import annotations

import io
import re
import tokenize
from dataclasses import dataclass

from core.base.places import Field, Place, Span

#: What a step may name without importing it.
PRELUDE = (
    "import jax",
    "import jax.numpy as jnp",
    "import numpy as np",
    "from flax import nnx",
    "from jax import lax",
)
MARK_STEP, MARK_INIT, MARK_XS = "# the step", "    # init", "    # xs"
OPENING, CLOSING = "final, ys = jax.lax.scan(", ")"
_INDENT = "    "
_DEFINED = re.compile(r"^(?:async\s+)?def\s+([^\W\d]\w*)|^([^\W\d]\w*)\s*=\s*(?:lambda\b|\w*partial\b)", re.MULTILINE)
#: A call of a scan at the left margin: the step's code would then scan by itself, before the fields are looked at.
_SCANS = re.compile(r"^(?![ \t#@]|def\b|class\b|async\b).*\bscan\s*\(", re.MULTILINE)
_OPEN, _CLOSE = "([{", ")]}"
#: What the scan is over when the field is empty.
_NOTHING = "None"


@dataclass(frozen=True, slots=True)
class StepFields:
    """What was typed.

    Attributes:
        step: code that defines a step; the last function in it is the one that is scanned.
        init: an expression.
        xs: an expression; further arguments of the scan may follow it (``None, length=5``). Empty is None.
    """

    step: str
    init: str
    xs: str


@dataclass(frozen=True, slots=True)
class Part:
    """Where a field stands in the script: its first line, how many lines, how far its first line is moved right."""

    name: str
    line: int
    count: int
    shift: int


@dataclass(frozen=True, slots=True)
class Composed:
    """The script, and where its parts are."""

    text: str
    parts: tuple[Part, ...]

    def part(self, line: int) -> Part | None:
        """The field that a line belongs to; None for a line of ours."""
        return next((p for p in self.parts if p.line <= line < p.line + p.count), None)

    def span(self, span: Span) -> tuple[str, Span] | None:
        """The field that a span is in, and the span in its text; None for a place of ours, such as the call itself."""
        part, end = self.part(span.line), self.part(span.end_line)
        if part is None:
            return None
        line = span.line - part.line + 1
        col = max(0, span.col - part.shift) if line == 1 else span.col
        if end is not part:  # it runs over the field's end: what is in the field is shown
            return part.name, Span(line, col, line, col + 1)
        end_line = span.end_line - part.line + 1
        end_col = max(0, span.end_col - part.shift) if end_line == 1 else span.end_col
        return part.name, Span(line, col, end_line, end_col)

    def place(self, place: Place | None, labels: dict[str, Field]) -> Place | None:
        """A place for a reader: in the step a span of its text, in another field that field.

        Args:
            place: a place in the script.
            labels: the page's inputs by the names of the fields but the step.
        """
        if not isinstance(place, Span):
            return place
        found = self.span(place)
        if found is None:
            return None
        name, span = found
        return labels.get(name, span)


def compose(fields: StepFields) -> Composed:
    """The script of these fields."""
    lines = [*PRELUDE, MARK_STEP]
    parts = []

    def add(name: str, text: str, indent: str, ending: str) -> None:
        typed = text.split("\n")
        shift = len(indent)
        parts.append(Part(name, len(lines) + 1, len(typed), shift))
        lines.extend([indent + typed[0], *typed[1:]])
        if ending and "#" in typed[-1]:  # a comma behind a comment would be part of it
            lines.append(_INDENT + ending)
        else:
            lines[-1] += ending

    add("step", _newlines(fields.step), "", "")
    lines += ["", OPENING, f"{_INDENT}{_step_name(fields.step)},", MARK_INIT]
    add("init", *_written(fields.init))
    lines.append(MARK_XS)
    add("xs", *_written(fields.xs, _NOTHING))
    lines.append(CLOSING)
    return Composed("\n".join(lines) + "\n", tuple(parts))


def _written(text: str, empty: str = "") -> tuple[str, str, str]:
    """An argument as it stands in the call, what goes in front of it and what comes behind."""
    text = _newlines(text).strip() or empty
    return (text, f"{_INDENT}(", "),") if _is_bare_tuple(text) else (text, _INDENT, ",")


def take_apart(text: str) -> StepFields | None:
    """The fields of a script that `compose` made and a fix changed; None when it is no longer made of them.

    Imports that a fix added, and lines that it put in front of the scan, become part of the step's code.
    """
    lines = text.rstrip("\n").split("\n")
    try:
        step_at = lines.index(MARK_STEP)
        open_at = len(lines) - 1 - lines[::-1].index(OPENING)
        init_at, xs_at = lines.index(MARK_INIT, open_at), lines.index(MARK_XS, open_at)
    except ValueError:
        return None
    named = init_at == open_at + 2 and lines[open_at + 1].startswith(_INDENT)
    if not (step_at < open_at and named and init_at < xs_at and lines[-1] == CLOSING):
        return None
    added = [line for line in lines[:step_at] if line not in PRELUDE]
    step = "\n".join([*added, *lines[step_at + 1 : open_at]]).rstrip("\n")
    init, xs = (_argument(lines[a + 1 : b]) for a, b in ((init_at, xs_at), (xs_at, len(lines) - 1)))
    fields = StepFields(step, init, xs)
    return fields if _step_name(step) == lines[open_at + 1].strip().rstrip(",") else None


def _argument(lines: list[str]) -> str:
    """The expression in an argument's lines, without its comma."""
    return "\n".join(lines).strip().removesuffix(",").rstrip()


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")


def _step_name(code: str) -> str:
    """The last function that the code defines at its top; ``step`` where there is none."""
    found = list(_DEFINED.finditer(code))
    return next(filter(None, found[-1].groups())) if found else "step"


def looks_whole(code: str) -> bool:
    """Whether what stands in the step's editor seems to be a whole script: it calls a scan itself."""
    return _SCANS.search(_newlines(code)) is not None


def _is_bare_tuple(text: str) -> bool:
    """Whether an expression is a tuple without its parentheses: ``0., 1``. Arguments by name are none."""
    depth, comma = 0, False
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type != tokenize.OP:
                continue
            depth += (token.string in _OPEN) - (token.string in _CLOSE)
            if depth == 0 and token.string == "=":
                return False
            comma = comma or (depth == 0 and token.string == ",")
    except (tokenize.TokenError, SyntaxError):
        return False
    return comma
