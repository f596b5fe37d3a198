"""What a contract report is. It cannot be made without its versions and at least one negative test.

Everything here is frozen and plain: text, numbers, tuples. `core.report.plain` turns it into JSON and back.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from core.base.limits import LIMITS

#: Version of the JSON that `core/report/schema.json` describes.
SCHEMA: Final = 1


class IncompleteReportError(ValueError):
    """A report without what every report must carry: its versions, a negative test, each criterion once."""


class Status(enum.StrEnum):
    """How one criterion ended."""

    PASS = "pass"  # noqa: S105  # no password
    FAIL = "fail"
    NOT_APPLICABLE = "not applicable"
    #: It applies, and could not be measured: the program raised before, or time or memory ran out.
    NOT_RUN = "not run"


class Verdict(enum.StrEnum):
    """The report as a whole: the worst of its criteria."""

    PASS = "pass"  # noqa: S105  # no password
    FAIL = "fail"
    INCOMPLETE = "incomplete"


class Name(enum.StrEnum):
    """The acceptance criteria, in the order they are shown. Stable: they stand in files."""

    RULES = "rules"
    SHAPES = "shapes"
    DECLARED = "declared"
    RANGE = "range"
    KEYS = "keys"
    OUTPUTS = "outputs"
    LOSS = "loss"
    GRADIENTS = "gradients"
    PADDING = "padding"
    NEGATIVE = "negative"
    JIT = "jit"
    VMAP = "vmap"
    LOOP = "loop"
    FORMULA = "formula"
    MODE = "mode"


#: What each one says when it passes.
TITLES: Final[Mapping[Name, str]] = {
    Name.RULES: "No rule of the catalogue is broken",
    Name.SHAPES: "Shapes and dtypes are what the contract says",
    Name.DECLARED: "The data have the declared axes, features and dtype",
    Name.RANGE: "Every value lies in the declared range",
    Name.KEYS: "Every subkey is used once",
    Name.OUTPUTS: "The outputs are finite",
    Name.LOSS: "The loss is finite",
    Name.GRADIENTS: "The gradients are finite",
    Name.PADDING: "Other numbers in the padding move nothing",
    Name.NEGATIVE: "The negative input raised the expected error",
    Name.JIT: "Eager = jit",
    Name.VMAP: "Eager = vmap",
    Name.LOOP: "The scan = a Python loop over its step",
    Name.FORMULA: "An independent formula agrees",
    Name.MODE: "Train or eval is said, and eval draws nothing",
}
#: What the number of each counts or measures.
UNITS: Final[Mapping[Name, str]] = {
    Name.RULES: "rules broken",
    Name.SHAPES: "leaves that differ",
    Name.DECLARED: "contradictions",
    Name.RANGE: "values outside",
    Name.KEYS: "uses too many",
    Name.OUTPUTS: "values not finite",
    Name.LOSS: "values not finite",
    Name.GRADIENTS: "values not finite",
    Name.PADDING: "largest move",
    Name.NEGATIVE: "tests that failed",
    Name.JIT: "largest difference",
    Name.VMAP: "largest difference",
    Name.LOOP: "largest difference",
    Name.FORMULA: "largest difference",
    Name.MODE: "largest move in eval",
}


@dataclass(frozen=True, slots=True)
class Criterion:
    """One acceptance criterion.

    Attributes:
        name: which.
        status: how it ended.
        number: what was counted or measured (`UNITS`); None where nothing was.
        bound: what it had to be, in words: ``0``, ``rtol 1e-5, atol 1e-6``; "" where nothing was measured.
        detail: where and why, or the reason why it does not apply.
    """

    name: Name
    status: Status
    number: float | None = None
    bound: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Versions:
    """Of Python and of what the program is made with. None may be missing."""

    python: str
    jax: str
    jaxlib: str
    flax: str
    numpy: str

    def __post_init__(self) -> None:
        missing = [name for name in self.__slots__ if not getattr(self, name)]
        if missing:
            raise IncompleteReportError("no version of " + ", ".join(missing))


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it ran.

    Attributes:
        platform: system and processor family.
        cpu: the processor's own name.
        cores: of the machine; `usable`: that this process may use.
        load_before, load_after: mean number of waiting processes over 1, 5 and 15 minutes; empty where none is told.
        backend, device: as JAX names them.
        x64: whether 64-bit mode was on.
    """

    platform: str
    cpu: str
    cores: int
    usable: int
    load_before: tuple[float, ...]
    load_after: tuple[float, ...]
    backend: str
    device: str
    x64: bool


