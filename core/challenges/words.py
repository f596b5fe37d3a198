"""What generated challenges are made of: small stories, numbers that are easy to add, and the shape of a template."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from string import Template
from typing import Final

from core.challenges.challenge import Ask, Level

#: What grows, what comes, and one moment of it, as names in a program.
STORIES: Final = (
    ("jar", "coins", "day"),
    ("tank", "litres", "hour"),
    ("battery", "charge", "minute"),
    ("shelf", "books", "week"),
    ("queue", "people", "stop"),
    ("tower", "stones", "turn"),
    ("pond", "rain", "night"),
    ("basket", "apples", "tree"),
)


@dataclass(frozen=True, slots=True)
class Made:
    """What a template makes of a random source: the fields of a challenge that are its own (see `Challenge`)."""

    title: str
    story: str
    program: str
    hints: tuple[str, ...]
    why: str
    level: Level
    other: str = ""
    asks: tuple[Ask, ...] = ()
    results: tuple[str, ...] = ()
    swap: str = ""
    options: tuple[str, ...] = ()
    see: str = ""
    docs: tuple[str, ...] = ("jax.lax.scan",)


type Draw = random.Random
type Make = Callable[[Draw], Made]


def filled(program: str, **words: object) -> str:
    """A program with its ``$names`` put in; braces stay what they are in Python."""
    return Template(program.lstrip("\n")).substitute(words)


def halves(draw: Draw, count: int, low: int = 1, high: int = 8) -> list[float]:
    """Numbers that are whole or a half, different from one to the next: everybody adds them, and no float rounds them."""
    out: list[float] = []
    while len(out) < count:
        number = draw.randint(2 * low, 2 * high) / 2
        if not out or number != out[-1]:
            out.append(number)
    return out


def other_halves(draw: Draw, numbers: list[float], low: int = 1, high: int = 8) -> list[float]:
    """As many other numbers of the same kind; no entry is what it was."""
    return [draw.choice([n / 2 for n in range(2 * low, 2 * high + 1) if n / 2 != old]) for old in numbers]


def array(numbers: list[float]) -> str:
    """An array of these numbers, as code."""
    return f"jnp.array({numbers})"


def among(draw: Draw, right: str, others: tuple[str, ...], count: int = 4) -> tuple[str, ...]:
    """The right code among others, in the order of the codes, which tells nothing."""
    chosen = draw.sample([code for code in others if code != right], count - 1)
    return tuple(sorted((right, *chosen)))
