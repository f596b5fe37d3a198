"""S112: a constant rides in xs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import run
from tests.unit.contract.silent_support import noted, quiet

X = jnp.arange(9.0).reshape(3, 3)
W = jnp.array([1.0, 10.0, 100.0])


def test_the_report_weights_for_each_feature() -> None:
    def step(total: Any, inp: Any) -> Any:
        x_t, w_t = inp
        y = jnp.sum(x_t * w_t)
        return total + y, y

    call = ScanCall(step, 0.0, (jnp.ones((3, 3)), W))
    assert run(call)[1].tolist() == [3.0, 30.0, 300.0]  # meant: 111 at each step
    violation = noted(call, "S112")
    assert violation.severity is Severity.NOTE
    assert violation.path == "xs[1]"
    assert "xs[0] float32[3,3]" in violation.message


@pytest.mark.parametrize(
    "step",
    [
        lambda c, i: (jnp.tanh(c + i[0] + i[1]), None),
        lambda c, i: (c + jnp.where(i[1] > 5, i[0], 0.0) * i[1], None),
        lambda c, i: (c + jnp.dot(i[1], i[0]), None),
        lambda c, i: (c * i[1] + i[0], None),
        lambda c, i: (c + jax.jit(jnp.multiply)(i[0], i[1]), None),
        lambda c, i: (jnp.maximum(c, i[0] - i[1][None]), None),
    ],
)
def test_however_it_is_combined(step: Any) -> None:
    assert noted(ScanCall(step, jnp.zeros(3), (X, W)), "S112").path == "xs[1]"


def test_named_leaves_and_whole_numbers() -> None:
    call = ScanCall(lambda c, x: (c * x["decay"] + x["u"], None), jnp.zeros(3), {"u": X, "decay": W / 100})
    assert noted(call, "S112").path == "xs['decay']"
    noted(ScanCall(lambda c, x: (c + x[0] * x[1], None), jnp.zeros(3), (X, jnp.array([1, 10, 100]))), "S112")


def test_a_matrix_cut_into_rows() -> None:
    call = ScanCall(lambda c, i: (c + i[0] @ i[1], None), 0.0, (X, X + 1))
    assert run(call)[0].shape == ()  # a row with a row: one number, not a vector
    assert noted(call, "S112").path == "xs[1]"


def test_the_same_at_each_step() -> None:
    tiled = jnp.tile(jnp.array([1.0, 2.0]), (5, 1))
    call = ScanCall(lambda c, i: (c + i[0] * i[1], None), jnp.zeros(2), (jnp.arange(5.0), tiled))
    assert "the same at all 5 steps" in noted(call, "S112").message
    call = ScanCall(lambda c, i: (c + i[0] * i[1], None), 0.0, (jnp.arange(5.0), jnp.full(5, 0.1)))
    assert noted(call, "S112").path == "xs[1]"


two: Any = lambda c, i: (c + i[0] * i[1], None)  # noqa: E731


@pytest.mark.parametrize(
    ("step", "init", "xs"),
    [
        (two, jnp.zeros(3), (jnp.ones((4, 3)).at[0].set(2.0), jnp.arange(4.0))),  # T is not F: a weight for each step
        (two, 0.0, (jnp.arange(3.0), W)),  # numbers only
        (two, jnp.zeros(3), (jnp.arange(3.0), W)),  # a carry of width T alone says nothing
        (two, jnp.zeros(3), (X, jnp.arange(3))),  # step numbers
        (two, jnp.zeros(3), (X, jnp.arange(3)[::-1])),
        (lambda c, i: (jnp.where(i[1], c + i[0], c), None), jnp.zeros(3), (X, jnp.array([True, True, False]))),
        (lambda c, i: (c + i[0], i[1]), jnp.zeros(3), (X, W)),  # never combined
        (
            lambda c, i: (c + i[0] + jax.random.normal(i[1]), None),
            jnp.zeros(3),
            (X, jax.random.split(jax.random.key(0), 3)),
        ),
        (lambda c, x: (c * x, None), jnp.zeros(3), W),  # one leaf only
        (two, 0.0, (jnp.arange(4.0), jnp.ones(4))),  # ones say nothing
        (two, 0.0, (jnp.ones(4), jnp.full(4, 2.0))),  # nothing moves: no sequence to tell a constant from
        (two, jnp.zeros(1), (jnp.ones((1, 1)), jnp.ones(1))),  # one step
    ],
)
def test_near_misses(step: Any, init: Any, xs: Any) -> None:
    quiet(ScanCall(step, init, xs), "S112")


def test_place() -> None:
    places = Places({"xs": Field("scan_source", "xs")})
    assert noted(ScanCall(two, jnp.zeros(3), (X, W), places=places), "S112").place == Field("scan_source", "xs")
