"""What JSON Schema leaves open in a description that anybody may have written: whole numbers, and texts that are shown.

To JSON Schema ``3.0`` is an integer; to a shape it is none. And a text may hold what a page cannot send (half of a
surrogate pair), what moves the cursor of a terminal, or what turns the direction of the letters after it.
"""

from __future__ import annotations

from typing import Any, Final

import jsonschema  # type: ignore[import-untyped]

#: Letters that are no printable ones, and stand in numbers that somebody typed.
_TYPED: Final = frozenset("\t\n\r")


def validator(schema: dict[str, Any]) -> Any:
    """A validator by draft 2020-12, to which an integer is an `int`: neither ``3.0`` nor ``true``."""
    plain = jsonschema.Draft202012Validator
    checker = plain.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    return jsonschema.validators.extend(plain, type_checker=checker)(schema)


def unprintable(document: Any, typed: frozenset[str] = frozenset(), place: tuple[str, ...] = ()) -> str | None:
    """Where a text, or a name, has a letter that cannot be shown: ``versions.jax``. None where none has.

    Args:
        document: parsed JSON, of a depth that was bounded.
        typed: names of objects that hold what somebody typed: lines, tabs and any printable or blank letter of it.
        place: where in the whole the document stands.
    """
    if isinstance(document, str):
        letters = _typed_only(document) if typed & set(place) else document
        return None if letters.isprintable() else ".".join(place)
    if isinstance(document, dict):
        for name, value in document.items():
            if not name.isprintable():
                return ".".join((*place, name))
            found = unprintable(value, typed, (*place, name))
            if found is not None:
                return found
    if isinstance(document, list):
        for at, value in enumerate(document):
            found = unprintable(value, typed, (*place, str(at)))
            if found is not None:
                return found
    return None


def _typed_only(text: str) -> str:
    """The text without what may stand in typed numbers: the ends of lines, tabs, and blanks that are no printable ones."""
    return "".join(letter for letter in text if letter not in _TYPED and not letter.isspace())
