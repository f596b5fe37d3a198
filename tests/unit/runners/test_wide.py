"""The same scan in 64 bits: values, directions, and that nothing of it is left behind."""

from __future__ import annotations

import threading
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.contract.subject import ScanCall
from core.runners.scan import run_call
from core.runners.wide import wide_path, wide_steps, widen


def step(c: Any, x: Any, *, gain: Any = 1.0) -> Any:
    return {"n": c["n"] + 1, "s": c["s"] + gain * x}, c["s"] * 2


@pytest.mark.parametrize("reverse", [False, True])
def test_the_path_is_numpys(reverse: bool) -> None:
    xs = np.random.default_rng(0).normal(size=(9, 2))
    call = ScanCall(step, {"n": 0, "s": np.zeros(2)}, xs, reverse=reverse, params={"gain": 0.5})
    wide = wide_path(call, run_call(call))
    visited = xs[::-1] if reverse else xs
    sums = np.concatenate([np.zeros((1, 2)), np.cumsum(0.5 * visited, axis=0)])
    assert [c.dtype.name for c in wide.carries] == ["int64", "float64"]
    assert wide.carries[0].tolist() == list(range(10))
    np.testing.assert_allclose(wide.carries[1], sums, rtol=1e-14)
    np.testing.assert_allclose(wide.ys[0], 2 * sums[:-1], rtol=1e-14)


def test_steps_start_where_the_narrow_scan_stood() -> None:
    call = ScanCall(lambda c, x: (c + x, c), jnp.int8(100), jnp.array([100, 1], jnp.int8))
    result = run_call(call)
    assert result.carries[0].values.tolist() == [100, -56, -55]
    steps = wide_steps(call, result)
    assert steps.carries[0].tolist() == [200, -55]
    assert steps.ys[0].tolist() == [100, -56]
    back = ScanCall(call.step, call.init, call.xs, reverse=True)
    assert wide_steps(back, run_call(back)).carries[0].tolist() == [101, 201]


def test_numbers_are_taken_as_they_were_given() -> None:
    call = ScanCall(lambda c, x: (c + x, None), np.float64(1.0), np.full(3, 1e-12))
    assert wide_path(call, run_call(call)).carries[0][-1] == pytest.approx(1.0 + 3e-12, abs=1e-15)


def test_without_xs() -> None:
    call = ScanCall(lambda c, _: (c * 2, c), 1.5, None, length=4)
    assert wide_path(call, run_call(call)).carries[0].tolist() == [1.5, 3.0, 6.0, 12.0, 24.0]
    assert wide_steps(call, run_call(call)).ys[0].tolist() == [1.5, 3.0, 6.0, 12.0]


def test_what_cannot_be_widened() -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    call = ScanCall(lambda c, k: (c + jax.random.normal(k), None), 0.0, keys)
    with pytest.raises(TypeError):
        wide_steps(call, run_call(call))
    insists = ScanCall(lambda c, x: ((c + x).astype(jnp.float32), None), 0.0, jnp.ones(3))
    with pytest.raises(TypeError):
        wide_path(insists, run_call(insists))
    with pytest.raises(OverflowError):
        widen(np.array([2**63], np.uint64), "uint32")
    assert not jax.config.read("jax_enable_x64")


def test_nothing_is_left_behind() -> None:
    call = ScanCall(lambda c, x: (c + x, jnp.asarray(1.0)), 0.0, jnp.ones(3))
    before = run_call(call)
    wide_path(call, before)
    after = run_call(call)
    assert after.ys.dtype == np.float32
    assert jnp.asarray(1.0).dtype == jnp.float32

    seen: list[Any] = []

    def inside(c: Any, x: Any) -> Any:
        other = threading.Thread(target=lambda: seen.append(jnp.asarray(1.0).dtype))
        other.start()
        other.join()
        return c + x, None

    watched = ScanCall(inside, 0.0, jnp.ones(3))
    result = run_call(watched)
    seen.clear()
    wide_path(watched, result)
    assert seen
    assert {str(d) for d in seen} == {"float32"}


def test_a_cast_that_changes_nothing_does_not_cut_the_wide_numbers() -> None:
    call = ScanCall(lambda c, x: ((c * x).astype(jnp.int32), c.astype(jnp.int8)), jnp.int32(1), np.arange(1, 15))
    result = run_call(call)
    program = jax.make_jaxpr(call.step)(jnp.int32(1), jnp.int32(1))
    steps = wide_steps(call, result, program)
    assert steps.carries[0].dtype == np.int64
    assert int(steps.carries[0][12]) == 6227020800  # 13!
    assert steps.ys[0].dtype == np.int8  # cut on purpose
    assert wide_steps(call, result).carries[0].dtype == np.int32  # what nothing is known of is left as it is
    assert int(wide_path(call, result, program).carries[0][14]) == 87178291200
