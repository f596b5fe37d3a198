"""X601: over a limit of Carry Lab."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.limits import LIMITS
from core.base.outcome import Outcome
from core.base.places import Field, Places
from core.base.violation import Severity, Violation
from core.contract.engine import check
from core.contract.subject import CellTrial, ScanCall
from tests.unit.contract.silent_support import add

PAGE = Places({"xs": Field("scan_source", "xs"), "length": Field("scan_length", "length")})


def over(subject: Any) -> Violation:
    report = check(subject)
    assert report.outcome is Outcome.LIMIT
    assert [v.code for v in report.violations] == ["X601"], [v.message for v in report.violations]
    assert report.violations[0].severity is Severity.LIMIT
    return report.violations[0]


def keep(c: Any, _: Any) -> Any:
    return c, None


def test_the_length_is_limited_on_a_page() -> None:
    violation = over(ScanCall(add, 0.0, jnp.ones(513), places=PAGE))
    assert violation.message == "T = 513 is over the limit of 512 steps."
    assert "`CARRY_LAB_LENGTH` raises it" in violation.why
    assert violation.place == Field("scan_source", "xs")
    assert over(ScanCall(keep, 0.0, None, length=10**9, places=PAGE)).place == Field("scan_length", "length")
    assert check(ScanCall(add, 0.0, jnp.ones(512), places=PAGE)).outcome is Outcome.OK
    assert check(ScanCall(add, 0.0, jnp.ones(600))).outcome is Outcome.OK  # a script may take more


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            ScanCall(keep, jax.ShapeDtypeStruct((10**5, 10**5), jnp.float32), None, length=2),
            "carry, float32[100000,100000], would be 10,000,000,000 elements",
        ),
        (
            ScanCall(add, 0.0, np.broadcast_to(np.float32(1), (10**9,))),
            "xs, float32[1000000000], would be 1,000,000,000",
        ),
        (ScanCall(keep, jnp.zeros(512), None, length=512), "carry over time, 513 × float32[512], would be 262,656"),
        (ScanCall(keep, 0.0, None, length=10**12), "would be 1,000,000,000,001 elements"),
        (
            ScanCall(lambda c, _: (c, jnp.zeros((1000, 1000))), 0.0, None, length=3),
            "ys over time, 3 × float32[1000,1000]",
        ),
    ],
)
def test_elements(call: ScanCall, message: str) -> None:
    assert message in over(call).message


def test_nothing_is_computed() -> None:
    def step(c: Any, x: Any) -> Any:
        jax.debug.callback(lambda: pytest.fail("it ran"))
        return c + x, jnp.zeros(10**6)

    over(ScanCall(step, 0.0, jnp.ones(3)))


def test_up_to_the_limit() -> None:
    size = LIMITS["elements"].value // 4
    assert check(ScanCall(keep, jnp.zeros(size), None, length=3)).outcome is Outcome.OK
    over(ScanCall(keep, jnp.zeros(size), None, length=4))


def rngs() -> nnx.Rngs:
    return nnx.Rngs(0)


def trial(**changes: Any) -> CellTrial:
    given = {"in_features": 3, "hidden_features": 4, "input_shape": (2, 3), "inputs": jnp.ones((2, 3))} | changes
    return CellTrial(nnx.LSTMCell, rngs=rngs, carry_rngs=rngs, **given)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"hidden_features": 10**6},
            "hidden_features = 1,000,000 is over the limit of 256 units.",
        ),
        ({"in_features": 10**6}, "in_features = 1,000,000 is over the limit of 128 features."),
        ({"input_shape": (10**9, 3)}, "The initialised carry, (1000000000,) × 4, would be 4,000,000,000 elements"),
        ({"inputs": np.broadcast_to(np.float32(0), (10**9, 3))}, "would be 1,000,000,000 examples"),
        ({"carry": (np.broadcast_to(np.float32(0), (10**9, 4)),) * 2}, "carry[0], float32[1000000000,4], would be"),
    ],
)
def test_a_cell_is_not_built(changes: dict[str, Any], message: str) -> None:
    assert any(message in v.message for v in check(trial(**changes)).violations)
    assert check(trial(**changes)).outcome is Outcome.LIMIT


def test_a_cell_of_ordinary_size() -> None:
    assert check(trial()).outcome is Outcome.OK
    wide = trial(in_features=128, hidden_features=256, inputs=jnp.ones((64, 128)), input_shape=(64, 128))
    assert check(wide).outcome is Outcome.OK


@pytest.mark.parametrize("value", ["four", None, 4.5, jnp.ones(2)])
def test_sizes_that_are_no_sizes_are_left_to_others(value: Any) -> None:
    assert "X601" not in check(trial(hidden_features=value)).codes
    assert "X601" not in check(ScanCall(add, 0.0, jnp.ones(3), length=value)).codes


@pytest.mark.parametrize(
    ("unroll", "steps", "over"),
    [(True, 40, 40), (0, 40, 40), (33, 40, 33), (500, 20, None), (32, 512, None), (False, 512, None), ("3", 40, None)],
)
def test_unrolling_on_a_page_is_limited_because_its_program_takes_a_minute_to_compile(unroll, steps, over):
    places = Places({"length": Field("scan_length", "length"), "unroll": Field("scan_unroll", "unroll")})
    call = ScanCall(lambda c, x: (c, c), 0.0, None, steps, unroll=unroll, places=places)
    found = [v for v in check(call).violations if v.code == "X601"]
    assert [v.place for v in found] == ([Field("scan_unroll", "unroll")] if over else [])
    assert all(f"{over} steps" in v.message and "the limit of 32" in v.message for v in found)
