"""One table of fields per page drives its session state and its link, both ways.

A link carries only what differs from the defaults, with a version. What a link (or a widget) gives is checked here
against kind, options and bounds: a bad value is refused by name and the default stands in, never an exception.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from core.base.limits import LIMITS
from core.base.text import fill

VERSION = "1"
#: The name under which a link says which version of the table wrote it.
VERSION_NAME = "v"

type Value = str | int | float | bool

UNKNOWN = "The link names “{name}”, which this page does not have; it was left out."
UNKNOWN_MANY = "{count} unknown settings in the link were ignored: {names}{more}."
REPEATED = "The link gives “{name}” {count} times; the last one counts."
REFUSED = "{label}: the link says “{value}”, but {reason}. The default is used."
TOO_LONG = "{count} characters are more than a link may hold here ({limit})"
NOT_AN_OPTION = "that is none of its choices"
NOT_WHOLE = "that is no whole number"
NOT_A_NUMBER = "that is no number"
NO_TEXT = "it holds half a character"
NOT_A_FLAG = "it must be 0 or 1"
OUTSIDE = "it must lie between {low} and {high}"
BELOW = "it must be {low} or more"
OTHER_VERSION = "The link was made by another version ({value}); what it says was read as far as it is understood."
LINK_TOO_LONG = "This state needs {count} characters, more than a link holds ({limit}): the address does not carry it."
#: How much of a refused value is said back.
_SHOWN = 24
#: How many unknown names of a link are said back.
_NAMED = 3


class Kind(enum.StrEnum):
    """What an input holds, and so how it is written in a link."""

    CHOICE = "choice"
    TEXT = "text"
    WHOLE = "whole"
    NUMBER = "number"
    FLAG = "flag"


class RefusedError(ValueError):
    """A value that an input cannot have; the message is the reason, for a reader."""


@dataclass(frozen=True, slots=True)
class InputField:
    """One input of a page.

    Attributes:
        name: its name in the page's state; its widget's key is ``<page>_<name>``.
        url: its short name in a link.
        kind: what it holds.
        default: its value when nothing is said.
        label: the words on its label.
        options: for a choice, the values it can have.
        low, high: for numbers, the closed bounds; None is unbounded.
        least: the lower bound of a link, where the page itself answers what is below it.
        limit: the upper bound as a refusal names it, where a rule allows less than `high`.
        max_chars: for text, how many characters a link may give it.
    """

    name: str
    url: str
    kind: Kind
    default: Value
    label: str
    options: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    least: float | None = None
    limit: float | None = None
    max_chars: int = 200

    def format(self, value: Value) -> str:
        """The value as a link writes it; `parse` reads it back to an equal value."""
        if self.kind is Kind.FLAG:
            return "1" if value else "0"
        return repr(float(value)).removesuffix(".0") if self.kind is Kind.NUMBER else str(value)

    @property
    def most_chars(self) -> int:
        """For text: how many characters a link may give it, in any case."""
        return min(self.max_chars, LIMITS["url_text"].value)

    def parse(self, text: str) -> Value:
        """The value that a link means.

        Raises:
            RefusedError: this input cannot have it.
        """
        if self.kind is Kind.TEXT:
            if len(text) > self.most_chars:
                raise RefusedError(fill(TOO_LONG, count=len(text), limit=self.most_chars))
            return self.check(text)
        if self.kind is Kind.CHOICE:
            return self.check(text)
        if self.kind is Kind.FLAG:
            if text not in {"0", "1"}:
                raise RefusedError(fill(NOT_A_FLAG))
            return text == "1"
        number = _number(text, whole=self.kind is Kind.WHOLE)
        if self.least is not None:
            self._check_bounds(float(number), self.least)
        return self.check(number)

    def check(self, value: Value) -> Value:
        """The value when this input can have it: itself, but for what no reader sees in a number's 13th digit.

        Raises:
            RefusedError: it is no option, or outside the bounds, or of another type.
        """
        match self.kind:
            case Kind.CHOICE if value not in self.options:
                raise RefusedError(fill(NOT_AN_OPTION))
            case Kind.TEXT | Kind.CHOICE if not isinstance(value, str):
                raise RefusedError(fill(NOT_AN_OPTION))
            case Kind.FLAG if not isinstance(value, bool):
                raise RefusedError(fill(NOT_A_FLAG))
            case Kind.WHOLE if isinstance(value, bool) or not isinstance(value, int):
                raise RefusedError(fill(NOT_WHOLE))
            case Kind.NUMBER if isinstance(value, (bool, str)) or not math.isfinite(value):
                raise RefusedError(fill(NOT_A_NUMBER))
        if self.kind in (Kind.WHOLE, Kind.NUMBER):
            self._check_bounds(float(value), self.low)
        if isinstance(value, str) and any("\ud800" <= c <= "\udfff" for c in value):
            raise RefusedError(fill(NO_TEXT))
        # A slider counts its steps in binary: 0.1 + 0.2 is 0.30000000000000004, and would stand so in every address.
        return float(f"{value:.12g}") if self.kind is Kind.NUMBER else value

    def _check_bounds(self, value: float, low: float | None) -> None:
        high = self.high
        if (low is None or value >= low) and (high is None or value <= high):
            return
        if high is None:
            raise RefusedError(fill(BELOW, low=low))
        raise RefusedError(fill(OUTSIDE, low=low, high=high if self.limit is None else self.limit))


def _number(text: str, *, whole: bool) -> int | float:
    """Plain ASCII numbers only: `int` would also take ``1_000`` and other scripts' digits, and huge texts slowly."""
    if len(text) > 40 or not text.isascii() or "_" in text or text != text.strip():
        raise RefusedError(fill(NOT_WHOLE if whole else NOT_A_NUMBER))
    try:
        return int(text) if whole else float(text)
    except ValueError:
        raise RefusedError(fill(NOT_WHOLE if whole else NOT_A_NUMBER)) from None


