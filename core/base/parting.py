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
    """

    leaf: str
    t: int | None
    index: tuple[int, ...]
    got: str
    want: str


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
