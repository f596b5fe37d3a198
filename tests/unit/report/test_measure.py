"""Latency is a distribution over runs that were waited for, with compiling apart."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from core.report import measure
from core.report.measure import Timed, TooSlowError, latency


def test_it_times_many_runs_of_a_program_that_no_cache_knew():
    timed = Timed("a sum", lambda x: jnp.sum(x), (np.ones(4, np.float32),))
    found = latency(timed, 500.0)
    assert 30 <= found.runs <= 200
    assert found.warm_up >= 1
    assert 0 < found.median_ms <= found.p90_ms <= found.p99_ms
    # Compiled again, and not taken from anywhere: a cached program comes back in a fraction of this.
    assert found.compile_ms > 1
    assert latency(timed, 500.0).compile_ms > 1


def test_each_percentile_is_a_run_that_was_made_and_none_is_the_best(monkeypatch):
    times = iter([5.0] * 3 + [float(n) for n in range(1, 101)])
    monkeypatch.setattr(measure, "_one", lambda _program, _args: next(times))
    monkeypatch.setitem(measure.LIMITS, "report_runs", type(measure.LIMITS["report_runs"])("report_runs", 100, "", ""))
    found = latency(Timed("x", lambda x: x, (1.0,)), 1e9)
    assert (found.runs, found.median_ms, found.p90_ms, found.p99_ms) == (100, 50.0, 90.0, 99.0)


def test_a_program_that_is_too_slow_for_thirty_runs_is_not_timed(monkeypatch):
    monkeypatch.setattr(measure, "_one", lambda _program, _args: 500.0)
    with pytest.raises(TooSlowError, match="500 ms"):
        latency(Timed("x", lambda x: x, (1.0,)), 2_000.0)


def test_at_least_thirty_runs_are_made_whatever_the_budget(monkeypatch):
    monkeypatch.setattr(measure, "_one", lambda _program, _args: 0.01)
    assert latency(Timed("x", lambda x: x, (1.0,)), 0.0005 * 60 + 1).runs >= 30


def test_whoever_asks_can_end_it():
    def tell():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        latency(Timed("x", lambda x: x, (1.0,)), 100.0, tell)
