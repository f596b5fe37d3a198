"""Frozen dataclasses of text, numbers, enumerations and tuples as plain JSON data, and strictly back.

What is read may come from a worker in which a stranger's script ran: every field is checked for its type, and for its
size. JSON has no NaN and no infinity: they are written as text.
"""

from __future__ import annotations

import enum
import math
import types
import typing
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Final, cast

from core.base.limits import LIMITS

#: Characters of one text, items of one list.
TEXT: Final = LIMITS["report_text"].value
ITEMS: Final = LIMITS["report_items"].value
_WILD: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class NotPlainError(ValueError):
    """Data that are not what they should be; the message names the field, never a value."""


def plain(value: Any) -> Any:
    """A dataclass as a dict, a tuple as a list, a number that is not finite as its name."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [plain(one) for one in value]
    if isinstance(value, enum.StrEnum):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def read[T](kind: type[T], data: object) -> T:
    """An object of this dataclass.

    Raises:
        NotPlainError: a field is missing, unknown, too large or of another type.
        ValueError: the class itself refuses it (`core.report.model.IncompleteReportError`).
    """
    return cast(T, _read(kind, data, kind.__name__))


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _read(kind: Any, data: object, at: str) -> Any:
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        inner = [one for one in typing.get_args(kind) if one is not type(None)]
        return None if data is None else _read(inner[0], data, at)
    if origin is tuple:
        if not isinstance(data, list) or len(data) > ITEMS:
            raise NotPlainError(at)
        return tuple(_read(typing.get_args(kind)[0], one, at) for one in data)
    if is_dataclass(kind):
        hints = _hints(cast(type, kind))
        if not isinstance(data, dict) or set(data) != set(hints):
            raise NotPlainError(at)
        return cast(type, kind)(**{name: _read(hint, data[name], f"{at}.{name}") for name, hint in hints.items()})
    return _one(kind, data, at)


def _one(kind: Any, data: object, at: str) -> Any:
    if kind is float:
        if isinstance(data, str) and data in _WILD:
            return _WILD[data]
        if (
            isinstance(data, bool)
            or not isinstance(data, int | float)
            or (isinstance(data, int) and abs(data) > 1 << 64)
        ):
            raise NotPlainError(at)
        return float(data)
    if isinstance(kind, type) and issubclass(kind, enum.StrEnum):
        if not isinstance(data, str) or data not in list(kind):
            raise NotPlainError(at)
        return kind(data)
    if type(data) is not kind or (kind is int and abs(cast(int, data)) > 1 << 53):
        raise NotPlainError(at)
    if isinstance(data, str):
        if len(data) > TEXT:
            raise NotPlainError(at)
        try:
            data.encode()
        except UnicodeEncodeError:  # half a surrogate pair is no text
            raise NotPlainError(at) from None
    return data
