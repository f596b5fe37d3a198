"""Where the paths of one computation part: several ways to run it, compared stage by stage, leaf by leaf.

    for check in checks(computation, Path.LOOP, run(computation, Path.EAGER)): …
    comparison = compare(computation, (Path.LOOP, Path.JIT))

A computation is plain data that knows how to run itself by a path (`core.runners.parting_scan`,
`core.runners.parting_layer`); what a path leaves is a `Record`: host values by stage. The reference is the eager path,
since it is what people write first and what every other path promises to equal.

NaN equals NaN at the same place and nothing is replaced. The tolerance of a leaf is that of its dtypes
(`core.base.tolerance`) and is never widened: between float32 and float64 that is float32's. A result that several paths
give alike may still be wrong: this says where they part, not which is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np
from jax import tree_util

from core.base.avals import path_name
from core.base.outcome import RawError
from core.base.parting import Comparison, Lever, Parted, Path, Stage, StageCheck, Try, next_try
from core.base.tolerance import EXACT, Difference, Tolerance, difference, tolerance_in, tolerance_of
from core.runners.room import keep_room
from core.runners.scan import to_host

type Array = np.ndarray[Any, Any]
#: What a path leaves at one stage: by root (``carry``, ``grad``) a pytree of arrays, numbers or words.
type Trees = Mapping[str, Any]

#: The path that the others are compared with.
REFERENCE: Final = Path.EAGER
#: Compared unless others are asked for.
USUAL: Final = (Path.LOOP, Path.JIT)

ABSENT = "nothing"
#: Stages whose values are numbers that the computation made.
_VALUES: Final = (Stage.FORWARD, Stage.LOSS, Stage.GRADIENTS, Stage.UPDATE)
#: 64-bit dtypes and what they stand for where 64 bits were asked for.
_NARROW: Final = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}


@dataclass(slots=True)
class Log:
    """What a run does that its values do not show; each run writes its own.

    Attributes:
        at: the stage it has come to, which is where an exception is said to be.
        asked: the streams of keys in the order in which they were asked.
        modes: what each part that has a mode was told.
        types: the class of each state variable by path.
    """

    at: Stage = Stage.DATA
    asked: list[str] = field(default_factory=list)
    modes: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)


class Computation(Protocol):
    """What can be run by several paths."""

    @property
    def timed(self) -> frozenset[str]:
        """The roots whose leaves have the steps for their first axis, in visiting order."""

    @property
    def backwards(self) -> int:
        """T where step p reads x at T − 1 − p; 0 where it reads x at p."""

    @property
    def computed(self) -> frozenset[str]:
        """The floating-point dtypes it computes in, where they may be less precise than its leaves."""

    def reason(self, path: Path) -> str:
        """Why it cannot be run by this path, a sentence; "" when it can."""

    def prepare(self) -> None:
        """Do what all paths need done once, so that the first of them takes no longer than the others.

        Raises:
            what a run raises then.
        """

    def stages(self, path: Path, log: Log) -> Iterator[tuple[Stage, Trees]]:
        """Run it. Stages may come in any order, and those without meaning for it do not come.

        Raises:
            whatever the run raises.
        """

    @property
    def levers(self) -> tuple[Lever, ...]:
        """What of it can be made smaller, in the order of `Lever`."""

    def simplified(self, small: frozenset[Lever]) -> Computation:
        """The same with these levers at their smallest."""


@dataclass(frozen=True, slots=True, eq=False)
class Record:
    """What one path left.

    Attributes:
        path: which.
        stages: values by stage, on the host.
        failed: the stage at which it raised, and what; None when it came through.
        timed, backwards, computed: as of its computation.
    """

    path: Path
    stages: Mapping[Stage, Trees]
    failed: tuple[Stage, RawError] | None = None
    timed: frozenset[str] = frozenset()
    backwards: int = 0
    computed: frozenset[str] = frozenset()


def run(computation: Computation, path: Path) -> Record:
    """Run a computation by one path. What it raises is in the record, never raised (`MemoryError` is)."""
    keep_room()
    log = Log()
    stages: dict[Stage, Trees] = {}
    failed = None
    try:
        for stage, trees in computation.stages(path, log):
            stages[stage] = {root: tree_util.tree_map(_host, tree) for root, tree in trees.items()}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  # a step or a layer raises what it likes: that is this path's outcome
        failed = (log.at, RawError(type(error).__name__, str(error)))
    return Record(path, stages, failed, computation.timed, computation.backwards, computation.computed)


def _host(leaf: Any) -> Any:
    return leaf if isinstance(leaf, str) else to_host(leaf)


def checks(got: Record, want: Record) -> tuple[StageCheck, ...]:
    """One path against the reference, in the order of the stages.

    Both are compared at the stages that both came to. Where the reference raised there is nothing to compare with: the
    check of that stage has the reference's path and error, once for all paths.
    """
    found = [
        _check(got.path, stage, trees, want, got)
        for stage, trees in ((stage, _common(stage, got, want)) for stage in Stage)
        if trees is not None
    ]
    alike = got.failed is not None and want.failed is not None and got.failed[0] is want.failed[0]
    if got.failed is not None and not (alike and got.failed[1].type == want.failed[1].type):  # type: ignore[index]
        found.append(StageCheck(got.path, got.failed[0], error=got.failed[1]))
    return tuple(found)


def compare(
    computation: Computation,
    paths: tuple[Path, ...] = USUAL,
    reference: Path = REFERENCE,
    tell: Callable[[Path], None] | None = None,
) -> Comparison:
    """Run it by every path and compare each with the reference.

    Args:
        computation: what is run.
        paths: beside the reference.
        reference: what the others are compared with.
        tell: called before each path is run; what it raises ends the comparison.
    """
    said = tell if tell is not None else _silent
    said(reference)
    want = run(computation, reference)
    found, left = list(of_reference(want)), []
    for path in dict.fromkeys(paths):
        reason = computation.reason(path)
        if reason:
            left.append((path, reason))
        elif path is not reference:
            said(path)
            found += checks(run(computation, path), want)
    return Comparison(reference, tuple(found), tuple(left))


def of_reference(want: Record) -> tuple[StageCheck, ...]:
    """What is to be said of the reference by itself: its error, when it raised."""
    return () if want.failed is None else (StageCheck(want.path, want.failed[0], error=want.failed[1]),)


def simplify(
    computation: Computation, path: Path, reference: Path = REFERENCE, tell: Callable[[Try], None] | None = None
) -> tuple[Try, ...]:
    """Rerun with everything small, and put one thing after the other back until the paths part (`next_try`).

    Args:
        computation: one whose `path` parts from the reference.
        path: that path.
        reference: the path it parts from.
        tell: called after each rerun.
    """
    tried: tuple[Try, ...] = ()
    while (small := next_try(computation.levers, tried)) is not None:
        one = Try(small, compare(computation.simplified(small), (path,), reference).first)
        tried = (*tried, one)
        if tell is not None:
            tell(one)
    return tried


def _silent(_path: Path) -> None:
    """For a comparison that tells nobody."""


# --- one stage ------------------------------------------------------------------------------------------------------


def _common(stage: Stage, got: Record, want: Record) -> tuple[Trees, Trees] | None:
    """What both have at a stage; None where one has nothing."""
    if stage is Stage.SHAPES:
        both = [s for s in _VALUES if s in got.stages and s in want.stages]
        return (_types(got, both), _types(want, both)) if both else None
    if stage not in got.stages or stage not in want.stages:
        return None
    return got.stages[stage], want.stages[stage]


def _types(record: Record, stages: list[Stage]) -> Trees:
    """Shape and dtype of every leaf, as words; 64 bits that were asked for are written as what they stand for."""

    def words(leaf: Any) -> str:
        array = np.asarray(leaf)
        name = array.dtype.name
        name = _NARROW.get(name, name) if record.path is Path.FLOAT64 else name
        return f"{name}[{','.join(map(str, array.shape))}]"

    return {root: tree_util.tree_map(words, tree) for stage in stages for root, tree in record.stages[stage].items()}


def _check(path: Path, stage: Stage, trees: tuple[Trees, Trees], want: Record, got: Record) -> StageCheck:
    got_trees, want_trees = trees
    other = _structure(got_trees, want_trees)
    leaves = list(_leaves(got_trees, want_trees))
    pairs = [pair for pair in leaves if not isinstance(pair[2], str) and not isinstance(pair[3], str)]
    computed = got.computed | want.computed
    tolerances = [_tolerance(a, b, computed) for _, _, a, b in pairs]
    apart = [difference(a, b, used) for (_, _, a, b), used in zip(pairs, tolerances, strict=True)]
    candidates = [
        _parted(pair, one, pair[0] in want.timed and stage is not Stage.SHAPES, want.backwards)
        for pair, one in zip(pairs, apart, strict=True)
        if not one.within
    ]
    words = [
        (name, a, b) for _, name, a, b in leaves if (isinstance(a, str) or isinstance(b, str)) and str(a) != str(b)
    ]
    candidates += [(np.inf, Parted(name, None, (), str(a), str(b))) for name, a, b in words]
    # Values that follow from each other are ordered by their step; others as they are listed.
    first = next(iter(sorted(candidates, key=lambda one: one[0] if stage in _VALUES else 0)), None)
    return StageCheck(
        path,
        stage,
        leaves=len(leaves),
        largest=max((one.largest for one in apart), default=0.0),
        tolerance=max(tolerances, key=lambda t: (t.rtol, t.atol)) if tolerances else None,
        parted=other if other is not None or first is None else first[1],
    )


def _structure(got: Trees, want: Trees) -> Parted | None:
    """The first root whose tree is another one; None when all are alike."""
    for root in dict.fromkeys([*want, *got]):
        one, two = (
            str(tree_util.tree_structure(trees[root])).removeprefix("PyTreeDef") if root in trees else ABSENT
            for trees in (got, want)
        )
        if one != two:
            return Parted(root, None, (), one, two)
    return None


def _leaves(got: Trees, want: Trees) -> Iterator[tuple[str, str, Any, Any]]:
    """(root, path, got, want) of every leaf under the roots whose trees are alike."""
    for root, tree in want.items():
        if root in got and str(tree_util.tree_structure(got[root])) == str(tree_util.tree_structure(tree)):
            flat, _ = tree_util.tree_flatten_with_path(tree)
            for (path, leaf), other in zip(flat, tree_util.tree_leaves(got[root]), strict=True):
                yield root, path_name(root, path), other, leaf


def _tolerance(got: Array, want: Array, computed: frozenset[str]) -> Tolerance:
    """Of the least precise dtype; as in the check beside every result, what the step computes in counts too."""
    if tolerance_of(want.dtype) == EXACT:
        return tolerance_of(got.dtype, want.dtype)
    found = [tolerance_in(dtype, computed)[0] for dtype in (got.dtype, want.dtype)]
    return max(found, key=lambda t: (t.rtol, t.atol))


def _parted(
    pair: tuple[str, str, Array, Array], apart: Difference, timed: bool, backwards: int
) -> tuple[float, Parted]:
    """When it is visited (infinite where the leaf has no steps), and the first value that differs."""
    _, name, got, want = pair
    if apart.first is None:  # other shapes
        return -1.0 if timed else np.inf, Parted(name, None, (), str(got.shape), str(want.shape))
    index = apart.first
    position = index[0] if timed else None
    t = None if position is None else backwards - 1 - position if backwards else position
    most = float(np.abs(want[np.isfinite(want)]).max(initial=0)) if tolerance_of(want.dtype) != EXACT else 0.0
    used = apart.tolerance
    parted = Parted(
        name,
        t,
        index[1:] if timed else index,
        number_text(got[index]),
        number_text(want[index]),
        rounding=bool(apart.largest <= used.atol + used.rtol * most),
    )
    return np.inf if position is None else float(position), parted


def number_text(value: Any) -> str:
    """One number as its dtype writes it: the shortest text that reads back to it."""
    array = np.asarray(value)
    return str(array.item() if array.dtype.kind in "biu" else array[()])
