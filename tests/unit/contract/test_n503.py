"""N503: two ways to run the same step disagree."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.places import Field, Places
from core.base.violation import Severity, Violation
from core.contract.engine import check, check_late
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import run
from tests.unit.contract.silent_support import add


def late(call: ScanCall) -> tuple[Violation, ...]:
    assert "N503" not in check(call).codes  # it waits until after the plot
    return check_late(call)


def test_numbers_drawn_by_numpy_are_frozen_in_the_scan() -> None:
    rng = np.random.default_rng(0)

    def step(c: Any, x: Any) -> Any:
        noise = x * rng.normal()
        return c + noise, noise

    call = ScanCall(step, 0.0, jnp.ones(5), places=Places({"step": Field("scan_step", "step")}))
    assert len(set(run(call)[1].tolist())) == 1  # one draw for all steps
    (violation,) = late(call)
    assert violation.code == "N503"
    assert violation.severity is Severity.WARNING
    assert "called twice with the same carry and x" in violation.message
    assert "at t = 0" in violation.message
    assert violation.place == Field("scan_step", "step")
    assert violation.proof is not None
    assert violation.proof.before > 1e-3


def test_a_counter_outside_the_step() -> None:
    calls: list[int] = []

    def step(c: Any, x: Any) -> Any:
        calls.append(1)
        return c + len(calls), None

    call = ScanCall(step, 0, jnp.ones(4))
    (violation,) = late(call)
    assert violation.severity is Severity.WARNING
    assert "for carry at t = 0" in violation.message


def test_a_step_that_knows_whether_it_is_traced() -> None:
    def step(c: Any, x: Any) -> Any:
        return c + (x if isinstance(x, jax.core.Tracer) else 2 * x), None

    (violation,) = late(ScanCall(step, 0.0, jnp.ones(3)))
    assert violation.message == "carry at t = 0 is 2 when the step runs by itself, and 1 when it is jitted."
    assert violation.severity is Severity.WARNING


def test_a_step_that_runs_only_when_traced() -> None:
    def step(c: Any, x: Any) -> Any:
        if not isinstance(x, jax.core.Tracer):
            raise ValueError("only traced")
        return c + x, None

    (violation,) = late(ScanCall(step, 0.0, jnp.ones(3)))
    assert violation.severity is Severity.NOTE
    assert "ValueError: only traced" in violation.message


def lorenz(c: Any, _: Any) -> Any:
    x, y, z = c
    return (x + 0.02 * 10 * (y - x), y + 0.02 * (x * (28 - z) - y), z + 0.02 * (x * y - 8 / 3 * z)), None


def test_rounding_that_the_step_amplifies_is_a_note() -> None:
    violations = late(ScanCall(lorenz, (1.0, 1.0, 1.0), None, length=500))
    assert {v.severity for v in violations} <= {Severity.NOTE}
    assert {v.code for v in violations} <= {"N503"}


def test_a_difference_of_large_numbers_is_rounding() -> None:
    call = ScanCall(lambda c, x: (c * 1.0001 + x, c * 1.0001 + x - c), 1e6, jnp.ones(20) * 0.1)
    assert {v.severity for v in late(call)} <= {Severity.NOTE}


CELL = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))


@pytest.mark.parametrize(
    "call",
    [
        ScanCall(add, 0.0, jnp.linspace(0, 1, 100)),
        ScanCall(add, 0, jnp.full(5, 100, jnp.int8)),  # wraps, and the loop wraps with it
        ScanCall(add, jnp.bfloat16(0), jnp.full(50, 0.1, jnp.bfloat16)),
        ScanCall(lambda c, _: (3.9 * c * (1 - c), None), 0.3, None, length=64),  # chaotic, and equal
        ScanCall(lambda c, _: (3.9 * c * (1 - c), None), np.float64(0.3), None, length=64),
        ScanCall(add, 0.0, jnp.array([1.0, jnp.nan, 2.0])),  # NaN equals NaN
        ScanCall(lambda c, k: (c + jax.random.normal(k), None), 0.0, jax.random.split(jax.random.key(0), 5)),
        ScanCall(lambda c, x: CELL(c, x), (jnp.zeros((2, 4)), jnp.zeros((2, 4))), jnp.ones((6, 2, 3))),
        ScanCall(add, 0.0, jnp.zeros(0)),
        ScanCall(add, 0.0, jnp.arange(9.0), reverse=True, unroll=4),
    ],
)
def test_near_misses(call: ScanCall) -> None:
    assert late(call) == ()


# --- mixed precision ------------------------------------------------------------------------------------------------

BF16 = jnp.bfloat16
SEQUENCE = np.random.default_rng(0).normal(size=(5, 2, 3)).astype(np.float32)
KERNEL = jnp.array(np.random.default_rng(1).normal(size=(3, 3)), BF16)
NARROW_LSTM = nnx.LSTMCell(3, 4, dtype=BF16, rngs=nnx.Rngs(0))
NARROW_GRU = nnx.GRUCell(3, 4, dtype=BF16, rngs=nnx.Rngs(0))


def master_weights(w: Any, x: Any) -> Any:
    grad = jax.grad(lambda w: jnp.sum((x.astype(BF16) @ w.astype(BF16)) ** 2).astype(jnp.float32))(w)
    return w - 0.01 * grad, jnp.sum(grad)


@pytest.mark.parametrize(
    ("step", "init"),
    [
        (NARROW_LSTM, NARROW_LSTM.initialize_carry((2, 3), nnx.Rngs(1))),
        (NARROW_GRU, NARROW_GRU.initialize_carry((2, 3), nnx.Rngs(1))),
        (lambda c, x: (jnp.tanh(c + (x.astype(BF16) @ KERNEL).astype(jnp.float32)), c), jnp.zeros((2, 3))),
        (lambda c, x: (c + (jnp.tanh(c.astype(BF16) @ KERNEL) @ KERNEL).astype(jnp.float32) + x, c), jnp.zeros((2, 3))),
        (master_weights, KERNEL.astype(jnp.float32)),
    ],
)
def test_the_least_precise_dtype_of_the_step_decides(step: Any, init: Any) -> None:
    assert [v for v in late(ScanCall(step, init, SEQUENCE)) if v.severity.breaks] == []


def test_float32_is_never_compared_more_loosely() -> None:
    def step(c: Any, x: Any) -> Any:
        wide = x.astype(jnp.float32)
        return c + (wide if isinstance(x, jax.core.Tracer) else 1.001 * wide), None

    for xs in (jnp.ones(3), jnp.ones(3, BF16)):  # what only comes in as bfloat16 was rounded before the step
        (violation,) = late(ScanCall(step, 0.0, xs))
        assert violation.severity is Severity.WARNING


def test_a_real_difference_in_bfloat16_is_seen() -> None:
    def step(c: Any, x: Any) -> Any:
        return c + ((x if isinstance(x, jax.core.Tracer) else 2 * x).astype(BF16) * KERNEL[0, 0]).astype(c.dtype), None

    (violation,) = late(ScanCall(step, 0.0, jnp.ones(3)))
    assert violation.severity is Severity.WARNING


def test_the_place_is_the_returned_leaf() -> None:
    def step(c: Any, x: Any) -> Any:
        return (c[0], c[1] + (x if isinstance(x, jax.core.Tracer) else 2 * x)), None

    places = Places({"step": Field("def", ""), "return": Field("pair", ""), "return:carry[1]": Field("leaf", "")})
    (violation,) = late(ScanCall(step, (0.0, 0.0), jnp.ones(3), places=places))
    assert violation.place == Field("leaf", "")
