"""Typed or pasted numbers -> arrays. What cannot be read is refused with its place: row, column, character.

Read: one line of numbers (a sequence of scalars), lines of numbers (a row a step: CSV, tabs or blanks), nested lists as
JSON or Python write them, and ``zeros(2, 4)``, ``ones(3)`` or ``full((2,), 0.5)``. ``nan`` and ``inf`` are numbers here: they run, and rule
N501 says what becomes of them. Nothing is ever evaluated, and nothing of the size that was asked for is allocated here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.fields import shorten

type Number = bool | int | float
type Nested = Number | list["Nested"]

#: The dtypes an input of a page can have. (uint8 and float64 are not offered: JAX's default mode narrows float64.)
DTYPES = ("float32", "int32", "bool", "bfloat16", "float16", "int8")
#: Axes of one typed array.
MAX_AXES = LIMITS["axes"].value
_LONGEST_NUMBER = 40
#: What Windows programs write before a CSV file; it is no part of the first number.
_BYTE_ORDER_MARK = "\ufeff"

NO_NUMBER = "“{text}” is no number"
EMPTY_CELL = "there is no number here"
NOTHING = "Nothing is typed: give a number, or a list such as [0, 0]."
RAGGED = "has {got} numbers, but the first one has {want}"
RAGGED_ONE = "has 1 number, but the first one has {want}"
RAGGED_SHAPE = "has shape {got}, but the first one has {want}"
RAGGED_MIX = "a number and a list stand side by side"
TOO_DEEP = "more than {limit} lists within each other"
UNCLOSED = "a bracket is never closed"
UNOPENED = "“{text}” closes no bracket"
SEPARATOR = "a comma is missing or there is one too many"
TRAILING = "after the last bracket there is more: “{text}”"
BAD_SIZE = "sizes must be whole numbers from 0: “{text}”"
TOO_MANY = "{count} numbers are typed, at most {limit} are read. Use a generator for long sequences."
TOO_LONG = "The text has {count} characters, at most {limit} are read."
NOT_WHOLE = "{value} is no whole number, and the dtype is {dtype}"
NOT_FINITE = "{value} has no value in {dtype}"
NOT_BOOL = "{value} is neither 0, 1, true nor false, and the dtype is bool"
DOES_NOT_FIT = "{value} does not fit {dtype} ({low} to {high})"
#: How an array without elements is written, where empty lists do not have its shape.
NO_ELEMENTS = "zeros({shape})"
AT_CHARACTER = "Row {row}, column {column}, character {character}: {reason}."
AT_ROW = "Row {row}: {reason}."
AT_INDEX = "At index {index}: {reason}."
AT_STEP = "At t = {t}: {reason}."
AT_STEP_INDEX = "At t = {t}, index {index}: {reason}."

_NUMBER = re.compile(
    r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?)|true|false", re.IGNORECASE | re.A
)
_WHOLE = re.compile(r"[+-]?\d+", re.A)
_FILLED = re.compile(r"(?:(zeros|ones)\s*\(\s*\(?([^()]*)\)?|full\s*\(\s*\(([^()]*)\)\s*,\s*([^(),\s]+))\s*\)", re.A)
_PIECE = re.compile(r'[\[\](),]|"[^"]*"|[^\s\[\](),]+')
_CELL = re.compile(r'[ ]*"[^"]*"[ ]*|[^,;\t]*')


class UnreadableError(ValueError):
    """Text that is no array of numbers; the message is a sentence with the place, for a reader."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """What was typed: nested lists of one shape, or one value for every element of a shape (`zeros(2, 4)`)."""

    shape: tuple[int, ...]
    nested: Nested
    filled: bool = False

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


# --- text -> numbers ------------------------------------------------------------------------------------------------


def parse_sequence(text: str) -> Numbers:
    """A sequence: its leading axis is the one of the steps. The empty text is the empty sequence, shape (0,).

    Raises:
        UnreadableError: with the place.
    """
    text = _checked(text)
    if not text.strip():
        return Numbers((0,), [])
    if text.lstrip()[0] in "[(" or _FILLED.fullmatch(text.strip()):
        return _parse_nested(text)
    return _shaped(_parse_rows(text))


def parse_leaf(text: str) -> Numbers:
    """One value, such as a leaf of init: a number, numbers with commas between them, or nested lists.

    Raises:
        UnreadableError: with the place.
    """
    numbers = parse_sequence(text)
    if not text.strip():
        raise UnreadableError(fill(NOTHING))
    lone = (
        numbers.shape == (1,)
        and isinstance(numbers.nested, list)
        and text.lstrip()[0] not in "[("
        and not numbers.filled
    )
    return Numbers((), numbers.nested[0]) if lone else numbers  # type: ignore[index]  # a list, as `lone` says


def _checked(text: str) -> str:
    limit = LIMITS["typed_text"].value
    if len(text) > limit:
        raise UnreadableError(fill(TOO_LONG, count=len(text), limit=limit))
    return text.removeprefix(_BYTE_ORDER_MARK).replace("−", "-")


def unquoted(text: str) -> str:
    """What stands between quotation marks, as CSV files put them around a cell; a lone one stays."""
    return text[1:-1].strip() if len(text) > 1 and text[0] == text[-1] == '"' else text


def read_number(text: str) -> Number | None:
    """The number that a text is, or None. Whole numbers stay exact."""
    text = unquoted(text)
    if len(text) > _LONGEST_NUMBER or not _NUMBER.fullmatch(text):
        return None
    low = text.lower()
    if low in {"true", "false"}:
        return low == "true"
    return int(text) if _WHOLE.fullmatch(text) else float(text)


def _parse_rows(text: str) -> list[list[Number]]:
    """Lines of numbers; a single line is one number a step."""
    rows: list[list[Number]] = []
    count, limit = 0, LIMITS["typed_numbers"].value
    for line_number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        row = []
        for column, (start, cell) in enumerate(row_cells(line), 1):
            value = read_number(cell)
            if value is None:
                reason = fill(NO_NUMBER, text=shorten(unquoted(cell))) if cell else fill(EMPTY_CELL)
                raise UnreadableError(
                    fill(AT_CHARACTER, row=line_number, column=column, character=start + 1, reason=reason)
                )
            row.append(value)
        count += len(row)
        if count > limit:
            raise UnreadableError(fill(TOO_MANY, count=_count_numbers(text), limit=limit))
        if rows and len(row) != len(rows[0]):
            raise UnreadableError(fill(AT_ROW, row=line_number, reason=_ragged(len(row), len(rows[0]))))
        rows.append(row)
    return [[value] for value in rows[0]] if len(rows) == 1 else rows


def row_cells(line: str) -> Iterator[tuple[int, str]]:
    """(start, text) of each cell: between commas, semicolons or tabs, else between blanks."""
    if re.search(r'[,;\t"]', line):
        found = [(m.start(), m.group()) for m in _CELL.finditer(line)]
        # The pattern also matches the empty end after the last cell; a trailing separator makes no cell.
        cells = [c for i, c in enumerate(found) if i == 0 or c[0] == found[i - 1][0] + len(found[i - 1][1]) + 1]
        if len(cells) > 1 and not cells[-1][1].strip():
            cells.pop()
        for start, cell in cells:
            yield start + len(cell) - len(cell.lstrip()), cell.strip()
        return
    for m in re.finditer(r"\S+", line):
        yield m.start(), m.group()


def _count_numbers(text: str) -> int:
    return len(re.findall(r"[^\s,;]+", text))


def _shaped(rows: list[list[Number]]) -> Numbers:
    if all(len(row) == 1 for row in rows):
        return Numbers((len(rows),), [row[0] for row in rows])
    return Numbers((len(rows), len(rows[0])), [list(row) for row in rows])


def _parse_nested(text: str) -> Numbers:
    filled = _FILLED.fullmatch(text.strip())
    if filled:
        return _parse_filled(*filled.groups())
    nested = _read_lists(text)
    return Numbers(_shape(nested, ()), nested)


def _parse_filled(name: str | None, sizes: str | None, full_sizes: str | None, text: str | None) -> Numbers:
    """``zeros(2, 4)``, ``ones((3,))`` or ``full((2, 4), 0.5)``."""
    given = (sizes if name else full_sizes) or ""
    parts = [part.strip() for part in given.split(",") if part.strip()]
    if len(parts) > MAX_AXES or not all(p.isascii() and p.isdigit() and len(p) <= 12 for p in parts):
        raise UnreadableError(fill(AT_ROW, row=1, reason=fill(BAD_SIZE, text=shorten(given))))
    value = {"zeros": 0.0, "ones": 1.0}[name] if name else read_number(text or "")
    if value is None:
        raise UnreadableError(fill(AT_ROW, row=1, reason=fill(NO_NUMBER, text=shorten(text or ""))))
    return Numbers(tuple(map(int, parts)), value, filled=True)


def _read_lists(text: str) -> Nested:
    """Nested lists, read with a stack of our own: depth and count are bounded, whatever is pasted."""
    stack: list[list[Nested]] = []
    openers: list[str] = []
    count, limit = 0, LIMITS["typed_numbers"].value
    root: Nested | None = None
    after_value = False
    for match in _PIECE.finditer(text):
        piece, at = match.group(), match.start()
        if root is not None:
            raise _at(text, at, fill(TRAILING, text=shorten(text[at:])))
        if piece in "])":
            if openers.pop() + piece not in ("[]", "()"):
                raise _at(text, at, fill(UNOPENED, text=piece))
            done = stack.pop()
            after_value = True
            if stack:
                stack[-1].append(done)
            else:
                root = done
            continue
        if after_value != (piece == ","):
            raise _at(text, at, fill(SEPARATOR))
        if piece == ",":
            after_value = False
        elif piece in "[(":
            if len(stack) == MAX_AXES:
                raise _at(text, at, fill(TOO_DEEP, limit=MAX_AXES))
            stack.append([])
            openers.append(piece)
        else:
            value = read_number(piece)
            if value is None:
                raise _at(text, at, fill(NO_NUMBER, text=shorten(unquoted(piece))))
            count += 1
            if count > limit:
                raise UnreadableError(fill(TOO_MANY, count=_count_numbers(text), limit=limit))
            stack[-1].append(value)
            after_value = True
    if root is None:
        raise _at(text, len(text.rstrip()), fill(UNCLOSED))
    return root


def _at(text: str, position: int, reason: str) -> UnreadableError:
    row = text.count("\n", 0, position) + 1
    start = text.rfind("\n", 0, position) + 1
    column = text.count(",", start, position) + 1
    return UnreadableError(fill(AT_CHARACTER, row=row, column=column, character=position - start + 1, reason=reason))


def _shape(nested: Nested, index: tuple[int, ...]) -> tuple[int, ...]:
    """The one shape that all parts have.

    Raises:
        UnreadableError: they differ; the message has the index of the first that does.
    """
    if not isinstance(nested, list):
        return ()
    shapes = [_shape(part, (*index, i)) for i, part in enumerate(nested)]
    for i, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise UnreadableError(_at_index((*index, i), _difference(shape, shapes[0])))
    return (len(nested), *(shapes[0] if shapes else ()))


def _difference(got: tuple[int, ...], want: tuple[int, ...]) -> str:
    """What tells a list of shape `got` from the first one beside it."""
    if not got or not want:
        return fill(RAGGED_MIX)
    if len(got) == len(want) == 1:
        return _ragged(got[0], want[0])
    return fill(RAGGED_SHAPE, got=got, want=want)


def _ragged(got: int, want: int) -> str:
    return fill(RAGGED_ONE, want=want) if got == 1 else fill(RAGGED, got=got, want=want)


def _at_index(index: tuple[int, ...], reason: str) -> str:
    if len(index) == 1:
        return fill(AT_ROW, row=index[0] + 1, reason=reason)
    return fill(AT_INDEX, index=", ".join(map(str, index)), reason=reason)


# --- numbers -> array -----------------------------------------------------------------------------------------------


def numpy_dtype(name: str) -> np.dtype[Any]:
    """NumPy's dtype for a JAX dtype name."""
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def to_array(numbers: Numbers, dtype: str, *, steps: bool = False) -> np.ndarray[Any, Any]:
    """The array of `numbers.shape` in `dtype`.

    A whole number that needs more than int32 stays int64 on the host: handing that to JAX cuts it, which is what would
    happen to anybody (rule N504 says so). Everything else that does not fit is refused.

    Args:
        numbers: what was typed.
        dtype: one of `DTYPES`.
        steps: the leading axis is that of the steps: a message names t.

    Raises:
        UnreadableError: a number has no value in that dtype; the message has its index.
    """
    kind = numpy_dtype(dtype)
    if numbers.filled:
        return np.broadcast_to(to_array(Numbers((), numbers.nested), dtype), numbers.shape).copy()
    flat = list(_leaves(numbers.nested))
    for position, value in enumerate(flat):
        reason = misfit(value, dtype)
        if reason:
            index = tuple(int(i) for i in np.unravel_index(position, numbers.shape)) if numbers.shape else ()
            raise UnreadableError(place_in(index, reason, steps))
    if dtype == "int32" and any(not -(2**31) <= value < 2**31 for value in flat):
        kind = np.dtype(np.int64)
    with np.errstate(over="ignore"):  # 1e39 is inf in float32, as it is for JAX; N501 says so
        return np.asarray(flat, dtype=np.float64 if kind.kind in "fV" else kind).astype(kind).reshape(numbers.shape)


