"""Where a fault is: a span of a learner's code, or an input of a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open stretch of source: lines count from 1, columns from 0, in characters."""

    line: int
    col: int
    end_line: int
    end_col: int


@dataclass(frozen=True, slots=True)
class Field:
    """An input of a page, by its stable widget key (``scan_init``), with the words on its label."""

    key: str
    label: str


type Place = Span | Field


@dataclass(frozen=True, slots=True)
class Because:
    """The second place: where the expectation came from ("init sets the contract here")."""

    place: Place | None
    text: str


@dataclass(frozen=True, slots=True)
class Places:
    """Places by role. A role may be narrowed by a path (``init:carry[0]``); looking one up falls back to the role.

    Roles of a scan: ``step``, ``return``, ``init``, ``init_dtype``, ``xs``, ``length``, ``unroll``, ``reverse``, ``scan``;
    in a script ``xs`` is the argument and ``xs_bound`` the expression it was bound to (``init`` is that of init).
    Roles of a cell: ``cell``, ``cell_rngs``, ``carry_shape``, ``carry_rngs``, ``carry``, ``input``; in a script also the
    whole calls, ``cell_call``, ``carry_call`` and ``call`` (the step's).
    """

    by_role: Mapping[str, Place] = field(default_factory=dict)

    def find(self, *roles: str) -> Place | None:
        """The first known place among the roles, each tried with its path and then without it."""
        for role in roles:
            for key in (role, role.partition(":")[0]):
                if key in self.by_role:
                    return self.by_role[key]
        return None
