"""Which steps of a batch are real and which are padding, as text: a length for each example, or a row of 0s and 1s.

Both are kept as they were typed, so that a link carries them and a message can name the place of a bad one. What stands
there follows B and T when these are moved: a slider must not make a length that is longer than the sequence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from core.base.limits import LIMITS
from core.base.text import fill
from core.inputs.fields import shorten
from core.inputs.parse import Number, UnreadableError, read_number

type Array = np.ndarray[Any, Any]

#: The shortest example of a batch that nobody typed lengths for has 3/8 of the longest one's steps.
_LOST, _OF = 5, 8
#: What JAX holds a length in.
_TOP: Final = 2**31 - 1
#: Rows up to so many steps are written digit by digit; longer ones as runs.
_DIGITS: Final = 64

NO_LENGTH = "Example {place}: the length “{text}” is no number."
NOT_HELD = "Example {place}: the length {text} does not fit int32."
TOO_MANY_LENGTHS = "{count} lengths are typed, at most {limit} are read."
NO_MARK = "The mask of example {row}, character {character}: “{text}” is neither 0 nor 1, nor a run such as 1*5."
WRONG_STEPS = "The mask of example {row} has {got} steps, and the sequence has {want}."
WRONG_STEP = "The mask of example {row} has 1 step, and the sequence has {want}."
WRONG_ROWS = "The mask has {got} rows, and the batch has {want} examples: a row for each."
WRONG_ROW = "The mask has 1 row, and the batch has {want} examples: a row for each."
LONG_ROW = "The mask of example {row} has more than {limit} steps, the most that a sequence may have."

_SEPARATOR = re.compile(r"[,;\n]")
_MARK = re.compile(r"([01])(?:\*([0-9]+))?")
_WRAPPING = str.maketrans("", "", "[]()")


# --- lengths --------------------------------------------------------------------------------------------------------


def default_lengths(batch: int, length: int) -> str:
    """The lengths of a ragged batch that nobody typed: from T down to three eighths of it, evenly.

    Empty (none given) for a sequence without steps, and for sizes over a limit, which nothing is made for.
    """
    if not _to_be_made(batch, length):
        return ""
    parts = _OF * max(batch - 1, 1)
    return written_lengths([max(1, length * (parts - _LOST * b) // parts) for b in range(batch)])


def read_lengths(text: str) -> tuple[Number, ...] | None:
    """The lengths as they were typed: whole numbers stay whole, 2.5 stays 2.5. None when there is nothing.

    Raises:
        UnreadableError: something there is no number that could be a length; the message has its place.
    """
    pieces = [p for p in re.split(r"[,;\s]+", text.replace("−", "-").translate(_WRAPPING)) if p]
    if not pieces:
        return None
    limit = LIMITS["typed_numbers"].value
    if len(pieces) > limit:
        raise UnreadableError(fill(TOO_MANY_LENGTHS, count=len(pieces), limit=limit))
    return tuple(_length(piece, place) for place, piece in enumerate(pieces))


def _length(text: str, place: int) -> Number:
    value = read_number(text)
    if value is None or isinstance(value, bool) or value != value:
        raise UnreadableError(fill(NO_LENGTH, place=place, text=shorten(text)))
    if not -_TOP <= value <= _TOP:
        raise UnreadableError(fill(NOT_HELD, place=place, text=shorten(text)))
    return value


def written_lengths(lengths: Sequence[Number]) -> str:
    """Lengths as they are typed; `read_lengths` reads them back."""
    return ", ".join(map(str, lengths))


def fitted_lengths(
    text: str, typed: str, before: tuple[int, int], after: tuple[int, int], *, untouched: bool
) -> tuple[str, str]:
    """Lengths after B or T was moved, and what was typed, to be given back when B and T are as they were.

    Lengths that nobody typed are made anew. A typed one that would be longer than the sequence is cut to it, and is
    itself again when there is room; one that was too long already stays: it was meant. New examples get full length.

    Args:
        text: the lengths as they stand.
        typed: what was typed before B or T was moved the first time; "" when it stands there.
        before: (B, T) as it was.
        after: (B, T) as it is now.
        untouched: nobody typed them.

    Returns:
        the text, and what was typed ("" when it stands there).
    """
    if untouched:
        return default_lengths(*after), ""
    try:
        now, meant = read_lengths(text), read_lengths(typed or text) or ()
    except UnreadableError:
        return text, typed
    if now is None and not typed:
        return text, ""  # none given, on purpose
    batch, length = after
    if not _to_be_made(batch, length):
        return "", typed or text
    now = now or ()
    count = len(now) if now and len(now) != before[0] else batch  # a wrong count was meant too
    out = [_cut(b, now, meant, before[1], length) for b in range(count)]
    return (typed or text, "") if out == list(meant) else (written_lengths(out), typed or text)


def _cut(b: int, now: Sequence[Number], meant: Sequence[Number], before: int, length: int) -> Number:
    """One length when T goes from `before` to `length`."""
    if b < len(now) and now[b] > before:
        return now[b]
    return min(meant[b], length) if b < len(meant) else length


def _to_be_made(batch: int, length: int) -> bool:
    """Whether there are steps to speak of, and no more than are made."""
    return 1 <= batch <= LIMITS["batch"].value and 1 <= length <= LIMITS["length"].value


# --- masks ----------------------------------------------------------------------------------------------------------


def read_mask(text: str, batch: int, length: int) -> Array | None:
    """The mask (B, T) bool, True where a step counts. None when there is nothing.

    A row for each example, with commas, semicolons or new lines between them: ``11100, 10110``. A run may be written
    short: ``1*40 0*24``.

    Raises:
        UnreadableError: the message names the row, how many steps it has, and how many it should have.
    """
    rows = list(_rows(text))
    if not rows:
        return None
    for number, row in enumerate(rows):
        if len(row) != length:
            template = WRONG_STEP if len(row) == 1 else WRONG_STEPS
            raise UnreadableError(fill(template, row=number, got=len(row), want=length))
    if len(rows) != batch:
        raise UnreadableError(fill(WRONG_ROW if len(rows) == 1 else WRONG_ROWS, got=len(rows), want=batch))
    return np.array(rows, bool).reshape(batch, length)


def is_given(text: str) -> bool:
    """Whether a mask's text has any row."""
    return bool(text.strip(" ,;\t\n\r"))


