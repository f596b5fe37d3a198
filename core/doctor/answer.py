"""What the Doctor's page is told about a script: plain, frozen, and free of everything that ran.

The worker makes an `Answer` of a checkup (`core.doctor.job`) and sends it as JSON, never as a pickle: the one who sends
it ran a stranger's code. `core.doctor.wire` reads it back, and takes nothing but what is described here.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from core.base.outcome import Outcome, Report
from core.base.places import Span
from core.base.results import ScanResult
from core.doctor.prep import Kind


class Wish(enum.StrEnum):
    """What the worker is asked for."""

    SHAPES = "shapes"  # the abstract pass: shapes and what raises, nothing computed
    CHECK = "check"  # run it: verdict, values, output
    FIXES = "fixes"  # the fixes of the script that was checked last (checked again where the worker has forgotten it)


@dataclass(frozen=True, slots=True)
class Request:
    """One job. `text`: what was pasted."""

    wish: Wish
    text: str


@dataclass(frozen=True, slots=True)
class LineShape:
    """A name that a line binds, receives or returns ("" for a returned value), and its type: ``float32[2,4]``."""

    line: int
    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ScanPanel:
    """One scan of the script, to be drawn.

    Attributes:
        line: where it is called; None when it is not in the text.
        length: T; None when unknown.
        carry, xs, ys: type of each leaf by path (of init; of xs and ys with their leading axis).
        result: its values; None when it did not run, ran inside another trace, or is too large to be drawn.
        reason: why there are no values, a sentence; "" when there are.
        names: short names of the carry's leaves by path, where they have one.
    """

    line: int | None
    length: int | None
    carry: Mapping[str, str]
    xs: Mapping[str, str]
    ys: Mapping[str, str]
    result: ScanResult | None = None
    reason: str = ""
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StandIn:
    """Something the script needs and does not have, for which an array of random numbers can stand in.

    Attributes:
        name: what it is called in the script: ``data``, ``weights.npy``, ``step``.
        span: the expression (or import) that it stands in for.
        reason: why it is offered, a sentence.
        shape, dtype: a first guess.
    """

    name: str
    span: Span
    reason: str
    shape: tuple[int, ...] = (8, 3)
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one job found.

    Attributes:
        wish: what was asked for.
        kind: what was pasted.
        script: the script in it, which is what edits and `sources` are of (without prompts, fences, magics).
        notes: what was done to the paste, for the reader.
        report: verdict, violations (places are those of what was pasted), the raw error that no rule explains.
        sources: by violation, by fix, the whole fixed script.
        fixed: whether fixes were tried (`sources` and `Violation.fixes` are empty otherwise).
        cut: whether there was no time to try all of them.
        together: the whole script with all fixes, where that runs clean; None otherwise.
        shapes: beside the lines, in order of lines.
        scans: in the order of their calls; those that can be shown.
        loops: scans, `fori_loop` and `while_loop` calls that were recorded.
        cells: steps of cells that were recorded outside scans.
        stdout: what it printed. `stdout_cut`: whether there was more than is kept.
        skipped: lines that the abstract pass left out, because they need values.
        stand_ins: what may be made up.
        matched: of a pasted error text: (code, a sentence); None when it is no error text or no code fits.
        x64: whether the script switched 64-bit mode on.
        issue: "Copy as issue" as Markdown; the link's place is marked by `LINK`.
        milliseconds: how long the worker took.
    """

    wish: Wish
    kind: Kind
    script: str
    report: Report
    notes: tuple[str, ...] = ()
    sources: tuple[tuple[str, ...], ...] = ()
    fixed: bool = False
    cut: bool = False
    together: str | None = None
    shapes: tuple[LineShape, ...] = ()
    scans: tuple[ScanPanel, ...] = ()
    loops: int = 0
    cells: int = 0
    stdout: str = ""
    stdout_cut: bool = False
    skipped: tuple[int, ...] = ()
    stand_ins: tuple[StandIn, ...] = ()
    matched: tuple[str, str] | None = None
    x64: bool = False
    issue: str = ""
    milliseconds: float = 0.0

    @property
    def ran(self) -> bool:
        """Whether values were computed."""
        return self.wish is not Wish.SHAPES and self.report.outcome is not Outcome.LIMIT

    @property
    def idle(self) -> bool:
        """Whether nothing ran that has a carry: then no contract was kept, for there was none."""
        return not (self.loops or self.cells)


#: Stands in `Answer.issue` where the page puts the link.
LINK = "{{link}}"