@dataclass(frozen=True, slots=True)
class Link:
    """What a page writes into its address.

    Attributes:
        params: names and texts; empty when everything is as by default, or when it would not fit.
        problem: a sentence when the state is too long for a link, else "".
    """

    params: Mapping[str, str]
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """What a link said: a value for each field, and a sentence for each thing that was refused."""

    values: dict[str, Value]
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FieldTable:
    """All inputs of a page (for one preset: some inputs exist only with it)."""

    page: str
    fields: tuple[InputField, ...]

    def field(self, name: str) -> InputField:
        """The field of this name.

        Raises:
            KeyError: this page has none.
        """
        for field in self.fields:
            if field.name == name:
                return field
        raise KeyError(name)

    def has(self, name: str) -> bool:
        """Whether this page (with this preset) has the field."""
        return any(field.name == name for field in self.fields)

    def key(self, name: str) -> str:
        """The stable widget key of a field."""
        return f"{self.page}_{name}"

    def defaults(self) -> dict[str, Value]:
        """The default of every field."""
        return {field.name: field.default for field in self.fields}

    def complete(self, values: Mapping[str, object]) -> dict[str, Value]:
        """A value for every field: the given one where the field can have it, else the default."""
        out = self.defaults()
        for field in self.fields:
            given = values.get(field.name, field.default)
            try:
                out[field.name] = field.check(given)  # type: ignore[arg-type]  # check refuses every other type
            except RefusedError:
                continue
        return out

    def to_link(self, values: Mapping[str, Value]) -> Link:
        """Only what differs from the defaults, with the version."""
        params = {
            field.url: field.format(values[field.name])
            for field in self.fields
            if field.name in values and values[field.name] != field.default
        }
        if not params:
            return Link({})
        limit = LIMITS["url_text"].value
        count = sum(len(name) + len(text) + 2 for name, text in params.items())
        if count > limit:
            return Link({}, fill(LINK_TOO_LONG, count=count, limit=limit))
        for field in self.fields:
            text = params.get(field.url, "")
            if field.kind is Kind.TEXT and len(text) > field.most_chars:
                # It would be refused when it is read, and the page would open without it.
                return Link({}, fill(LINK_TOO_LONG, count=len(text), limit=field.most_chars))
        return Link({VERSION_NAME: VERSION, **params})

    def from_link(self, params: Mapping[str, str]) -> Read:
        """Values for every field; whatever the link says that this table does not know is refused by name."""
        values, refused = self.defaults(), []
        by_url = {field.url: field for field in self.fields}
        if params.get(VERSION_NAME, VERSION) != VERSION:
            refused.append(fill(OTHER_VERSION, value=shorten(params[VERSION_NAME])))
        unknown = []
        for name, text in params.items():
            if name == VERSION_NAME:
                continue
            if name not in by_url:
                unknown.append(shorten(name))
                continue
            field = by_url[name]
            try:
                values[field.name] = field.parse(text)
            except RefusedError as reason:
                refused.append(fill(REFUSED, label=field.label, value=shorten(text), reason=reason))
        if len(unknown) > 1:
            names, more = ", ".join(unknown[:_NAMED]), " and others" if len(unknown) > _NAMED else ""
            refused.append(fill(UNKNOWN_MANY, count=len(unknown), names=names, more=more))
        elif unknown:
            refused.append(fill(UNKNOWN, name=unknown[0]))
        return Read(values, tuple(refused))


def repeated(counts: Mapping[str, int]) -> tuple[str, ...]:
    """A sentence for each name that a link gives more than once."""
    many = [(name, count) for name, count in counts.items() if count > 1]
    return tuple(fill(REPEATED, name=shorten(name), count=count) for name, count in many[:_NAMED])


def shorten(text: str, shown: int = _SHOWN) -> str:
    """At most `shown` characters of a value, printable, with an ellipsis when there is more."""
    printable = "".join(c if c.isprintable() else "·" for c in text[:shown])
    return printable + ("…" if len(text) > shown else "")


def changed(before: Mapping[str, Value], after: Mapping[str, Value], names: Iterable[str]) -> tuple[str, ...]:
    """Those of `names` whose value differs."""
    return tuple(name for name in names if before.get(name) != after.get(name))
