"""How long one program takes: a distribution over many runs after a warm-up, never the single best; compiling apart."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from core.base.limits import LIMITS
from core.base.text import fill
from core.report.model import Latency

TOO_SLOW = "One run takes about {one:.0f} ms: {least} of them are more than the {most:.1f} s that are given to this."


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """What is timed: `run(*args)` under `jax.jit`, and what it is in words."""

    what: str
    run: Callable[..., Any]
    args: tuple[Any, ...]


class TooSlowError(ValueError):
    """So many runs as a distribution needs take longer than is given; the message says so."""


def latency(timed: Timed, budget_ms: float, tell: Callable[[], None] | None = None) -> Latency:
    """Trace, compile, warm up, then time run after run until its result is ready.

    Args:
        timed: what is run.
        budget_ms: no more runs are begun after so long, once there are the least that a distribution needs.
        tell: called before each run; what it raises ends the measurement.

    Raises:
        TooSlowError: the least number of runs does not fit the budget.
        whatever the program raises.
    """
    # A name that no cache of compiled programs has seen: what is measured is compiling, not reading a file.
    name = f"report_{secrets.token_hex(6)}"

    def program(*args: Any) -> Any:
        return timed.run(*args)

    program.__name__ = program.__qualname__ = name
    args = jax.device_put(timed.args)
    started = time.perf_counter_ns()
    lowered = jax.jit(program).lower(*args)
    traced = time.perf_counter_ns()
    compiled = lowered.compile()
    done = time.perf_counter_ns()
    least, most = max(30, LIMITS["report_least_runs"].value), LIMITS["report_runs"].value
    warm_up = LIMITS["report_warm_up"].value
    slowest = 0.0
    for _ in range(warm_up):
        slowest = _one(compiled, args)
        if slowest * least > 2 * budget_ms:
            raise TooSlowError(fill(TOO_SLOW, one=slowest, least=least, most=budget_ms / 1000))
    times: list[float] = []
    begun = time.perf_counter()
    while len(times) < max(least, most):
        spent = (time.perf_counter() - begun) * 1000
        if spent > budget_ms:
            if len(times) >= least:
                break
            if spent > 2 * budget_ms:
                raise TooSlowError(fill(TOO_SLOW, one=spent / max(1, len(times)), least=least, most=budget_ms / 1000))
        if tell is not None:
            tell()
        times.append(_one(compiled, args))
    # The inverse of the distribution: each of these is a run that was really made.
    median, p90, p99 = np.percentile(times, [50, 90, 99], method="inverted_cdf")
    return Latency(
        timed.what,
        len(times),
        warm_up,
        float(median),
        float(p90),
        float(p99),
        (traced - started) / 1e6,
        (done - traced) / 1e6,
    )


def _one(compiled: Callable[..., Any], args: tuple[Any, ...]) -> float:
    """Milliseconds of one run, its result ready."""
    started = time.perf_counter_ns()
    block: Any = jax.block_until_ready  # untyped in jax's stubs
    block(compiled(*args))
    return (time.perf_counter_ns() - started) / 1e6
