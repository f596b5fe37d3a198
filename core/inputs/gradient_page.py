"""Everything the Gradients page shows for some inputs: one call reads and runs; the page only draws."""

from __future__ import annotations

from dataclasses import dataclass, replace

from core.base.gradients import MemoryCheck, MemoryMap
from core.base.outcome import Report
from core.contract.subject import SequenceTrial
from core.contract.trace import Raised
from core.inputs.gradient_fields import CELLS, PRESET, TRAINING
from core.inputs.gradient_inputs import LOOKED_AT, Array, GradientInputs, Problem, Reading, build
from core.inputs.gradient_scan import ScanView, read_scan
from core.inputs.gradient_scan_source import scan_source
from core.inputs.gradient_source import WRITTEN, cells_source
from core.inputs.gradient_training import TrainingView, read_training
from core.inputs.gradient_training_source import training_source
from core.runners.gradients import check_memory, memory_map
from core.runners.room import keep_room


@dataclass(frozen=True, slots=True, eq=False)
class CellsResult:
    """The maps of the cells over the same data.

    Attributes:
        reading: what was differentiated.
        maps: one for each cell, in the order of `CELL_NAMES`.
        compiled: whether this look compiled any of them.
    """

    reading: Reading
    data: Array
    maps: tuple[MemoryMap, ...]
    compiled: bool

    @property
    def length(self) -> int:
        """T."""
        return len(self.data)

    def map_of(self, kind: str) -> MemoryMap:
        """The map of one cell."""
        return next(one for one in self.maps if one.kind == kind)

    def trial_of(self, kind: str) -> SequenceTrial:
        """The layer of one cell."""
        return next(one for one in self.reading.trials if one.kind == kind)


@dataclass(frozen=True, slots=True, eq=False)
class GradientLook:
    """What became of some inputs.

    Attributes:
        inputs: the very inputs, without what is merely looked at.
        problems: inputs that could not be read; then nothing else is there.
        hints: inputs that are used, and need a word.
        cells, scan, training: the view that was asked for.
        report: the contract's verdict, where there is one.
        raised: what JAX or Flax raised; None when nothing was.
    """

    inputs: GradientInputs
    problems: tuple[Problem, ...] = ()
    hints: tuple[Problem, ...] = ()
    cells: CellsResult | None = None
    scan: ScanView | None = None
    training: TrainingView | None = None
    report: Report | None = None
    raised: Raised | None = None

    @property
    def ran(self) -> bool:
        """Whether there is anything to draw."""
        return self.cells is not None or self.scan is not None or self.training is not None


def settled(inputs: GradientInputs) -> GradientInputs:
    """The inputs without what is merely looked at: another row of a map is the same map."""
    return replace(inputs, **LOOKED_AT)  # type: ignore[arg-type]  # values of those very fields


def look_at(inputs: GradientInputs) -> GradientLook:
    """Read and run. Never raises for anything that stands in the inputs."""
    inputs = settled(inputs)
    keep_room()
    if inputs.of == CELLS:
        return _cells(inputs)
    if inputs.of == PRESET:
        reading = read_scan(inputs)
        return GradientLook(inputs, reading.problems, scan=reading.view, report=reading.report)
    made = read_training(inputs)
    return GradientLook(inputs, made.problems, training=made.view, report=made.report, raised=made.raised)


def _cells(inputs: GradientInputs) -> GradientLook:
    reading = build(inputs)
    if reading.data is None:
        return GradientLook(inputs, reading.problems)
    maps = tuple(memory_map(one, 0) for one in reading.trials)
    result = CellsResult(reading, reading.data, maps, any(one.compiled for one in maps))
    return GradientLook(inputs, hints=reading.hints, cells=result)


def check_cells(result: CellsResult) -> tuple[MemoryCheck, ...]:
    """The last row of each map, worked out by reverse mode and by finite differences: what comes after the plot."""
    return tuple(check_memory(one, 0, the_map) for one, the_map in zip(result.reading.trials, result.maps, strict=True))


def program_of(look: GradientLook, most: int | None = WRITTEN) -> str:
    """The program in Python that a look stands for; "" where an input cannot be used, or it would be too long.

    Args:
        look: what was looked at.
        most: numbers that are written out; None for all of them.
    """
    if look.cells is not None:
        return cells_source(look.inputs, look.cells.data, most)
    if look.scan is not None:
        return scan_source(look.scan, most)
    return training_source(look.inputs) if look.inputs.of == TRAINING and not look.problems else ""


def warm_up() -> None:
    """Compile what the page opens with: a job for `core.runners.warmup.warm_up`."""
    look_at(GradientInputs())
