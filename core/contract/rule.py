"""What a rule is: data about one mistake and a function that finds it in the facts.

A rule file defines `RULE = Rule(...)`; its module docstring is the catalogue page (what, why, bad, good). Files in
`core/contract/rules/` are found by themselves: adding one adds the rule.
"""

from __future__ import annotations

import enum
import importlib
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from core.base.avals import LeafType
from core.base.places import Because, Place
from core.base.violation import Severity
from core.contract.subject import Subject


class Stage(enum.IntEnum):
    """How far execution had to get for a rule to know: each stage is only reached when the one before was clean."""

    #: Sizes alone, before anything is built or computed: what is over a limit is never tried.
    LIMIT = -1
    INPUT = 0
    TRACE = 1
    RUN = 2
    DONE = 3
    #: Not part of the check before the plot: slow comparisons (`check_late`) that come after it.
    LATE = 4


class Jax(enum.StrEnum):
    """What JAX does at this mistake."""

    RAISES = "raised"
    SILENT = "silent"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Repair:
    """A proposal: how the subject would be mended. It becomes a `Fix` only after it was applied and checked.

    Attributes:
        kind: what is changed, by role (``init_dtype``, ``xs_axes``, …); pages translate it into their own inputs.
        title: what the button would say.
        apply: the mended subject; None when it does not fit this subject.
        path: the leaf it is about.
        value: what it is set to, for the pages' translation.
    """

    kind: str
    title: str
    apply: Callable[[Any], Subject | None]
    path: str = ""
    value: Any = None


@dataclass(frozen=True, slots=True)
class Measure:
    """A number on the learner's data that moves and should not: measured before and after the fix.

    Attributes:
        claim: one sentence saying what is done and watched.
        of: the number, for any subject of the same kind (it is run on the mended one too).
        expected: what it is when the contract is kept.
    """

    claim: str
    of: Callable[[Any], float]
    expected: float = 0.0


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says of one fault; the engine turns it into a `Violation` with verified fixes and proof.

    `severity`, `silent` and `title` override the rule's own where a code covers several cases. `path` is the leaf at fault;
    `covers` are more leaves that the same fault breaks (both parts of a cell's carry): what a beaten rule says of them
    is dropped too.
    """

    message: str
    place: Place | None
    because: Because | None = None
    expected: tuple[LeafType, ...] = ()
    got: tuple[LeafType, ...] = ()
    repairs: tuple[Repair, ...] = ()
    measure: Measure | None = None
    severity: Severity | None = None
    silent: bool | None = None
    why: str | None = None
    path: str = ""
    covers: tuple[str, ...] = ()
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One mistake.

    Attributes:
        code, name: the stable code, and a name after the mistake (``carry-shape-changes``).
        title: the mistake in a few words, for lists.
        severity: the default one.
        jax: what JAX does.
        stage: when it can be known.
        why: the contract sentence (a template).
        check: finds it; gets `ScanFacts` or `CellFacts` and yields findings.
        on: names of the facts it understands: ``scan``, ``cell``, ``log`` (a script's cells outside scans), ``sequence``
            (a layer over sequences), ``training`` (one update), ``script``.
        beats: codes that say the same less precisely: they are dropped when this one was found (for the same path,
            or when either has no path).
    """

    code: str
    name: str
    title: str
    severity: Severity
    jax: Jax
    stage: Stage
    why: str
    check: Callable[[Any], Iterable[Finding]]
    on: frozenset[str] = frozenset({"scan"})
    beats: frozenset[str] = frozenset()
    page: str = ""


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of the package, by code, each with its module docstring as `page`."""
    from dataclasses import replace

    from core.contract import rules

    out = []
    for info in pkgutil.iter_modules(rules.__path__):
        module = importlib.import_module(f"{rules.__name__}.{info.name}")
        if hasattr(module, "RULE"):
            out.append(replace(module.RULE, page=module.__doc__ or ""))
    return tuple(sorted(out, key=lambda rule: rule.code))
