"""The inputs of the Challenges page: which set, which seed, which challenge, and the class tally that it takes part in.

A teacher's link is short enough to be read from a projector: ``/challenges?s=easy&seed=7`` fixes set and seed,
``/challenges?c=17`` is one challenge, and ``t=`` is the room in which the answers of a class are counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from core.base.text import fill
from core.challenges.challenge import Challenge, Kind, Level
from core.challenges.generate import MORE, generated
from core.challenges.loader import reviewed
from core.inputs.fields import FieldTable, InputField, Value
from core.inputs.fields import Kind as FieldKind

PAGE: Final = "challenges"
ALL, EASY, MEDIUM, HARD = "all", "easy", "mid", "hard"
#: Set -> its name for a reader.
SETS: Final[Mapping[str, str]] = {
    ALL: "All, from easy to hard",
    EASY: "Easy",
    MEDIUM: "Medium",
    HARD: "Hard",
    Kind.PREDICT: "Predict",
    Kind.FIX: "Fix it",
    Kind.SPOT: "Spot it",
    MORE: "Without end",
}
#: Seeds of two digits, so that every link with a tally stays within `LINK`; more than anybody will ever use up.
SEEDS: Final = 99
#: Challenges of one seed that a link can name.
LAST: Final = 999
#: Characters of a path and its query that a projector's reader types.
LINK: Final = 40
#: Of a tally's code, and with the teacher's own part behind it.
CODE, OWNER = 4, 8
_LEVELS: Final = {EASY: Level.EASY, MEDIUM: Level.MEDIUM, HARD: Level.HARD}

FIELDS: Final = FieldTable(
    PAGE,
    (
        InputField("set", "s", FieldKind.CHOICE, ALL, fill("Set"), options=tuple(map(str, SETS))),
        InputField("seed", "seed", FieldKind.WHOLE, 0, fill("Seed"), low=0, high=SEEDS),
        InputField("challenge", "c", FieldKind.WHOLE, 0, fill("Challenge"), low=0, high=LAST),
        InputField("tally", "t", FieldKind.TEXT, "", fill("Room code"), max_chars=CODE + 1 + OWNER),
    ),
)


def challenges_of(name: str) -> tuple[Challenge, ...]:
    """The reviewed challenges of a set, from easy to hard; none for what is generated."""
    if name == MORE:
        return ()
    found = sorted(reviewed(), key=lambda one: (one.level, one.number))
    if name in _LEVELS:
        return tuple(one for one in found if one.level is _LEVELS[name])
    return tuple(one for one in found if name == ALL or one.kind == name)


def challenge_at(name: str, seed: int, number: int) -> Challenge | None:
    """The challenge that a link names; None for number 0 (the overview), and where there is no such challenge.

    One that is in another set is there all the same: ``?c=17`` is one challenge, whatever the set.
    """
    if number < 1:
        return None
    if name == MORE:
        return generated(seed, number)
    return next((one for one in reviewed() if one.number == number), None)


def neighbours(name: str, number: int) -> tuple[int, int]:
    """The numbers of the challenge before and of the one after, in the order of the set; 0 where there is none."""
    if name == MORE:
        return number - 1, number + 1 if number < LAST else 0
    numbers = [one.number for one in challenges_of(name)]
    if number not in numbers:
        return 0, numbers[0] if numbers else 0
    at = numbers.index(number)
    return (numbers[at - 1] if at else 0), (numbers[at + 1] if at + 1 < len(numbers) else 0)


def short_link(values: Mapping[str, Value]) -> str:
    """Path and query with what differs from the defaults, and no version: as short as it can be read from a board."""
    params = [
        (field.url, field.format(values[field.name]))
        for field in FIELDS.fields
        if values.get(field.name, field.default) != field.default
    ]
    query = "&".join(f"{name}={text}" for name, text in params)
    return f"/{PAGE}?{query}" if query else f"/{PAGE}"
