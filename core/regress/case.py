"""What a baseline is made of: cases of a page's state, and what became of each when it was run."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.base.parting import Stage
from core.inputs.fields import Value

#: By root (``carry``, ``grad``): a pytree of NumPy arrays, or of words.
type Trees = Mapping[str, Any]


class CaseName(enum.StrEnum):
    """The small set, in its order."""

    STANDARD = "standard"
    ONE = "one example"
    ZEROS = "zeros"
    BOUNDARY = "boundary values"
    UNEVEN = "uneven axes"
    EMPTY = "empty sequence"
    INVALID = "invalid shape"


class Became(enum.StrEnum):
    """How a case ended."""

    RAN = "ran"
    #: The contract's rules say what is wrong, by code; or what was raised, by type.
    BROKEN = "broken"
    #: An input of the page cannot be used, by the name of its field.
    REFUSED = "refused"


class Rows(enum.StrEnum):
    """What the first axis of a leaf counts."""

    #: t, in the order of the data.
    T = "t"
    #: Steps in the order of the visits.
    VISITS = "visits"
    #: The same with init before them: row 0 is init, row p what step p − 1 left.
    CARRIES = "carries"
    #: The same where each example is read in an order of its own: a row is a visit, of different t in each example.
    READS = "reads"


@dataclass(frozen=True, slots=True)
class Case:
    """One case: the page's values, and in words what is special about them."""

    name: CaseName
    values: Mapping[str, Value]
    words: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """What became of a case.

    Attributes:
        became: how it ended.
        why: codes (``S108``), types of exceptions, or names of fields; empty where it ran.
        stages: values by stage (`core.base.parting.Stage`), on the host; empty where it did not run.
        rows: what the first axis of a root's leaves counts (`Rows`), where it counts steps.
        backwards: T where step p reads x at T − 1 − p; 0 where it reads x at p.
        computed: the floating-point dtypes it was computed in, where they may be less precise than its leaves.
        loss: what the scalar is that was differentiated; "" where there is none.
    """

    became: Became
    why: tuple[str, ...] = ()
    stages: Mapping[Stage, Trees] = field(default_factory=dict)
    rows: Mapping[str, Rows] = field(default_factory=dict)
    backwards: int = 0
    computed: frozenset[str] = frozenset()
    loss: str = ""


class TooLargeError(ValueError):
    """What was asked for is more than a baseline may hold; the message is for a reader."""


#: Stages whose values are numbers that were worked out.
VALUES: Final = (Stage.FORWARD, Stage.LOSS, Stage.GRADIENTS, Stage.UPDATE)


def refused(*fields: str) -> Made:
    """These inputs cannot be used."""
    return Made(Became.REFUSED, tuple(dict.fromkeys(fields)))


def broken(*codes: str) -> Made:
    """These rules are broken."""
    return Made(Became.BROKEN, tuple(dict.fromkeys(codes)))
