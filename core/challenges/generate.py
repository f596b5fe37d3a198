"""Challenges without end: the n-th of a seed is the same in every process, on every machine, with every version of JAX.

Only Python's own random source is asked, seeded with a text (`random.seed`: hashed by SHA-512, not by `hash`). Each seed
goes through all templates of a kind, in an order of its own, before one comes again.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from core.challenges import make_fix, make_predict, make_spot
from core.challenges.challenge import Challenge, Kind, documents_named
from core.challenges.words import Made, Make

#: How the kinds take turns.
TURNS: Final = (Kind.PREDICT, Kind.SPOT, Kind.FIX)
TEMPLATES: Final[Mapping[Kind, tuple[Make, ...]]] = {
    Kind.PREDICT: make_predict.TEMPLATES,
    Kind.SPOT: make_spot.TEMPLATES,
    Kind.FIX: make_fix.TEMPLATES,
}
#: The name of what is generated, in links and results.
MORE: Final = "more"


def generated(seed: int, number: int) -> Challenge:
    """The challenge of a seed with this number.

    Args:
        seed: any whole number.
        number: from 1 on.

    Raises:
        ValueError: there is none below 1.
    """
    return made(*template_of(seed, number), seed, number)


def template_of(seed: int, number: int) -> tuple[Kind, int]:
    """Which template makes the challenge of a seed with this number: its kind, and its place among those of the kind.

    Raises:
        ValueError: there is none below 1.
    """
    if number < 1:
        raise ValueError(number)
    kind, turn = TURNS[(number - 1) % len(TURNS)], (number - 1) // len(TURNS)
    count = len(TEMPLATES[kind])
    order = random.Random(f"{kind}:{seed}:{turn // count}").sample(range(count), count)  # noqa: S311
    return kind, order[turn % count]


def made(kind: Kind, template: int, seed: int, number: int) -> Challenge:
    """What one template makes of a seed and a number."""
    one: Made = TEMPLATES[kind][template](random.Random(f"{seed}:{number}"))  # noqa: S311  # a lesson, no secret
    return Challenge(
        key=f"{MORE}-{seed}-{number}",
        number=number,
        kind=kind,
        level=one.level,
        title=one.title,
        story=one.story,
        program=one.program,
        other=one.other,
        asks=one.asks,
        results=one.results,
        swap=one.swap,
        options=one.options,
        hints=one.hints,
        why=one.why,
        see=one.see,
        documents=documents_named(one.docs),
    )
