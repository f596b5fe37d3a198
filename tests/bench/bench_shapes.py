"""5,000 different shapes in one process: programs stay bounded, and once the store is full memory and maps stay flat.

    python -m pytest tests/bench/bench_shapes.py -p no:xdist -s -o python_files='bench_*.py'

Unbounded, a process dies of its 65,530 memory maps at about 2,500 shapes. `BENCH_SHAPES` sets another number.
"""

from __future__ import annotations

import gc
import os
import statistics

import numpy as np
import pytest

from core.base.limits import LIMITS
from core.contract.subject import ScanCall
from core.runners.cache import PROGRAMS
from core.runners.scan import run_call
from core.steps.library import STEPS
from core.steps.step import x_aval
from tests.bench.memory import Memory
from tests.bench.table import record

SHAPES = int(os.environ.get("BENCH_SHAPES", "5000"))
#: Shares of the run: what it holds once the store is full, and in its last part.
FULL, LAST = (0.1, 0.3), (0.8, 1.0)
GROWTH, MAPS = 5.0, 500


@pytest.mark.timeout(1800)
def test_five_thousand_shapes() -> None:
    PROGRAMS.clear()
    memory = Memory(os.getpid())
    held: list[tuple[float, int, int]] = []
    step = STEPS["running_sum"]
    for number in range(SHAPES):
        xs = np.ones((3, number + 1), np.float32)
        aval = x_aval(xs)
        result = run_call(
            ScanCall(step.fn, step.init(aval, step.defaults), xs, params=step.arguments(step, aval, step.defaults))
        )
        assert np.asarray(result.ys).shape == (3, number + 1)
        if number % 25 == 24:
            gc.collect()
            held.append((memory.rss(), memory.maps(), PROGRAMS.stats.programs))

    def part(share: tuple[float, float], which: int) -> float:
        begin, end = (int(len(held) * one) for one in share)
        return statistics.median(row[which] for row in held[begin:end])

    record(f"{SHAPES:,} shapes: compiled programs kept", max(row[2] for row in held), "", LIMITS["programs"].value)
    record(f"{SHAPES:,} shapes: memory maps at most", max(row[1] for row in held), "", 65_530 / 2)
    record(
        f"{SHAPES:,} shapes: more memory maps in the end than when the store was full",
        part(LAST, 1) - part(FULL, 1),
        "",
        MAPS,
    )
    grown = 100 * (part(LAST, 0) / part(FULL, 0) - 1)
    record(f"{SHAPES:,} shapes: memory in the end, above that when the store was full", grown, "%", GROWTH)
