"""What a layer over sequences costs here, beside a bare jitted `lax.scan` over the same cell.

    python -m pytest tests/bench/bench_sequences.py -p no:xdist -s

The bare program is given the cell built, the data on the host in the order they are scanned, and returns what ours does:
carries, outputs and gates, brought to the host. Both run in turn, so that a busy machine slows both. Numbers are of
this machine: read the ratios.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest
from flax import nnx
from jax import lax

from core.base.sequences import Masking
from core.contract.subject import SequenceTrial
from core.runners.cache import clear_all, count_compiles
from core.runners.cell_formulas import KINDS
from core.runners.cells import listen
from core.runners.sequence import run_sequence
from core.runners.sequence_reference import against_numpy, sequence_checks
from tests.bench.table import record

T, B, F, H = 256, 8, 16, 64
ROUNDS = 200
#: The target of issue 4.
TARGET = 1.3


def trial_of(kind: str, length: int = T, hidden: int = H, **changes: Any) -> SequenceTrial:
    inputs = np.random.default_rng(0).normal(size=(B, length, F)).astype(np.float32)
    return SequenceTrial(kind, inputs, "BTF", hidden, **changes)


def bare_of(trial: SequenceTrial) -> Callable[[], object]:
    """A jitted scan over the same cell: carries, outputs and gates of each step, on the host."""
    kind = KINDS[trial.kind]
    graph, state = nnx.split(kind.cell(F, trial.hidden_features, rngs=nnx.Rngs(trial.seed)))
    zeros = np.zeros((B, trial.hidden_features), np.float32)
    init = (zeros, zeros) if kind.pair else zeros
    xs = np.ascontiguousarray(trial.inputs.swapaxes(0, 1))

    def scan(state: Any, init: Any, xs: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            cell = nnx.merge(graph, state)
            kept = listen(kind, cell)
            new, y = cell(carry, x)
            return new, (new, y, {gate.name: kept[gate.name][1] for gate in kind.gates})

        return lax.scan(step, init, xs)

    program = jax.jit(scan)
    return lambda: jax.device_get(program(state, init, xs))


def alternating(*works: Callable[[], object]) -> list[tuple[float, float]]:
    """Median and 95th percentile of each, in ms; they take turns."""
    times: list[list[float]] = [[] for _ in works]
    for work in works:
        work()
    for _ in range(ROUNDS):
        for work, own in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            own.append((time.perf_counter() - start) * 1e3)
    return [(statistics.median(own), statistics.quantiles(own, n=20)[18]) for own in times]


def once(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def test_a_warm_run_costs_little_more_than_the_bare_scan() -> None:
    print(f"\nT={T} B={B} F={F} H={H}, ms {'run':>14}{'p95':>8}{'bare':>8}{'p95':>8}{'ratio':>7}")
    ratios = {}
    for kind in KINDS:
        trial = trial_of(kind)
        (run, run_p95), (bare, bare_p95) = alternating(lambda t=trial: run_sequence(t), bare_of(trial))
        ratios[kind] = run / bare
        print(f"{kind:32}{run:8.2f}{run_p95:8.2f}{bare:8.2f}{bare_p95:8.2f}{ratios[kind]:7.2f}")
        record(f"T=256 B=8 H=64, {kind}: warm recompute, of a bare jitted scan", ratios[kind], "x", TARGET)


def test_other_ways() -> None:
    trial = trial_of("LSTMCell")
    mask = np.random.default_rng(1).random((B, T)) < 0.8
    lengths = tuple(range(T - B + 1, T + 1))
    ways = {
        "forward": trial,
        "lengths": replace(trial, masking=Masking.LENGTHS, lengths=lengths),
        "reverse with lengths": replace(trial, masking=Masking.LENGTHS, lengths=lengths, reverse=True, keep_order=True),
        "mask": replace(trial, masking=Masking.MASK, mask=mask),
        "bidirectional": replace(trial, bidirectional=True),
        "changed weights": replace(trial, weights={"forget_bias": 1.0, "recurrent_scale": 0.9}),
        "a seed that is not kept": replace(trial, seed=123_456),
    }
    print(f"\n{'LSTMCell, ms':32}{'run':>8}{'p95':>8}")
    measured = alternating(*(lambda t=one: run_sequence(t) for one in ways.values()))
    for name, (run, p95) in zip(ways, measured, strict=True):
        print(f"{name:32}{run:8.2f}{p95:8.2f}")


@pytest.mark.timeout(600)
def test_a_hidden_size_never_seen_before() -> None:
    print(f"\n{'first run of a new hidden size':44}{'compiled':>9}{'ms':>8}")
    clear_all()
    run_sequence(trial_of("LSTMCell", hidden=30))
    for kind in KINDS:
        for hidden in (31, 63, 127):
            with count_compiles() as compiles:
                spent = once(lambda k=kind, h=hidden: run_sequence(trial_of(k, hidden=h)))
            print(f"{kind} H={hidden:<24}{compiles.count:>9}{spent:8.0f}")


@pytest.mark.timeout(600)
def test_checks() -> None:
    trial = trial_of("LSTMCell", masking=Masking.LENGTHS, lengths=tuple(range(T - B + 1, T + 1)))
    result = run_sequence(trial)
    ((numpy, p95),) = alternating(lambda: against_numpy(trial, result))
    print(f"\nagainst_numpy {numpy:.1f} ms (p95 {p95:.1f})")
    print(f"sequence_checks, 64 steps: first {once(lambda: sequence_checks(trial, result)):.0f} ms", end=", ")
    print(f"then {once(lambda: sequence_checks(trial, result)):.0f}", end="; ")
    print(f"all steps {once(lambda: sequence_checks(trial, result, None)):.0f} ms")


if __name__ == "__main__":
    test_a_warm_run_costs_little_more_than_the_bare_scan()
    test_other_ways()
    test_a_hidden_size_never_seen_before()
    test_checks()
