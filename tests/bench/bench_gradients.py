"""What the gradient map costs: one compiled call, beside `jacfwd` and `jacrev` of the same scan and one forward run.

    python -m tests.bench.bench_gradients [--length 128]

or all benchmarks with ``make bench``. Numbers are of this machine: read the ratios.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax

from core.contract.subject import SequenceTrial
from core.runners.cache import count_compiles
from core.runners.gradient_source import GRADIENT_PROGRAMS
from core.runners.gradients import check_memory, memory_map
from tests.bench.table import record

HIDDEN, FEATURES = 64, 3


def milliseconds(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Median and 95th percentile, after one call to warm up."""
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), statistics.quantiles(times, n=20)[18]


def plain(trial: SequenceTrial) -> dict[str, Callable[[], Any]]:
    """The scan of the cell as Flax builds it, and two differentiations of all its states, compiled."""
    xs = jnp.asarray(trial.inputs[0])
    cell = getattr(nnx, trial.kind)(xs.shape[1], trial.hidden_features, rngs=nnx.Rngs(trial.seed))
    graph, state = nnx.split(cell)
    zero = jnp.zeros(trial.hidden_features)

    def states(state: Any, xs: Any) -> Any:
        cell = nnx.merge(graph, state)

        def step(carry: Any, x: Any) -> Any:
            new, _ = cell(carry, x)
            return new, new

        return lax.scan(step, (zero, zero) if "LSTM" in trial.kind else zero, xs)[1]

    def norms(of: Callable[..., Any]) -> Any:
        reduce = lambda j: jnp.sqrt(jnp.sum(jnp.square(j), axis=(1, 3)))  # noqa: E731
        return jax.jit(lambda state, xs: jax.tree.map(reduce, of(states, argnums=1)(state, xs)))

    programs = {"forward": jax.jit(states), "jacfwd": norms(jax.jacfwd), "jacrev": norms(jax.jacrev)}
    return {name: lambda p=program: jax.device_get(p(state, xs)) for name, program in programs.items()}


def times(length: int) -> None:
    """One line a cell."""
    print(f"\nmap T={length}, H={HIDDEN}, F={FEATURES}; ms, warm unless it says first")
    print(f"{'cell':20}{'first':>8}{'map':>8}{'p95':>8}{'jacfwd':>8}{'jacrev':>8}{'forward':>9}{'check':>8}")
    for kind in ("LSTMCell", "OptimizedLSTMCell", "GRUCell", "SimpleCell"):
        data = np.random.default_rng(0).normal(size=(1, length, FEATURES)).astype(np.float32)
        trial = SequenceTrial(kind, data, "BTF", HIDDEN)
        memory_map(SequenceTrial(kind, data[:, :2], "BTF", HIDDEN), 0)  # the parameters are built
        before = GRADIENT_PROGRAMS.stats.compiles
        with count_compiles() as compiles:
            start = time.perf_counter()
            memory_map(trial, 0)
            first = (time.perf_counter() - start) * 1e3
        assert compiles.count == GRADIENT_PROGRAMS.stats.compiles - before == 1, "the map is one compiled call"
        hits = GRADIENT_PROGRAMS.stats.hits
        with count_compiles() as compiles:
            memory_map(trial, 0)
        assert (compiles.count, GRADIENT_PROGRAMS.stats.hits - hits) == (0, 1)
        others = plain(trial)
        warm, p95 = milliseconds(lambda t=trial: memory_map(t, 0), 40)
        forward, jacfwd, jacrev = (
            milliseconds(others[n], r)[0] for n, r in (("forward", 40), ("jacfwd", 20), ("jacrev", 5))
        )
        made = memory_map(trial, 0)
        check, _ = milliseconds(lambda t=trial, m=made: check_memory(t, 0, m), 5)
        print(
            f"{kind:20}{first:8.0f}{warm:8.1f}{p95:8.1f}{jacfwd:8.1f}{jacrev:8.0f}{forward:9.2f}{check:8.0f}"
            f"   = {warm / jacfwd:.2f} of jacfwd, {warm / jacrev:.3f} of jacrev, {warm / forward:.0f} forward runs"
        )
        record(f"map of gradients T={length}, {kind}: one compiled call", warm, "ms")
        record(f"map of gradients T={length}, {kind}: of jax.jacfwd", warm / jacfwd, "x")
        want = others["jacfwd"]()
        h, c = (want[1], want[0]) if isinstance(want, tuple) else (want, None)
        np.testing.assert_allclose(made.h, h, rtol=1e-4, atol=1e-6)
        if c is not None:
            np.testing.assert_allclose(made.c, c, rtol=1e-4, atol=1e-6)


def test_times() -> None:
    times(128)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=128)
    times(parser.parse_args().length)


if __name__ == "__main__":
    main()
