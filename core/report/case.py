"""What a report is made of, whatever was run: a case, and the criteria that every kind of case works out alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from core.base.outcome import Outcome, Report
from core.base.parting import Path, Stage, StageCheck
from core.base.text import fill
from core.base.tolerance import Difference, Tolerance, tolerance_of
from core.report.arrays import wild
from core.report.measure import Timed
from core.report.model import (
    Asked,
    Criterion,
    Declared,
    Input,
    Name,
    Negative,
    Seed,
    Setting,
    Status,
    UsedTolerance,
)
from core.runners.parting import REFERENCE, Computation, Record, checks, run

KEPT = "No rule is broken."
BROKEN = "{codes}."
NO_RULE = "{type} was raised, which no rule explains."
RAISED = "The program raised {type} before it could be measured."
OVER = "It is over a limit, and was not run."
FINITE = "{count} values."
WILD = "{bad} of {count} values are NaN or infinite{where}."
CAME_IN = "; {count} were so already in what went in"
NO_FLOATS = "There are no floating-point values."
FORWARD_ONLY = "Nothing is differentiated here."
ONE_MODE = "Nothing in it behaves otherwise in training."
NO_PADDING_HERE = "There is no padding."
WITHIN = "{count} leaves at the stages {stages}."
NOTHING_APART = "Nothing was compared."
PARTED = "{what}: stage {stage}, {leaf}{place}: {got}, and eager {want}.{rounding}"
ROUNDING = " It is within the tolerance of the largest number of its leaf: rounding of what cancels."
AT_STEP = " at step {t}"
ELSEWHERE = "{what}: {type} was raised at the stage {stage}: {message}"
ITSELF = "Eager itself raised {type} at the stage {stage}."
NONE_FAILED = "{count} of {count} raised what they must."
FAILED = "{what} It must raise {expected}, and {raised}."
RAISED_OTHER, RAISED_NOTHING = "{type} was raised", "nothing was raised"
AS_SAID = "{count} leaves."
DIFFER = "{path} is {got}, and must be {want}{more}."
MORE = "; {count} more differ"

#: The paths that are compared with eager, by the criterion they are.
PATHS: Final[Mapping[Name, Path]] = {Name.JIT: Path.JIT, Name.VMAP: Path.VMAP}


class UnreportableError(ValueError):
    """There is nothing to make a report of; the message says why, for a reader."""


#: Something that is done for what it leaves behind.
type Step = Callable[[], object]


@dataclass(slots=True, eq=False)
class Case:
    """One thing that a report is of.

    Attributes:
        page, title, about: what it is.
        settings, inputs, seeds: what went in.
        contract: what is known and declared of the data.
        asked: requests for keys; `asked_cut`: there were more.
        dtypes: of what came out, for the table of tolerances.
        negatives: run already.
        work: by criterion, what works it out; all but `NEGATIVE`.
        timed: what a latency is of; `not_timed`: why there is none.
        begin: steps that run what the other paths are compared with, and keep it.
        ahead: by criterion, steps to be made before it, each short: most of them compile what is asked for then.
        close: takes back what a script left behind.
    """

    page: str
    title: str
    about: str
    settings: tuple[Setting, ...]
    inputs: tuple[Input, ...]
    contract: Declared
    work: Mapping[Name, Callable[[], Criterion]]
    negatives: tuple[Negative, ...]
    seeds: tuple[Seed, ...] = ()
    asked: tuple[Asked, ...] = ()
    asked_cut: bool = False
    dtypes: tuple[str, ...] = ("float32",)
    timed: Callable[[], Timed] | None = None
    not_timed: str = ""
    begin: tuple[Step, ...] = ()
    ahead: Mapping[Name, tuple[Step, ...]] = field(default_factory=dict)
    close: Callable[[], None] = field(default=lambda: None)

    @property
    def tolerances(self) -> tuple[UsedTolerance, ...]:
        """Of what came out."""
        found: dict[str, Tolerance] = {}
        for name in self.dtypes:
            if not name.startswith("key<"):
                found[name] = tolerance_of(name)
        return tuple(UsedTolerance(name, one.rtol, one.atol) for name, one in sorted(found.items()))


def all_work(
    known: Mapping[Name, Callable[[], Criterion]], needs: Iterable[Name], missing: Callable[[], str]
) -> dict[Name, Callable[[], Criterion]]:
    """The work of a case of which some needs a run to have come to its end.

    Args:
        known: by criterion.
        needs: those that need the run.
        missing: why there is none; "" where there is one.
    """

    def guarded(name: Name, work: Callable[[], Criterion]) -> Callable[[], Criterion]:
        def one() -> Criterion:
            reason = missing()
            return not_run(name, reason) if reason else work()

        return one

    return {**known, **{name: guarded(name, known[name]) for name in needs}}


def said(name: Name, detail: str) -> Callable[[], Criterion]:
    """It does not apply, for this reason."""
    return lambda: no_matter(name, detail)


# --- criteria -------------------------------------------------------------------------------------------------------


def not_run(name: Name, detail: str) -> Criterion:
    """It applies and could not be measured."""
    return Criterion(name, Status.NOT_RUN, detail=detail)


def no_matter(name: Name, detail: str) -> Criterion:
    """It does not apply."""
    return Criterion(name, Status.NOT_APPLICABLE, detail=detail)


def rules(report: Report) -> Criterion:
    """`RULES`: the contract's verdict."""
    broken = report.broken
    if broken:
        codes = ", ".join(dict.fromkeys(v.code for v in broken))
        return Criterion(Name.RULES, Status.FAIL, float(len(broken)), "0", fill(BROKEN, codes=codes))
    if report.outcome is Outcome.ERROR and report.error is not None:
        return Criterion(Name.RULES, Status.FAIL, 1.0, "0", fill(NO_RULE, type=report.error.type))
    return Criterion(Name.RULES, Status.PASS, 0.0, "0", fill(KEPT))