def _rows(text: str) -> Iterator[list[bool]]:
    """The rows, whatever their lengths; nested lists of 0 and 1 are taken too."""
    if "[" in text:
        text = re.sub(r"\]\s*,?\s*\[", ";", text).replace(",", " ").translate(_WRAPPING)
    number = 0
    for piece in _SEPARATOR.split(text):
        if piece.strip():
            yield _row(piece, number)
            number += 1


def _row(piece: str, number: int) -> list[bool]:
    limit, at = LIMITS["length"].value, 0
    out: list[bool] = []
    while at < len(piece):
        if piece[at].isspace():
            at += 1
            continue
        match = _MARK.match(piece, at)
        if match is None:
            raise UnreadableError(fill(NO_MARK, row=number, character=at + 1, text=shorten(piece[at:])))
        mark, times = match.groups()
        if times is not None and (len(times) > len(str(limit)) or len(out) + int(times) > limit):
            raise UnreadableError(fill(LONG_ROW, row=number, limit=limit))
        out += [mark == "1"] * (1 if times is None else int(times))
        if len(out) > limit:
            raise UnreadableError(fill(LONG_ROW, row=number, limit=limit))
        at = match.end()
    return out


def written_mask(mask: Any) -> str:
    """A mask as it is typed; `read_mask` reads it back."""
    return ", ".join(map(_written_row, np.asarray(mask, bool).tolist()))


def _written_row(row: Sequence[bool]) -> str:
    if len(row) <= _DIGITS:
        return "".join("1" if step else "0" for step in row)
    starts = [0, *(t for t in range(1, len(row)) if row[t] != row[t - 1]), len(row)]
    return " ".join(f"{int(row[a])}*{b - a}" for a, b in pairwise(starts))


def valid_steps(lengths: Sequence[Any] | None, batch: int, length: int) -> Array:
    """(B, T) bool: the steps before each length. All where none are given; an example without a length is full."""
    given = list(lengths or ())[:batch]
    full = np.array([*given, *[length] * (batch - len(given))], float)
    return np.asarray(np.arange(length)[None, :] < full[:, None])


def toggle(mask: str, lengths: str, batch: int, length: int, example: int, t: int) -> str:
    """The mask's text with one step turned over: for a click into the grid.

    It starts from the mask; where there is none (or none that can be read), from the lengths.
    """
    if not _to_be_made(batch, length):
        return mask
    try:
        now = read_mask(mask, batch, length)
    except UnreadableError:
        now = None
    if now is None:
        now = steps_of(lengths, batch, length)
    if 0 <= example < batch and 0 <= t < length:
        now[example, t] = not now[example, t]
    return written_mask(now)


def steps_of(lengths: str, batch: int, length: int) -> Array:
    """`valid_steps` of lengths as they are typed; all steps where they cannot be read."""
    try:
        return valid_steps(read_lengths(lengths), batch, length)
    except UnreadableError:
        return valid_steps(None, batch, length)


def fitted_mask(text: str, typed: str, after: tuple[int, int]) -> tuple[str, str]:
    """A mask after B or T was moved, and what was typed: rows are cut, and come back when there is room.

    Steps that were never there go on as the row ends; examples that were never there are full.

    Args:
        text: the mask as it stands.
        typed: what was typed before B or T was moved the first time; "" when it stands there.
        after: (B, T).
    """
    source = typed or text
    batch, length = after
    if not source.strip():
        return text, ""
    try:
        rows = list(_rows(source))
    except UnreadableError:
        return text, typed
    if not _to_be_made(batch, length):
        return "", source
    wanted = [*rows, *[[True]] * (batch - len(rows))][:batch]
    fitted = [(row + [row[-1]] * (length - len(row)))[:length] for row in wanted]
    new = written_mask(fitted)
    return (source, "") if rows == fitted else (new, source)