def place_in(index: tuple[int, ...], reason: str, steps: bool) -> str:
    """The sentence with the index of the number that the reason is about; in a sequence the first one is its t."""
    if not index:
        return reason[0].upper() + reason[1:] + "."
    rest = ", ".join(map(str, index[1:] if steps else index))
    if not steps:
        return fill(AT_INDEX, index=rest, reason=reason)
    return (
        fill(AT_STEP_INDEX, t=index[0], index=rest, reason=reason) if rest else fill(AT_STEP, t=index[0], reason=reason)
    )


def _leaves(nested: Nested) -> Iterator[Number]:
    if isinstance(nested, list):
        for part in nested:
            yield from _leaves(part)
    else:
        yield nested


def misfit(value: Number, dtype: str) -> str:
    """Why this number has no value in that dtype; "" when it has."""
    kind = numpy_dtype(dtype)
    if kind.kind == "b":
        return "" if value in (0, 1) else fill(NOT_BOOL, value=value)
    if kind.kind != "i":
        return ""
    if not math.isfinite(value):
        return fill(NOT_FINITE, value=value, dtype=dtype)
    if value != int(value):
        return fill(NOT_WHOLE, value=value, dtype=dtype)
    held, info = np.iinfo(np.int64 if dtype == "int32" else kind), np.iinfo(kind)
    if held.min <= value <= held.max:
        return ""
    return fill(DOES_NOT_FIT, value=int(value), dtype=dtype, low=info.min, high=info.max)


