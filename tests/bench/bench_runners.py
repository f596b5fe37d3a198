"""What a scan costs here: warm and first calls, beside the bare program, and memory over many shapes.

    python -m tests.bench.bench_runners [--shapes 300]

or all benchmarks with ``make bench``.

Numbers are of this machine: read the ratios. Memory maps and resident memory are read from /proc (Linux only).
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from jax import lax

from core.contract.subject import ScanCall
from core.runners import cache
from core.runners.cache import PROGRAMS, count_compiles
from core.runners.reference import loop_check
from core.runners.scan import run_call
from core.runners.warmup import warm_up
from core.steps.library import STEPS
from core.steps.step import x_aval


def call_of(name: str, xs: Any) -> ScanCall:
    step = STEPS[name]
    aval = x_aval(xs)
    return ScanCall(step.fn, step.init(aval, step.defaults), xs, params=step.arguments(step, aval, step.defaults))


def milliseconds(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and 95th percentile."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), statistics.quantiles(times, n=20)[18]


def memory() -> tuple[int, float]:
    """Memory maps, and resident MiB, of this process."""
    status = Path("/proc/self/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return Path("/proc/self/maps").read_bytes().count(b"\n"), int(resident.split()[1]) / 1024


def times() -> None:
    print(f"{'ms':36}{'first':>8}{'warm':>8}{'p95':>8}{'bare':>8}{'ratio':>7}{'loop':>8}")
    random = np.random.default_rng(0)
    cases = [("running_sum", (3,)), ("running_sum", (512,)), ("kalman", (512, 16)), ("running_variance", (512, 64))]
    for name, shape in [*cases, ("tanh_rnn", (256, 8))]:
        call = call_of(name, random.normal(size=shape).astype(np.float32))
        with count_compiles() as compiles:
            start = time.perf_counter()
            run_call(call)
            first = (time.perf_counter() - start) * 1e3
        warm, p95 = milliseconds(lambda c=call: run_call(c), 200)
        bare = jax.jit(lambda i, x, c=call: lax.scan(lambda a, b: c.step(a, b, **c.params), i, x))
        bare(call.init, call.xs)
        plain, _ = milliseconds(lambda b=bare, c=call: jax.device_get(b(c.init, c.xs)), 200)
        result = run_call(call)
        loop_check(call, result)
        loop, _ = milliseconds(lambda c=call, r=result: loop_check(c, r), 5)
        what = f"{name} {shape} ({compiles.count} compiled)"
        print(f"{what:36}{first:8.1f}{warm:8.2f}{p95:8.2f}{plain:8.2f}{warm / plain:7.1f}{loop:8.1f}")


def growth(shapes: int, start: int, *, kept: bool = False, trim: bool = True) -> None:
    """Memory over many shapes. `kept`: every program is held, as without a bound."""
    held, trimmer = [], cache._trim
    if not trim:
        cache._trim = None
    PROGRAMS.clear()
    gc.collect()
    maps, resident = memory()
    began = time.perf_counter()
    for n in range(start, start + shapes):
        run_call(call_of("kalman", np.ones((4, n), np.float32)))
        if kept:
            held += [slot.program for slot in PROGRAMS._slots.values()]
    seconds = time.perf_counter() - began
    gc.collect()
    maps_after, resident_after = memory()
    label = "all kept" if kept else ("bounded" if trim else "bounded, no malloc_trim")
    print(
        f"{label:26}{PROGRAMS.stats.programs:5} programs{maps_after - maps:+7} maps"
        f"{resident_after - resident:+8.1f} MiB{seconds:8.1f} s"
    )
    cache._trim = trimmer
    held.clear()


def many_shapes(shapes: int) -> None:
    """Programs, maps and memory: bounded, without giving the heap back, and without a bound."""
    print(f"\n{shapes} shapes of a Kalman filter:")
    growth(40, 3000)  # what grows once only
    growth(shapes, 1)
    growth(shapes, 500, trim=False)
    growth(shapes, 1000)
    growth(shapes, 1500, kept=True)


def test_times() -> None:
    times()


@pytest.mark.timeout(1800)
def test_many_shapes() -> None:
    many_shapes(100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, default=300)
    shapes = parser.parse_args().shapes
    start = time.perf_counter()
    warm_up()
    print(f"warm-up {(time.perf_counter() - start) * 1e3:.0f} ms")
    times()
    if Path("/proc/self/maps").exists():
        many_shapes(shapes)


if __name__ == "__main__":
    main()
