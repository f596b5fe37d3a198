"""What one check remembers, and that it forgets it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest

from core.contract.engine import check
from core.contract.subject import ScanCall
from core.runners.cache import PROGRAMS, count_compiles
from core.runners.memo import once, one_check
from core.runners.scan import run_call


def test_once_within_a_check_and_every_time_outside() -> None:
    made: list[int] = []
    thing = object()

    def work() -> int:
        made.append(1)
        return len(made)

    assert [once(("a",), (thing,), work), once(("a",), (thing,), work)] == [1, 2]
    with one_check():
        assert once(("a",), (thing,), work) == 3
        with one_check():
            assert once(("a",), (thing,), work) == 3
        assert once(("a",), (thing,), work) == 3
        assert once(("b",), (thing,), work) == 4
        assert once(("a",), (object(),), work) == 5
    assert once(("a",), (thing,), work) == 6


def test_a_failure_is_not_kept() -> None:
    def fails() -> Any:
        raise ValueError

    with one_check():
        with pytest.raises(ValueError):
            once((), (), fails)
        assert once((), (), lambda: 1) == 1


def test_a_call_of_a_learner_runs_once_in_a_check_and_is_not_kept() -> None:
    call = ScanCall(lambda c, x: (c + x, None), 0.0, jnp.ones(3))
    with one_check():
        assert run_call(call) is run_call(call)
    assert run_call(call) is not run_call(call)


def test_how_little_a_check_compiles() -> None:
    def compiles(call: ScanCall) -> int:
        check(call)  # JAX's own eager operations are compiled by now
        before = PROGRAMS.stats.programs
        with count_compiles() as counted:
            check(call)
        assert PROGRAMS.stats.programs == before
        return counted.count

    assert compiles(ScanCall(lambda c, x: (c + x, c), 0.0, jnp.ones(50))) == 1
    assert compiles(ScanCall(lambda c, _: (c + 1, None), jnp.bfloat16(0), None, length=300)) <= 4
    assert compiles(ScanCall(lambda c, x: (c * x, None), 1, jnp.arange(1, 20))) <= 2