# --- array -> text --------------------------------------------------------------------------------------------------


def format_number(value: Any) -> str:
    """The shortest text that reads back to the same value in its own precision: ``3``, ``0.1``, ``nan``, ``true``."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, float) or not math.isfinite(float(value)):  # np.float64 is a float
        return repr(float(value)).removesuffix(".0")
    single = np.float32(value)
    if single == 0 or 1e-4 <= abs(single) < 1e7:
        return np.format_float_positional(single, unique=True, trim="-")
    return np.format_float_scientific(single, unique=True, trim="-")


def format_sequence(values: Any) -> str:
    """Numbers as a person would type them: one line of scalars, a line a row, or nested lists; read back the same."""
    array = np.asarray(values)
    if array.size == 0 and array.ndim > 1:
        return fill(NO_ELEMENTS, shape=", ".join(map(str, array.shape)))  # empty brackets would lose the other axes
    if array.ndim == 1 and array.size:
        return ", ".join(map(format_number, array))
    if array.ndim == 2 and array.shape[0] > 1 and array.shape[1] > 1:
        return "\n".join(", ".join(map(format_number, row)) for row in array)
    return format_leaf(array)


def format_leaf(values: Any) -> str:
    """A value as nested lists; a number for a scalar."""
    array = np.asarray(values)
    if array.ndim == 0:
        return format_number(array[()])
    return "[" + ", ".join(format_leaf(part) for part in array) + "]"
