"""Everything the Sequence page shows for some inputs: one call reads, checks and runs; the page only draws."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from core.base.outcome import Outcome, Report
from core.base.sequences import SequenceResult
from core.base.tolerance import Difference
from core.base.violation import Fix
from core.contract.engine import diagnose_facts, examine, fix_all
from core.contract.facts import facts_of
from core.contract.rule import Stage
from core.contract.sequence_facts import outcome, raised
from core.contract.subject import SequenceTrial
from core.contract.trace import Raised
from core.inputs.cell_inputs import Problem
from core.inputs.sequence_bench import SequenceBench
from core.inputs.sequence_inputs import SequenceInputs, build
from core.inputs.sequence_source import source
from core.runners.memo import one_check
from core.runners.reference import CHECK_STEPS
from core.runners.room import keep_room
from core.runners.sequence_reference import SequenceChecks, against_numpy, sequence_checks


@dataclass(frozen=True, slots=True, eq=False)
class SequenceLook:
    """What became of some inputs.

    Attributes:
        inputs: the very inputs.
        problems: inputs that could not be read; then nothing else is there.
        trial: what they mean.
        report: the contract's verdict.
        all_fixed: the edit that mends everything at once, when there are several faults.
        raised: what JAX or Flax raised; None when nothing was.
        result: the layer that ran, silently wrong ones too; None when it raised or was over a limit.
        numpy: the result against the NumPy formulas; there when `result` is.
        program: the lines of Python that the inputs stand for; "" when they cannot be read.
        run_ms, check_ms: how long the layer's own run took, and all else that stands here, in milliseconds.
    """

    inputs: SequenceInputs
    problems: tuple[Problem, ...] = ()
    trial: SequenceTrial | None = None
    report: Report | None = None
    all_fixed: Fix | None = None
    raised: Raised | None = None
    result: SequenceResult | None = None
    numpy: Difference | None = None
    program: str = ""
    run_ms: float = 0.0
    check_ms: float = 0.0


def look_at(inputs: SequenceInputs) -> SequenceLook:
    """Read, check and run. Never raises for anything that stands in the inputs.

    The slow checks (`nnx.RNN` itself, a Python loop, each example alone) are not here: `check_slowly` is for after the
    plot.
    """
    started = time.perf_counter()
    reading = build(inputs)
    trial = reading.trial
    if trial is None:
        return SequenceLook(inputs, reading.problems)
    keep_room()
    bench = SequenceBench(inputs)
    with one_check():
        run_ms = _timed_run(trial)
        report, _ = examine(trial, bench)
        look = SequenceLook(inputs, trial=trial, report=report, program=source(inputs), run_ms=run_ms)
        if report.outcome is not Outcome.LIMIT:
            if len(report.broken) > 1:
                look = replace(look, all_fixed=fix_all(trial, bench))
            run = outcome(trial)
            if isinstance(run, SequenceResult):
                look = replace(look, result=run, numpy=against_numpy(trial, run))
            look = replace(look, raised=raised(trial))
    return replace(look, check_ms=_since(started) - run_ms)


def _timed_run(trial: SequenceTrial) -> float:
    """Run the layer where its sizes allow it; within one check nothing runs it again."""
    facts = facts_of(trial)
    if diagnose_facts(facts, None, (Stage.LIMIT,)).found:
        return 0.0
    started = time.perf_counter()
    outcome(trial)
    return _since(started)


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def check_slowly(look: SequenceLook, steps: int | None = CHECK_STEPS) -> SequenceChecks | None:
    """`nnx.RNN` itself, a Python loop over the cell, each example alone; None where nothing ran.

    Args:
        look: what was shown.
        steps: of the loop at most; None for all.
    """
    if look.trial is None or look.result is None:
        return None
    return sequence_checks(look.trial, look.result, steps)


def warm_up() -> None:
    """Compile what the page opens with: a job for `core.runners.warmup.warm_up`."""
    look_at(SequenceInputs())
