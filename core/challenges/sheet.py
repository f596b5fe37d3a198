"""What a learner did in this session, and the result sheet of it: nothing about a person, and nothing that was typed."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any, Final

from core.challenges.challenge import Challenge, Kind, Level

SCHEMA: Final = 1
PACKAGES: Final = ("jax", "jaxlib", "flax")
COLUMNS: Final = ("challenge", "kind", "level", "tries", "hints", "solution_shown", "result", "seed", *PACKAGES)
SOLVED, UNSOLVED = "right", "wrong"


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of one challenge so far.

    Attributes:
        key, kind, level: of the challenge.
        seed: of the class.
        tries: answers that were graded.
        hints: that were opened.
        right: whether one of the answers was.
        shown: whether the answer was shown before one was right.
    """

    key: str
    kind: Kind
    level: Level
    seed: int
    tries: int = 0
    hints: int = 0
    right: bool = False
    shown: bool = False

    @classmethod
    def of(cls, challenge: Challenge, seed: int) -> Attempt:
        """None yet."""
        return cls(challenge.key, challenge.kind, challenge.level, seed)

    @property
    def over(self) -> bool:
        """Whether there is nothing more to find out."""
        return self.right or self.shown

    def tried(self, right: bool) -> Attempt:
        """After one more graded answer. What was solved, or shown, is not graded any more."""
        return self if self.over else replace(self, tries=self.tries + 1, right=right)

    def hinted(self, hints: int) -> Attempt:
        """With so many hints opened, at least."""
        return self if self.over else replace(self, hints=max(self.hints, hints))

    def given_up(self) -> Attempt:
        """With the answer shown."""
        return self if self.over else replace(self, shown=True)


@cache
def versions() -> Mapping[str, str]:
    """What ran it."""
    return {name: version(name) for name in PACKAGES}


def rows(attempts: Iterable[Attempt]) -> list[dict[str, Any]]:
    """A row for each challenge that was tried, or whose answer was looked at."""
    return [
        {
            "challenge": one.key,
            "kind": str(one.kind),
            "level": int(one.level),
            "tries": one.tries,
            "hints": one.hints,
            "solution_shown": one.shown,
            "result": SOLVED if one.right else UNSOLVED,
            "seed": one.seed,
            **versions(),
        }
        for one in attempts
        if one.tries or one.shown
    ]


def as_csv(attempts: Iterable[Attempt]) -> bytes:
    """The sheet as CSV (UTF-8, a header, truth values as 0 and 1). No cell can begin with a formula: all are ours."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows({**row, "solution_shown": int(row["solution_shown"])} for row in rows(attempts))
    return out.getvalue().encode()


def as_json(attempts: Iterable[Attempt]) -> bytes:
    """The sheet as JSON: ``{"schema": 1, "versions": {…}, "results": [{…}]}``."""
    results = [{name: value for name, value in row.items() if name not in PACKAGES} for row in rows(attempts)]
    sheet = {"schema": SCHEMA, "versions": dict(versions()), "results": results}
    return json.dumps(sheet, indent=1).encode()
