"""Everything the LSTM cell page shows for some inputs: one call reads, checks and runs; the page only draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from core.base.avals import LeafType, aval_of, leaf_types
from core.base.outcome import Outcome, Report
from core.base.violation import Fix
from core.contract.engine import examine, fix_all
from core.contract.facts import CellFacts
from core.contract.trace import Raised
from core.inputs.cell_bench import CellBench
from core.inputs.cell_inputs import CellInputs, Problem, build
from core.inputs.cell_source import source
from core.runners.cell_formulas import KINDS, GateWeights, gate_weights
from core.runners.cells import CellStep, run_step
from core.runners.room import keep_room


@dataclass(frozen=True, slots=True, eq=False)
class CellLook:
    """What became of some inputs.

    Attributes:
        inputs: the very inputs.
        problems: inputs that could not be read; then nothing else is there.
        report: the contract's verdict.
        all_fixed: the edit that mends everything at once, when there are several faults.
        raised: what JAX or Flax raised; None when nothing was.
        given: type of what stands at ``c``, ``h`` and ``x`` when the step is called, as far as it got.
        step: the step that ran, silently wrong ones too; None when it raised or was over a limit.
        weights: the cell's parameters by gate; there when `step` is.
        program: the lines of Python that the inputs stand for; "" when they cannot be read.
    """

    inputs: CellInputs
    problems: tuple[Problem, ...] = ()
    report: Report | None = None
    all_fixed: Fix | None = None
    raised: Raised | None = None
    given: Mapping[str, LeafType] = field(default_factory=dict)
    step: CellStep | None = None
    weights: Mapping[str, GateWeights] | None = None
    program: str = ""


def look_at(inputs: CellInputs) -> CellLook:
    """Read, check and run. Never raises for anything that stands in the inputs."""
    reading = build(inputs)
    if reading.trial is None:
        return CellLook(inputs, reading.problems)
    keep_room()
    bench = CellBench(inputs)
    report, facts = examine(reading.trial, bench)
    look = CellLook(inputs, report=report, program=source(inputs))
    if report.outcome is Outcome.LIMIT or not isinstance(facts, CellFacts):
        return look
    if len(report.broken) > 1:
        look = replace(look, all_fixed=fix_all(reading.trial, bench))
    if facts.jax is not None or not facts.cells.steps:
        return replace(look, raised=facts.jax, given=_given(inputs, facts))
    event = facts.cells.steps[0]
    step = run_step(event.cell, event.carry, event.inputs)
    return replace(look, step=step, weights=gate_weights(step.kind, event.cell))


def _given(inputs: CellInputs, facts: CellFacts) -> dict[str, LeafType]:
    """What the step that raised was called with, by slot of the drawing."""
    if not facts.cells.steps:
        return {}
    event, parts = facts.cells.steps[0], KINDS[inputs.cell].parts
    carry = leaf_types(event.carry, "carry")
    slots = parts if len(carry) == len(parts) else ("h",)
    return {**dict(zip(slots, carry, strict=False)), "x": LeafType("x", aval_of(event.inputs))}


def warm_up() -> None:
    """Compile what the page opens with: a job for `core.runners.warmup.warm_up`."""
    look_at(CellInputs())