def finite(name: Name, tree: Any, given: Any = None) -> Criterion:
    """`OUTPUTS`, `LOSS` or `GRADIENTS`. `given`: what went in, to say where values that are not finite came from."""
    bad, count = wild(tree)
    if not count:
        return no_matter(name, fill(NO_FLOATS))
    if not bad:
        return Criterion(name, Status.PASS, 0.0, "0", fill(FINITE, count=count))
    came, _ = wild(given)
    where = fill(CAME_IN, count=came) if came else ""
    return Criterion(name, Status.FAIL, float(bad), "0", fill(WILD, bad=bad, count=count, where=where))


@dataclass(frozen=True, slots=True)
class Leaf:
    """What a leaf is, and what the contract says it must be, both as ``float32[2,4]``."""

    path: str
    got: str
    want: str


def shapes(leaves: Iterable[Leaf]) -> Criterion:
    """`SHAPES`: every leaf against what it must be."""
    every = list(leaves)
    off = [leaf for leaf in every if leaf.got != leaf.want]
    if not off:
        return Criterion(Name.SHAPES, Status.PASS, 0.0, "0", fill(AS_SAID, count=len(every)))
    first = off[0]
    more = fill(MORE, count=len(off) - 1) if len(off) > 1 else ""
    said = fill(DIFFER, path=first.path, got=first.got, want=first.want, more=more)
    return Criterion(Name.SHAPES, Status.FAIL, float(len(off)), "0", said)


def type_text(shape: Sequence[int], dtype: Any) -> str:
    """``float32[2,4]``."""
    return f"{dtype}[{','.join(map(str, shape))}]"


def of_difference(name: Name, apart: Difference, detail: str, *, rounding: str = "") -> Criterion:
    """A comparison of two ways as a criterion. `rounding`: says that a difference beyond the bound is no more than that."""
    passed = apart.within or bool(rounding)
    status = Status.PASS if passed else Status.FAIL
    return Criterion(name, status, apart.largest, apart.tolerance.text, " ".join(filter(None, (detail, rounding))))


def negative(what: str, expected: str, attempt: Callable[[], Any]) -> Negative:
    """Run something wrong, and keep the class of what it raises."""
    try:
        attempt()
    except Exception as error:  # noqa: BLE001  # whatever it raises is the answer
        return Negative(what, expected, type(error).__name__)
    return Negative(what, expected, "")


