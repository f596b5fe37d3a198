"""Where the paths of one computation part: the first stage, leaf and t at which two ways of running it differ."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from core.base.outcome import RawError
from core.base.tolerance import Tolerance


class Path(enum.StrEnum):
    """One way of running a computation."""

    EAGER = "eager"
    LOOP = "loop"
    JIT = "jit"
    VMAP = "vmap"
    PADDED = "padded"
    UNROLLED = "unrolled"
    FLOAT64 = "float64"
    BACKEND = "backend"


class Stage(enum.StrEnum):
    """What is compared, in this order: a later stage can only be as right as those before it."""

    DATA = "data"
    KEYS = "keys"
    MODE = "mode"
    STATE = "state"
    SHAPES = "shapes"
    FORWARD = "forward"
    LOSS = "loss"
    GRADIENTS = "gradients"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class Parted:
    """The first value beyond its tolerance.

    Attributes:
        leaf: path of the leaf, with the stage's own root (``carry[0]``, ``ys``, ``grad['hi']['kernel']``).
        t: the step, where the leaf has one.
        index: the rest of the index.
        got, want: the values as text (a float as ``repr``; for what is no number, a type, a mode, its words).
        rounding: it is beyond the tolerance of its own size, but within that of the largest number of its leaf: what is
            left of large numbers that cancel keeps their rounding. It parts all the same.
    """

    leaf: str
    t: int | None
    index: tuple[int, ...]
    got: str
    want: str
    rounding: bool = False


@dataclass(frozen=True, slots=True)
class StageCheck:
    """One stage of one path against the reference.

    Attributes:
        path: which way it was run.
        stage: what was compared.
        leaves: how many leaves were.
        largest: the largest absolute difference.
        tolerance: the widest that any leaf of it has by its dtypes; it is never widened.
        parted: where it differs first; None when it does not.
        error: what this path raised; then nothing was compared.
    """

    path: Path
    stage: Stage
    leaves: int = 0
    largest: float = 0.0
    tolerance: Tolerance | None = None
    parted: Parted | None = None
    error: RawError | None = None

    @property
    def ok(self) -> bool:
        """Whether this path agrees here."""
        return self.parted is None and self.error is None


@dataclass(frozen=True, slots=True)
class Comparison:
    """All paths against the reference.

    Attributes:
        reference: the path that the others are compared with.
        checks: in the order of paths and stages.
        left_out: paths that cannot be run here, with the reason in words.
    """

    reference: Path
    checks: tuple[StageCheck, ...]
    left_out: tuple[tuple[Path, str], ...] = ()

    @property
    def first(self) -> StageCheck | None:
        """The earliest stage that differs, of the first path that does at it; None when all agree."""
        order = list(Stage)
        bad = [check for check in self.checks if not check.ok]
        return min(bad, key=lambda check: order.index(check.stage), default=None)


class Lever(enum.StrEnum):
    """What Simplify makes small or takes away, in the order in which it is put back."""

    LENGTH = "T"
    BATCH = "B"
    FEATURES = "F"
    HIDDEN = "H"
    LAYERS = "layers"
    DROPOUT = "dropout"
    JIT = "jit"


@dataclass(frozen=True, slots=True)
class Try:
    """One rerun of a simplified computation.

    Attributes:
        small: what was small or away in it.
        parted: where it parted first; None when the paths agreed.
    """

    small: frozenset[Lever]
    parted: StageCheck | None


def next_try(levers: tuple[Lever, ...], tried: tuple[Try, ...]) -> frozenset[Lever] | None:
    """What is to be small in the next rerun of Simplify; None when it is done.

    First everything is small. When the paths agree then, one lever after the other is put back and stays, until they
    part; and that lever is tried once more with all others small, to see whether it alone is enough.

    Args:
        levers: those that the computation has, in order.
        tried: the reruns so far.
    """
    if not levers:
        return None
    if not tried:
        return frozenset(levers)
    last = tried[-1]
    if last.parted is None:
        back = len(levers) - len(last.small)
        alone = any(t.parted is not None for t in tried)
        return None if alone or not last.small else frozenset(levers[back + 1 :])
    at = len(levers) - len(last.small)  # that many are back; the last of them made it part
    alone = len(tried) != at + 1
    if at <= 1 or alone:
        return None
    return frozenset(levers) - {levers[at - 1]}


def found_lever(levers: tuple[Lever, ...], tried: tuple[Try, ...]) -> Lever | None:
    """The lever with which the paths parted once it was put back; None where they part with all small, or never did."""
    for count, one in enumerate(tried):
        if one.parted is not None:
            return levers[count - 1] if count else None
    return None
