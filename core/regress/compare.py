"""A baseline compared with what its cases become now: which leaf moved, by how much, and at which stage first.

Stages are those of the divergence finder (`core.base.parting.Stage`), in its order: a later one can only be as right as
those before it. A leaf is equal when every number is within the tolerance that the file says for its dtype on the backend
that checks; whole numbers, bools and words are equal or not. NaN equals NaN at the same place, and that is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.base.parting import Stage
from core.base.text import fill
from core.base.tolerance import EXACT, Tolerance, difference
from core.regress.baseline import Baseline, Flat, Kept, kept
from core.regress.case import VALUES, Became, Case, CaseName, Rows
from core.regress.environment import backend, changes
from core.regress.state import page_state
from core.regress.trees import Leaf
from core.runners.parting import number_text

type Array = np.ndarray[Any, Any]

#: The name of what is compared before any leaf: how the case ended.
OUTCOME: Final = "outcome"
NOTHING = "nothing"
RAN, BROKEN, REFUSED = "runs", "fails with {why}", "is refused at {why}"
TYPE = "{dtype}[{shape}]"


@dataclass(frozen=True, slots=True)
class Place:
    """Where in a leaf.

    Attributes:
        index: of the number in its leaf, from the first axis on.
        t: the step, where the leaf counts steps and it is one; the number of a visit where `visit`.
        init: it is in the first row of a carry: init, before any step.
        visit: examples are read in orders of their own: `t` counts visits.
    """

    index: tuple[int, ...] = ()
    t: int | None = None
    init: bool = False
    visit: bool = False


@dataclass(frozen=True, slots=True)
class LeafCheck:
    """One leaf, then and now.

    Attributes:
        case, stage, leaf: which.
        moved: it is not equal.
        largest: the largest absolute difference; infinite where shapes or types differ, or one is finite and the other
            is not.
        allowed: what the tolerance allows at the first number that is beyond it, in the unit of the values.
        tolerance: of its dtype; `dtype`: its name, "" of what is no array.
        then, now: the first value beyond the tolerance, or shapes, types, structures, words; "" where it did not move.
        place: of that value.
        same_bits: equal to the last bit.
        nan: numbers that are NaN in both at the same place.
    """

    case: CaseName
    stage: Stage
    leaf: str
    moved: bool = False
    largest: float = 0.0
    allowed: float = 0.0
    tolerance: Tolerance = EXACT
    then: str = ""
    now: str = ""
    place: Place = Place()
    same_bits: bool = False
    nan: int = 0
    dtype: str = ""

    @property
    def order(self) -> tuple[int, int, int]:
        """What comes first: the earlier stage, then the earlier case, then what is visited earlier."""
        timed = self.place.t is not None or self.place.init
        position = (self.place.index[0] if self.place.index else 0) if timed and self.stage in VALUES else 0
        return list(Stage).index(self.stage), list(CaseName).index(self.case), position


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of a check.

    Attributes:
        checks: every leaf of every case, in order.
        cases: how many cases there are.
        backend: on which they were run now; `recorded_on`: and then.
        changes: (name, then, now) of versions that differ.
    """

    checks: tuple[LeafCheck, ...]
    cases: int
    backend: str
    recorded_on: str
    changes: tuple[tuple[str, str, str], ...] = ()

    @property
    def leaves(self) -> int:
        """How many leaves were compared: all but the cases that must fail."""
        return sum(check.leaf != OUTCOME for check in self.checks)

    @property
    def same(self) -> bool:
        """Whether nothing moved."""
        return not any(check.moved for check in self.checks)

    @property
    def moved(self) -> tuple[LeafCheck, ...]:
        """What moved, what is first at the front."""
        return tuple(sorted((check for check in self.checks if check.moved), key=lambda check: check.order))

    @property
    def first(self) -> LeafCheck | None:
        """Where it moved first; None when nothing did."""
        return next(iter(self.moved), None)

    @property
    def farthest(self) -> LeafCheck | None:
        """The leaf with the largest difference; None where all are equal to the last bit."""
        apart = [check for check in self.checks if check.largest > 0]
        return max(apart, key=lambda check: check.largest, default=None)

    @property
    def nan(self) -> tuple[LeafCheck, ...]:
        """Leaves with numbers that are NaN in both."""
        return tuple(check for check in self.checks if check.nan)


