"""A baseline in memory: the state of a page, and for each case what became of it, taken apart into leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from core.base.parting import Stage
from core.base.text import fill
from core.base.tolerance import Tolerance
from core.inputs.fields import Value
from core.regress.case import Became, Case, CaseName, Made, Rows
from core.regress.trees import Leaf, leaves, structure
from core.weights.cell import CellWeights

NO_TOLERANCE = "the file has no tolerance for the backend “{backend}”"


class NoToleranceError(ValueError):
    """The file does not say how equal results must be on this backend."""


@dataclass(frozen=True, slots=True, eq=False)
class Flat:
    """A tree taken apart: its structure as text, and its leaves by path, in their order."""

    structure: str
    leaves: tuple[tuple[str, Leaf], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """One case as it is kept.

    Attributes:
        name, words: which, and what is special about it.
        values: of the page.
        became, why: how it ended; for one that must fail, with which codes.
        stages: by stage and root.
        rows, backwards, computed, loss: as of `Made`.
    """

    name: CaseName
    words: str
    values: Mapping[str, Value]
    became: Became
    why: tuple[str, ...] = ()
    stages: Mapping[Stage, Mapping[str, Flat]] = field(default_factory=dict)
    rows: Mapping[str, Rows] = field(default_factory=dict)
    backwards: int = 0
    computed: frozenset[str] = frozenset()
    loss: str = ""

    @property
    def count(self) -> int:
        """How many leaves there are."""
        return sum(len(tree.leaves) for trees in self.stages.values() for tree in trees.values())


@dataclass(frozen=True, slots=True, eq=False)
class Baseline:
    """What a file holds.

    Attributes:
        page, values: the state.
        cases: what became of each.
        left_out: cases that the state has no inputs for.
        seed: of the numbers that stand for typed ones.
        replaced: the fields whose typed numbers were replaced by seeded ones.
        own: whether the person chose to keep what was typed.
        versions, backend: what it was recorded with.
        tolerance: by backend and dtype.
        reason: why it was recorded anew; "" where there was none before.
        weights: parameters from a file, where the state uses them.
    """

    page: str
    values: Mapping[str, Value]
    cases: tuple[Kept, ...]
    versions: Mapping[str, str]
    backend: str
    tolerance: Mapping[str, Mapping[str, tuple[float, float]]]
    left_out: tuple[CaseName, ...] = ()
    seed: int = 0
    replaced: tuple[str, ...] = ()
    own: bool = False
    reason: str = ""
    weights: CellWeights | None = None

    def tolerances(self, backend: str) -> Mapping[str, Tolerance]:
        """By dtype, of a backend; what is not there is exact.

        Raises:
            NoToleranceError: the file has none.
        """
        if backend not in self.tolerance:
            raise NoToleranceError(fill(NO_TOLERANCE, backend=backend))
        return {name: Tolerance(rtol, atol) for name, (rtol, atol) in self.tolerance[backend].items()}

    @property
    def not_finite(self) -> tuple[tuple[CaseName, str, int], ...]:
        """(case, leaf, count) of every leaf with numbers that are NaN or infinite."""
        found = []
        for case in self.cases:
            for trees in case.stages.values():
                for path, leaf in (pair for tree in trees.values() for pair in tree.leaves):
                    count = (
                        0
                        if isinstance(leaf, str) or leaf.dtype.kind in "biu"
                        else int((~np.isfinite(leaf.astype(np.float64))).sum())
                    )
                    if count:
                        found.append((case.name, path, count))
        return tuple(found)


def kept(case: Case, made: Made) -> Kept:
    """What is kept of a case that was run."""
    return Kept(
        case.name,
        case.words,
        case.values,
        made.became,
        made.why,
        {stage: flat(trees) for stage, trees in made.stages.items()},
        {root: rows for root, rows in made.rows.items() if any(root in trees for trees in made.stages.values())},
        made.backwards,
        made.computed,
        made.loss,
    )


def flat(trees: Mapping[str, object]) -> dict[str, Flat]:
    """Trees by root, taken apart."""
    return {root: Flat(structure(tree), tuple(leaves(root, tree))) for root, tree in trees.items()}
