"""`str.format` whose fields read attributes and items through the guards."""

from __future__ import annotations

import string
from collections.abc import Callable, Iterator, Mapping
from typing import Any


class GuardedFormatter(string.Formatter):
    """A formatter with its own way to read ``{a.b}`` (`read_attribute`) and ``{a[b]}`` (`read_item`)."""

    def __init__(self, read_attribute: Callable[[Any, str], Any], read_item: Callable[[Any, Any], Any]) -> None:
        self._attribute, self._item = read_attribute, read_item

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> Any:
        """The object that a field names."""
        import _string  # type: ignore[import-not-found]  # where `string.Formatter` itself gets it

        first, rest = _string.formatter_field_name_split(field_name)
        obj = self.get_value(first, args, kwargs)
        for is_attribute, key in rest:
            obj = self._attribute(obj, key) if is_attribute else self._item(obj, key)
        return obj, first


def fields_of(fmt: str) -> Iterator[str]:
    """The names in the braces of a format, those inside format specifications too."""
    for _, field, spec, _ in string.Formatter().parse(fmt):
        if field is not None:
            yield field
            yield from fields_of(spec or "")


def reaches(field: str) -> bool:
    """Whether a field reads a part of the value it names."""
    return "." in field or "[" in field


def formatting(text: Any, name: str, formatter: GuardedFormatter) -> Callable[..., str]:
    """`text.format` or `text.format_map`; for the class `str`, or one built on it, the unbound method.

    A format that names values only is Python's own affair: same result, same errors.
    """

    def filled(fmt: str, args: tuple[Any, ...], values: Mapping[str, Any]) -> str:
        if any(reaches(field) for field in fields_of(fmt)):
            return formatter.vformat(fmt, args, values)
        return str.format(fmt, *args, **values) if name == "format" else str.format_map(fmt, values)

    # `str.__str__` is the text itself, whatever a subclass makes of `str()`.
    if isinstance(text, type):
        if name == "format":
            return lambda fmt, /, *args, **values: filled(str.__str__(fmt), args, values)
        return lambda fmt, values, /: filled(str.__str__(fmt), (), values)
    if name == "format":
        return lambda *args, **values: filled(str.__str__(text), args, values)
    return lambda values, /: filled(str.__str__(text), (), values)
