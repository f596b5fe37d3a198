"""S103: the carry's shape changes."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from core.base.places import Field, Places
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, only, run, several

XS = jnp.array([1.0, 2.0, 3.0])


class Model:
    def step(self, total: Any, x: Any) -> Any:
        return jnp.append(total, x), x

    def __call__(self, total: Any, x: Any) -> Any:
        return jnp.append(total, x), x


@pytest.mark.parametrize("size", [0, 1, 3])
@pytest.mark.parametrize("grow", [jnp.append, lambda c, x: jnp.concatenate([c, x[None]]), lambda c, x: jnp.r_[c, x]])
def test_growing(size: int, grow: Any) -> None:
    violation = only(ScanCall(lambda seen, x: (grow(seen, x), x), jnp.zeros(size), XS), "S103")
    assert violation.message == (
        f"carry (`seen` in the step) grows: it goes in as float32[{size}] and comes out as float32[{size + 1}]."
    )
    assert [str(t) for t in violation.expected] == [f"float32[{size}]"]
    assert [str(t) for t in violation.got] == [f"float32[{size + 1}]"]
    assert violation.fixes == ()


@pytest.mark.parametrize(
    "step", [Model(), Model().step, jax.jit(Model().step), partial(Model.step, Model()), lambda *a: Model().step(*a)]
)
def test_whatever_kind_of_callable(step: Any) -> None:
    only(ScanCall(step, jnp.zeros(2), XS), "S103")


def test_growing_with_a_right_step() -> None:
    def right(c: Any, x: Any) -> Any:
        return jnp.concatenate([c[1:], x[None]]), x

    call = ScanCall(lambda c, x: (jnp.append(c, x), x), jnp.zeros(2), XS, right_step=right)
    assert kinds(call, "S103") == ["step"]
    final, _ = run(mended(call, "S103", "step"))
    assert final.tolist() == [2.0, 3.0]


def test_broadcasting_against_x() -> None:
    call = ScanCall(lambda total, x: (total + x, total), 0.0, jnp.ones((4, 3)))
    violation = only(call, "S103")
    assert violation.because is not None
    assert violation.because.text == "init set float32[] here"
    fixed = mended(call, "S103", "init_shape")
    final, ys = run(fixed)
    assert final.tolist() == [4.0, 4.0, 4.0]
    assert ys.shape == (4, 3)


def test_init_keeps_its_values_when_it_is_broadcast() -> None:
    call = ScanCall(lambda c, x: (c + x, None), jnp.array([1.0, 2.0]), jnp.ones((3, 4, 2)))
    final, _ = run(mended(call, "S103", "init_shape"))
    assert final.tolist() == [[4.0, 5.0]] * 4


def test_a_weak_init_that_is_promoted_first() -> None:
    violation = only(ScanCall(lambda c, x: (c + x, None), 0, jnp.ones((4, 3))), "S103")
    assert [str(t) for t in violation.expected] == ["float32[]"]
    assert violation.because is not None
    assert violation.because.text == "init set int32[] here, weakly typed: the scan made it float32[]"


def test_the_public_report_of_a_scalar_that_gets_an_axis() -> None:
    # google/brax#228
    def step(state: Any, action: Any) -> Any:
        obs = state["obs"] + action
        reward = jnp.sum(obs, keepdims=True)
        return {"obs": obs, "reward": reward}, reward

    call = ScanCall(step, {"obs": jnp.zeros(3), "reward": jnp.array(0.0)}, jnp.ones((4, 3)))
    violation = only(call, "S103")
    assert violation.path == "carry['reward']"
    assert "state['reward']" in violation.message
    assert kinds(call, "S103") == ["step_shape", "init_shape"]
    final, ys = run(mended(call, "S103", "step_shape"))
    assert final["obs"].tolist() == [4.0, 4.0, 4.0]
    assert final["reward"].shape == ()
    assert final["reward"] == 12.0
    assert ys.ravel().tolist() == [3.0, 6.0, 9.0, 12.0]


def test_a_lost_axis_is_given_back() -> None:
    call = ScanCall(lambda c, x: (c[0] + x, x), jnp.zeros(1), XS)
    assert kinds(call, "S103") == ["step_shape"]  # init of shape () cannot be indexed
    final, _ = run(mended(call, "S103", "step_shape"))
    assert final.tolist() == [6.0]


def test_a_constant_init_may_shrink_but_no_number_is_lost() -> None:
    def step(c: Any, x: Any) -> Any:
        return jnp.sum(c) + x, x

    assert kinds(ScanCall(step, jnp.zeros(3), XS), "S103") == ["init_shape"]
    final, _ = run(mended(ScanCall(step, jnp.zeros(3), XS), "S103", "init_shape"))
    assert final == 6.0
    assert only(ScanCall(step, jnp.array([0.0, 1.0, 2.0]), XS), "S103").fixes == ()


def test_a_transposed_carry_is_not_reshaped() -> None:
    assert only(ScanCall(lambda c, x: (c.T, x), jnp.arange(6.0).reshape(2, 3), XS), "S103").fixes == ()


def test_each_leaf_is_said_for_itself() -> None:
    call = ScanCall(lambda s, x: ((s[0] + x, s[1] * x, s[2]), x), (0.0, jnp.ones(()), 0.0), jnp.ones((4, 3)))
    assert [v.path for v in several(call, "S103")] == ["carry[0]", "carry[1]"]


@pytest.mark.parametrize(
    ("init", "step"),
    [
        (jnp.zeros(2), lambda c, x: (jnp.append(c[1:], x), x)),
        (jnp.zeros(3), lambda c, x: (c + x, x)),
        (jnp.zeros((1, 3)), lambda c, x: (c + x, x)),
        (0.0, lambda c, x: ((c + x).reshape(()), x)),
        (jnp.zeros((0,)), lambda c, x: (c * x, x)),
        ((jnp.zeros(2), 0.0), lambda c, x: ((c[0] + x, c[1] + 1.0), jnp.append(c[0], x))),
    ],
)
def test_the_same_shape_is_no_fault(init: Any, step: Any) -> None:
    clean(ScanCall(step, init, XS))


def test_places() -> None:
    places = Places({"return:carry": Field("r", "return"), "step": Field("s", "step"), "init": Field("i", "init")})
    violation = only(ScanCall(lambda c, x: (jnp.append(c, x), x), jnp.zeros(2), XS, places=places), "S103")
    assert violation.place == Field("r", "return")
    assert violation.because is not None
    assert violation.because.place == Field("i", "init")