@dataclass(frozen=True, slots=True)
class Setting:
    """One input of a page. Typed text is not written out, only its length and hash, unless values are asked for."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Input:
    """One array that went in.

    Attributes:
        path: pytree path, ``xs``, ``init[0]``, ``cell.ii.kernel``.
        shape, dtype: of it.
        axes: one letter an axis, where they are known; "" else.
        sha256: of its elements as little-endian bytes in C order; "" where it was over a limit and never made.
        values: its elements in C order, where they were asked for.
    """

    path: str
    shape: tuple[int, ...]
    dtype: str
    axes: str = ""
    sha256: str = ""
    values: tuple[float, ...] | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """A seed and what it feeds. `generator`: ``jax`` or ``numpy``."""

    what: str
    seed: int
    generator: str


@dataclass(frozen=True, slots=True)
class Asked:
    """One request for a key, in the order in which they were made.

    The n-th key of a stream is ``fold_in(key(seed), n)``: swap two constructions, and each gets the other's keys.

    Attributes:
        order: from 0, over all streams.
        stream: its name.
        count: how often this stream had been asked before.
        by: what was being built.
        key: the first 16 hexadecimal digits of the hash of the key's data.
        drawn: whether numbers were drawn with it (an initialiser of zeros takes a key and draws nothing).
    """

    order: int
    stream: str
    count: int
    by: str
    key: str
    drawn: bool = True


@dataclass(frozen=True, slots=True)
class Declared:
    """The contract of the data, as far as it was declared.

    Attributes:
        axes: a letter for each axis of the data in their order, of T, B, F, H.
        features: a name for each feature.
        dtype: of the data.
        low, high: every value lies between them, both included; None is not declared.
        target: what the target means.
        yours: the fields that a person declared; the others are what the page knows.
    """

    axes: str = ""
    features: tuple[str, ...] = ()
    dtype: str = ""
    low: float | None = None
    high: float | None = None
    target: str = ""
    yours: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UsedTolerance:
    """The tolerance between values of a dtype: ``|got − want| ≤ atol + rtol·|want|``."""

    dtype: str
    rtol: float
    atol: float


@dataclass(frozen=True, slots=True)
class Negative:
    """Something wrong that was run on purpose.

    Attributes:
        what: in a sentence.
        expected: class of the exception that it must raise.
        raised: class of what it raised; "" for nothing.
    """

    what: str
    expected: str
    raised: str

    @property
    def ok(self) -> bool:
        """Whether it raised what it had to."""
        return self.raised == self.expected


@dataclass(frozen=True, slots=True)
class Latency:
    """Times of one program, in milliseconds.

    Attributes:
        what: what was timed, in words.
        runs: how many were timed, each until its result was ready; `warm_up` before them were not.
        median_ms, p90_ms, p99_ms: runs that really took so long: half, 90 % and 99 % of all took no longer.
        trace_ms, compile_ms: tracing with lowering, and compiling, of a program that no cache knew.
    """

    what: str
    runs: int
    warm_up: int
    median_ms: float
    p90_ms: float
    p99_ms: float
    trace_ms: float
    compile_ms: float

    def __post_init__(self) -> None:
        least = min(30, LIMITS["report_least_runs"].value)
        if self.runs < least:
            raise IncompleteReportError(f"a latency of fewer than {least} runs")
        times = (self.median_ms, self.p90_ms, self.p99_ms, self.trace_ms, self.compile_ms)
        if not all(math.isfinite(ms) and ms >= 0 for ms in times) or not times[0] <= times[1] <= times[2]:
            raise IncompleteReportError("latencies that are none")


@dataclass(frozen=True, slots=True)
class ContractReport:
    """The whole report.

    Attributes:
        made: when, ISO 8601 in UTC.
        page: the page's name, or ``script``.
        title, about: what was run.
        versions, machine: with what, and where.
        settings: the inputs of the page.
        inputs: the arrays.
        contract: of the data.
        seeds: with what each feeds.
        asked: requests for keys, in order; `asked_cut`: there were more than are listed.
        tolerances: that were used.
        criteria: one of each `Name`, in their order.
        negatives: one at least.
        latency: None where it could not be measured; `latency_missing` says why.
        not_proved: what this does not prove.

    Raises:
        IncompleteReportError: no negative test, a criterion that is missing or twice there, nothing about its limits.
    """

    made: str
    page: str
    title: str
    about: str
    versions: Versions
    machine: Machine
    settings: tuple[Setting, ...]
    inputs: tuple[Input, ...]
    contract: Declared
    seeds: tuple[Seed, ...]
    asked: tuple[Asked, ...]
    asked_cut: bool
    tolerances: tuple[UsedTolerance, ...]
    criteria: tuple[Criterion, ...]
    negatives: tuple[Negative, ...]
    latency: Latency | None
    latency_missing: str
    not_proved: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.versions, Versions):
            raise IncompleteReportError("no versions")  # a caller may hand over anything
        if not self.negatives:
            raise IncompleteReportError("no negative test")
        if [one.name for one in self.criteria] != list(Name):
            raise IncompleteReportError("each criterion has to stand there once, in order")
        if not self.not_proved:
            raise IncompleteReportError("nothing about what it does not prove")
        if (self.latency is None) != bool(self.latency_missing):
            raise IncompleteReportError("a latency, or why there is none")

    @property
    def verdict(self) -> Verdict:
        """Fail when one criterion fails; incomplete when one that applies could not be measured."""
        found = {one.status for one in self.criteria}
        if Status.FAIL in found:
            return Verdict.FAIL
        return Verdict.INCOMPLETE if Status.NOT_RUN in found else Verdict.PASS

    def __getitem__(self, name: Name) -> Criterion:
        """The criterion of this name."""
        return next(one for one in self.criteria if one.name is name)