def negatives_criterion(tests: Sequence[Negative]) -> Criterion:
    """`NEGATIVE`: every one raised what it must."""
    bad = [one for one in tests if not one.ok]
    if not bad:
        return Criterion(Name.NEGATIVE, Status.PASS, 0.0, "0", fill(NONE_FAILED, count=len(tests)))
    first = bad[0]
    raised = fill(RAISED_OTHER, type=first.raised) if first.raised else fill(RAISED_NOTHING)
    said = fill(FAILED, what=first.what, expected=first.expected, raised=raised)
    return Criterion(Name.NEGATIVE, Status.FAIL, float(len(bad)), "0", said)


# --- paths ----------------------------------------------------------------------------------------------------------


class Paths:
    """Computations that are run by several paths; eager is run once for all of them.

    Args:
        computations: by the words for each; "" where there is one.
    """

    def __init__(self, computations: Mapping[str, Computation]) -> None:
        self._computations = computations
        self._records: dict[tuple[str, Path], Record] = {}

    def __call__(self, name: Name) -> Criterion:
        """`JIT` or `VMAP`."""
        path = PATHS[name]
        found: list[tuple[str, StageCheck]] = []
        reasons = []
        for what, computation in self._computations.items():
            reason = computation.reason(path)
            if reason:
                reasons.append(reason)
                continue
            want = self._record(what, computation, REFERENCE)
            if want.failed is not None:
                stage, error = want.failed
                return not_run(name, fill(ITSELF, type=error.type, stage=stage))
            found += [(what, one) for one in checks(self._record(what, computation, path), want)]
        if not found:
            return no_matter(name, reasons[0] if reasons else fill(NOTHING_APART))
        return of_stages(name, found)

    @property
    def begin(self) -> tuple[Step, ...]:
        """Build each, and run it eagerly: what takes long before the first comparison."""
        return tuple(
            step
            for what, one in self._computations.items()
            for step in (one.prepare, partial(self._record, what, one, REFERENCE))
        )

    def ahead(self, name: Name) -> tuple[Step, ...]:
        """Run each by the path of a criterion."""
        path = PATHS[name]
        return tuple(
            partial(self._record, what, one, path) for what, one in self._computations.items() if not one.reason(path)
        )

    def _record(self, what: str, computation: Computation, path: Path) -> Record:
        if (what, path) not in self._records:
            self._records[what, path] = run(computation, path)
        return self._records[what, path]


def of_stages(name: Name, found: Sequence[tuple[str, StageCheck]]) -> Criterion:
    """The checks of all stages of a path as one criterion. A stage that parts fails it, by however little."""
    largest = max((one.largest for _, one in found), default=0.0)
    used = [one.tolerance for _, one in found if one.tolerance is not None]
    bound = max(used, key=lambda t: (t.rtol, t.atol)).text if used else "exact"
    order = list(Stage)
    bad = sorted((one for one in found if not one[1].ok), key=lambda one: order.index(one[1].stage))
    if bad:
        return Criterion(name, Status.FAIL, largest, bound, _parted(*bad[0]))
    stages = ", ".join(dict.fromkeys(str(one.stage) for _, one in found))
    return Criterion(
        name, Status.PASS, largest, bound, fill(WITHIN, count=sum(o.leaves for _, o in found), stages=stages)
    )


def _parted(what: str, check: StageCheck) -> str:
    words = what or str(check.path)
    if check.error is not None:
        line = check.error.message.splitlines()[0][:200] if check.error.message else ""
        return fill(ELSEWHERE, what=words, type=check.error.type, stage=check.stage, message=line)
    parted = check.parted
    if parted is None:
        return fill(NOTHING_APART)
    place = fill(AT_STEP, t=parted.t) if parted.t is not None else ""
    place += str(list(parted.index)) if parted.index else ""
    rounding = fill(ROUNDING) if parted.rounding else ""
    return fill(
        PARTED,
        what=words,
        stage=check.stage,
        leaf=parted.leaf,
        place=place,
        got=parted.got[:200],
        want=parted.want[:200],
        rounding=rounding,
    )


def host_types(root: str, leaves: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, str]]:
    """(path, type) of arrays on the host."""
    for path, values in leaves:
        array = np.asarray(values)
        yield root + path, type_text(array.shape, array.dtype.name)
