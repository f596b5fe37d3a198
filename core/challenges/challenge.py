"""A challenge: a story, a program or two, what is asked, hints in steps, and why the answer is what it is.

No answer stands in it. What a program gives, and which code it breaks, is found by running it (`core.challenges.grading`).
"""

from __future__ import annotations

import enum
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from core.base.text import fill
from core.catalogue.documents import DOCUMENTS, Document
from core.doctor import grade_job


class Kind(enum.StrEnum):
    """What is to be done."""

    PREDICT = "predict"
    FIX = "fix"
    SPOT = "spot"

    @property
    def text(self) -> str:
        """For a reader."""
        return fill(_KIND[self])


class Level(enum.IntEnum):
    """How hard it is."""

    EASY = 1
    MEDIUM = 2
    HARD = 3

    @property
    def text(self) -> str:
        """For a reader."""
        return fill(_LEVEL[self])


class What(enum.StrEnum):
    """What of a value is asked."""

    SHAPE = "shape"
    DTYPE = "dtype"
    VALUE = "value"


class Side(enum.StrEnum):
    """Where one of two programs stands."""

    LEFT = "left"
    RIGHT = "right"


_KIND: Final = {Kind.PREDICT: "Predict", Kind.FIX: "Fix it", Kind.SPOT: "Spot it"}
_LEVEL: Final = {Level.EASY: "easy", Level.MEDIUM: "medium", Level.HARD: "hard"}
#: An ask as it is written: ``shape of ys``, ``value of carry[0]``.
ASK: Final = re.compile(r"(?P<what>shape|dtype|value) of (?P<name>[A-Za-z_]\w*)(?P<path>(?:\[[^\[\]]+\])*)")


@dataclass(frozen=True, slots=True)
class Ask:
    """One question of a "predict": the shape, dtype or value of a name of the program, or of a leaf in it.

    Attributes:
        what: what is asked.
        name: of the program.
        path: of the leaf as `jax.tree_util.keystr` prints it, ``[0]``; "" for the value itself.
    """

    what: What
    name: str
    path: str = ""

    @property
    def of(self) -> str:
        """What it is asked of, as code."""
        return self.name + self.path

    def __str__(self) -> str:
        return f"{self.what} of {self.of}"


@dataclass(frozen=True, slots=True)
class Challenge:
    """One challenge.

    Attributes:
        key: its name in results: ``17``, or ``more-7-3`` for the third that seed 7 generates.
        number: what a link calls it within its set.
        kind, level: see there.
        title: a few words.
        story: what it is about and what is asked (Markdown).
        program: "predict": what is run; "fix": the broken script; "spot": the one that is silently wrong.
        other: "fix": the script mended, one way of it; "spot": the one that is right; "" for "predict".
        asks: of a "predict".
        results: of a "fix", names whose values must come out right.
        swap: of a "fix", assignments with other data, one a line: the script must be right for them, too.
        options: of a "spot", the codes to choose from, one of which the wrong one breaks; in the order shown.
        hints: in steps.
        why: why the answer is what it is, a sentence or two (Markdown).
        see: where that can be seen: a code of the catalogue, or a page's path and query; "" for the code it breaks.
        documents: pages of the official documentation that speak of it.
    """

    key: str
    number: int
    kind: Kind
    level: Level
    title: str
    story: str
    program: str
    other: str = ""
    asks: tuple[Ask, ...] = ()
    results: tuple[str, ...] = ()
    swap: str = ""
    options: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    why: str = ""
    see: str = ""
    documents: tuple[Document, ...] = ()

    def side(self, seed: int) -> Side:
        """On which side the wrong one of two stands for a class with this seed."""
        return random.Random(f"side:{self.key}:{seed}").choice(list(Side))  # noqa: S311  # a coin, no secret

    def shown(self, seed: int) -> Mapping[Side, str]:
        """The two programs of a "spot", left and right."""
        wrong = self.side(seed)
        return {side: self.program if side is wrong else self.other for side in Side}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the program whose values are wanted of a run."""
        return tuple(dict.fromkeys([*(ask.name for ask in self.asks), *self.results]))

    def requests(self) -> tuple[dict[str, Any], ...]:
        """What workers are asked, for the answers to be known: of the program, and of the other where there is one."""
        if not self.other:
            return (self._request(self.program),)
        # What the broken one gives with other data is of no interest.
        return self._request(self.program) | {"swap": ""}, self._request(self.other)

    def attempt(self, text: str) -> dict[str, Any]:
        """What a worker is asked of a learner's script."""
        return self._request(text)

    def _request(self, text: str) -> dict[str, Any]:
        proofs = self.kind is Kind.SPOT
        return grade_job.request(text, self.names, self.swap, first=self.program, proofs=proofs)


def documents_named(titles: Iterable[str]) -> tuple[Document, ...]:
    """Pages of documentation by their titles.

    Raises:
        KeyError: there is none with this title.
    """
    known = {document.title: document for document in DOCUMENTS}
    return tuple(known[title] for title in titles)