class Checker:
    """One check under way: ``while checker.left: checker.step()``, then `verdict`.

    Raises:
        NoToleranceError: the file does not say how equal results must be on this backend.
    """

    def __init__(self, baseline: Baseline) -> None:
        self._baseline = baseline
        self._page = page_state(baseline.page)
        self._tolerances = baseline.tolerances(backend())
        self._waiting = list(baseline.cases)
        self._checks: list[LeafCheck] = []
        self.all = len(self._waiting)

    @property
    def left(self) -> int:
        """How many cases are still to be run."""
        return len(self._waiting)

    @property
    def now(self) -> CaseName:
        """The case that is next."""
        return self._waiting[0].name

    def step(self) -> None:
        """Run the next case and compare it.

        Raises:
            TooLargeError: it is more than a baseline may hold; no baseline that was recorded here is.
        """
        case = self._waiting.pop(0)
        made = self._page.run(case.values, self._baseline.weights)
        got = kept(Case(case.name, case.values, case.words), made)
        self._checks += compare(case, got, self._tolerances)

    @property
    def verdict(self) -> Verdict:
        """As far as it has come."""
        given = self._baseline
        return Verdict(tuple(self._checks), self.all, backend(), given.backend, changes(given.versions))


def check(baseline: Baseline) -> Verdict:
    """All of it at once. Raises what `Checker` raises."""
    checker = Checker(baseline)
    while checker.left:
        checker.step()
    return checker.verdict


# --- one case -------------------------------------------------------------------------------------------------------


def compare(want: Kept, got: Kept, tolerances: Mapping[str, Tolerance]) -> tuple[LeafCheck, ...]:
    """Every leaf of a case, then (`want`) and now (`got`)."""
    if (want.became, sorted(want.why)) != (got.became, sorted(got.why)):
        stage = Stage.DATA if Became.REFUSED in (want.became, got.became) else Stage.SHAPES
        return (
            LeafCheck(want.name, stage, OUTCOME, moved=True, largest=np.inf, then=_outcome(want), now=_outcome(got)),
        )
    if want.became is not Became.RAN:
        return (LeafCheck(want.name, Stage.SHAPES, OUTCOME, same_bits=True),)
    return tuple(_stages(want, got, tolerances))


def _outcome(case: Kept) -> str:
    template = {Became.RAN: RAN, Became.BROKEN: BROKEN, Became.REFUSED: REFUSED}[case.became]
    return fill(template, why=", ".join(case.why) or fill(NOTHING))


def _stages(want: Kept, got: Kept, tolerances: Mapping[str, Tolerance]) -> Iterator[LeafCheck]:
    if want.loss != got.loss:
        yield LeafCheck(want.name, Stage.LOSS, "loss", moved=True, largest=np.inf, then=want.loss, now=got.loss)
        return
    # Of then alone: what computes in fewer bits now must not be let off for it.
    computed = want.computed
    for stage in Stage:
        one, two = want.stages.get(stage, {}), got.stages.get(stage, {})
        for root in dict.fromkeys((*one, *two)):
            rows = want.rows.get(root, got.rows.get(root))
            for found in _tree(one.get(root), two.get(root), root, tolerances, computed):
                yield _placed(found, want, stage, rows)


def _placed(found: LeafCheck, case: Kept, stage: Stage, rows: Rows | None) -> LeafCheck:
    """The check of a leaf with its case, its stage and its t. Other shapes or types of values are a stage of their own."""
    typed = found.largest == np.inf and found.moved and not found.place.index and found.stage is Stage.SHAPES
    return LeafCheck(
        case.name,
        Stage.SHAPES if typed and stage in VALUES else stage,
        found.leaf,
        found.moved,
        found.largest,
        found.allowed,
        found.tolerance,
        found.then,
        found.now,
        _place(found.place.index, rows, case.backwards),
        found.same_bits,
        found.nan,
        found.dtype,
    )


