"""Typed numbers as the cells of a table, and back. Cells are text: anything can be typed into one, and is refused there."""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.base.text import fill
from core.inputs.fields import shorten
from core.inputs.parse import (
    EMPTY_CELL,
    NO_NUMBER,
    UnreadableError,
    format_number,
    parse_sequence,
    read_number,
    row_cells,
    unquoted,
)

#: A row of cells for each step; a sequence of scalars has one cell a step.
type Cells = list[list[str]]

#: A table with more steps or columns than this is no help; the text is.
MAX_STEPS, MAX_WIDTH = 64, 16
AT_STEP = "At t = {t}: {reason}."
AT_STEP_FEATURE = "At t = {t}, feature {feature}: {reason}."


def split_cells(text: str) -> Cells | None:
    """The cells of typed numbers of one or two axes, as they were typed, readable or not; None where they make no table."""
    cells = _listed(text) if "[" in text or "(" in text else _rows(text)
    return cells if cells is not None and fits(cells) else None


def _listed(text: str) -> Cells | None:
    """The cells of nested lists, where these can be read."""
    try:
        numbers = parse_sequence(text)
    except UnreadableError:
        return None
    if len(numbers.shape) not in (1, 2) or numbers.filled or not isinstance(numbers.nested, list):
        return None
    rows = [row if isinstance(row, list) else [row] for row in numbers.nested]
    return [[format_number(value) for value in row] for row in rows]


def _rows(text: str) -> Cells | None:
    """The cells of lines; None when they differ in length."""
    if len(text) > MAX_STEPS * MAX_WIDTH * 40:
        return None
    rows = [[unquoted(cell) for _, cell in row_cells(line)] for line in text.splitlines() if line.strip()]
    if len({len(row) for row in rows}) > 1:
        return None
    return [[cell] for cell in rows[0]] if len(rows) == 1 else rows


def fits(cells: Cells) -> bool:
    """Whether a table of these cells is a help."""
    return len(cells) <= MAX_STEPS and all(len(row) <= MAX_WIDTH for row in cells)


def join_cells(cells: Cells) -> str:
    """The text of these cells: scalars in one line, else a line for each step."""
    if all(len(row) == 1 for row in cells):
        return ", ".join(_quoted(row[0]) for row in cells)
    lines = [", ".join(_quoted(cell) for cell in row) for row in cells]
    return "\n".join(lines) if len(lines) > 1 else f"[[{lines[0]}]]"


def _quoted(cell: str) -> str:
    """A cell as it stands in a line; quoted where it would not come apart as one cell again."""
    cell = _one_line(cell).replace('"', "'")
    return f'"{cell}"' if not cell or re.search(r"[,;()\[\]\s]", cell) else cell


def _one_line(cell: str) -> str:
    """A cell without the space around it, and with one space for each stretch of it within."""
    return " ".join(cell.split())


def cell_problem(cells: Cells) -> str:
    """A sentence about the first cell that is no number, by t; "" when all are."""
    wide = any(len(row) > 1 for row in cells)
    for t, row in enumerate(cells):
        for feature, typed in enumerate(row):
            cell = _one_line(typed)  # as `join_cells` writes it
            if read_number(cell.replace("−", "-")) is None:
                reason = fill(NO_NUMBER, text=shorten(cell)) if cell else fill(EMPTY_CELL)
                return fill(AT_STEP_FEATURE if wide else AT_STEP, t=t, feature=feature, reason=reason)
    return ""


def edited(cells: Cells, edits: Sequence[tuple[int, int, object]]) -> Cells:
    """The cells with each (t, feature, new value) put in; a value may be text or a number, None empties the cell."""
    out = [list(row) for row in cells]
    for t, feature, value in edits:
        if 0 <= t < len(out) and 0 <= feature < len(out[t]):
            out[t][feature] = _as_text(value)
    return out


def _as_text(value: object) -> str:
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else format_number(value)