def _place(index: tuple[int, ...], rows: Rows | None, backwards: int) -> Place:
    if rows is None or not index:
        return Place(index)
    if rows is Rows.T:
        return Place(index, index[0])
    first = rows in (Rows.CARRIES, Rows.READS)
    if first and index[0] == 0:
        return Place(index, None, init=True)
    position = index[0] - first
    visit = rows is Rows.READS
    return Place(index, backwards - 1 - position if backwards and not visit else position, visit=visit)


def _tree(
    one: Flat | None, two: Flat | None, root: str, tolerances: Mapping[str, Tolerance], computed: frozenset[str]
) -> Iterator[LeafCheck]:
    then, now = (fill(NOTHING) if tree is None else tree.structure for tree in (one, two))
    paths = ([] if tree is None else [path for path, _ in tree.leaves] for tree in (one, two))
    if one is None or two is None or then != now or next(paths) != next(paths):
        yield LeafCheck(CaseName.STANDARD, Stage.SHAPES, root, moved=True, largest=np.inf, then=then, now=now)
        return
    for (path, want), (_, got) in zip(one.leaves, two.leaves, strict=True):
        yield _leaf(path, want, got, tolerances, computed)


def _leaf(path: str, want: Leaf, got: Leaf, tolerances: Mapping[str, Tolerance], computed: frozenset[str]) -> LeafCheck:
    """One leaf; its case, stage and t are put in later. `Stage.SHAPES`: other shapes or types; `FORWARD`: values."""
    at = CaseName.STANDARD
    if isinstance(want, str) or isinstance(got, str):
        then, now = (leaf if isinstance(leaf, str) else _type(leaf) for leaf in (want, got))
        apart = then != now
        # A word is a value: another one is a matter of the stage it stands at.
        return LeafCheck(at, Stage.FORWARD, path, apart, np.inf if apart else 0.0, then=then if apart else "",
                         now=now if apart else "", same_bits=not apart)  # fmt: skip
    if (want.shape, want.dtype) != (got.shape, got.dtype):
        return LeafCheck(at, Stage.SHAPES, path, True, np.inf, then=_type(want), now=_type(got))
    used = _tolerance(want.dtype.name, tolerances, computed)
    found = difference(got, want, used)
    nan = int((np.isnan(_wide(want)) & np.isnan(_wide(got))).sum()) if want.dtype.kind not in "biu" else 0
    if found.within:
        bits = want.tobytes() == got.tobytes()
        return LeafCheck(
            at,
            Stage.FORWARD,
            path,
            False,
            found.largest,
            tolerance=used,
            same_bits=bits,
            nan=nan,
            dtype=want.dtype.name,
        )
    index = found.first or ()
    wanted = float(np.abs(_wide(want[index])))
    allowed = used.atol + used.rtol * (wanted if np.isfinite(wanted) else 0.0)
    return LeafCheck(
        at,
        Stage.FORWARD,
        path,
        True,
        found.largest,
        allowed,
        used,
        number_text(want[index]),
        number_text(got[index]),
        Place(index),
        nan=nan,
        dtype=want.dtype.name,
    )


def _wide(values: Any) -> Array:
    return np.asarray(values).astype(np.float64)


def _type(leaf: Array) -> str:
    return fill(TYPE, dtype=leaf.dtype.name, shape=",".join(map(str, leaf.shape)))


def _tolerance(dtype: str, tolerances: Mapping[str, Tolerance], computed: frozenset[str]) -> Tolerance:
    """Of the least precise dtype that a leaf is made with; whole numbers, bools and what has no entry are exact."""
    own = tolerances.get(dtype, EXACT)
    if own == EXACT:
        return own
    return max((own, *(tolerances.get(name, EXACT) for name in computed)), key=lambda used: (used.rtol, used.atol))
