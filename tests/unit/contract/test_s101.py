"""S101: the step does not return a pair."""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.places import Field, Places, Span
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, only, run

XS = jnp.array([1.0, 2.0, 3.0])


class Two(NamedTuple):
    carry: Any
    y: Any


class Model:
    def step(self, total: Any, x: Any) -> Any:
        return total + x

    def __call__(self, total: Any, x: Any) -> Any:
        return total + x


def scaled(total: Any, x: Any, *, by: float) -> Any:
    return total + by * x


@pytest.mark.parametrize(
    ("returned", "got"),
    [
        (lambda c, x: c + x, "float32[]"),
        (lambda c, x: jnp.stack([c, x]), "float32[2]"),
        (lambda c, x: (c + x,), "a tuple of 1"),
        (lambda c, x: (c, x, x), "a tuple of 3"),
        (lambda c, x: [c, x, x, x], "a list of 4"),
        (lambda c, x: (), "an empty tuple"),
        (lambda c, x: {"carry": c, "y": x}, "a dict with the keys 'carry', 'y'"),
        (lambda c, x: OrderedDict(carry=c, y=x), "a OrderedDict with the keys 'carry', 'y'"),
        (lambda c, x: Two(c, x), "a Two of 2"),
        (lambda c, x: "text", "str"),
    ],
)
def test_anything_but_a_tuple_or_list_of_two(returned: Any, got: str) -> None:
    violation = only(ScanCall(returned, 0.0, XS), "S101")
    assert violation.message == f"The step returns {got}, not a pair (new carry, y)."
    assert [str(t) for t in violation.got] == [got]
    assert [str(t) for t in violation.expected] == ["a tuple of 2: (new carry, y)"]


def test_a_missing_return_is_said() -> None:
    violation = only(ScanCall(lambda c, x: None, 0.0, XS), "S101")
    assert "its `return` is missing" in violation.message
    assert violation.fixes == ()


@pytest.mark.parametrize(
    "step",
    [Model(), Model().step, jax.jit(Model().step), partial(scaled, by=2.0), partial(Model.step, Model())],
)
def test_whatever_kind_of_callable(step: Any) -> None:
    call = ScanCall(step, 0.0, XS)
    only(call, "S101")
    run(mended(call, "S101", "step_return"))


def test_steps_with_params() -> None:
    call = ScanCall(scaled, 0.0, XS, params={"by": jnp.float32(2)})
    only(call, "S101")
    final, ys = run(mended(call, "S101", "step_return"))
    assert final == 12.0
    assert ys is None


@pytest.mark.parametrize(
    "step",
    [
        lambda c, x: (c + x, x),
        lambda c, x: [c + x, x],
        lambda c, x: (c + x, None),
        lambda c, x: (c + x, ()),
        lambda c, x: (c + x, {"a": x, "b": (x, c)}),
        lambda c, x: (c + x, jnp.stack([c, x])),
        lambda c, x: (c + x, np.zeros(2)),
    ],
)
def test_pairs_are_no_fault(step: Any) -> None:
    clean(ScanCall(step, 0.0, XS))


def test_the_public_report_of_a_step_that_returns_one_array() -> None:
    # jax-ml/jax#598
    def step(a: Any, x: Any) -> Any:
        return a + x

    call = ScanCall(step, jnp.ones(5), jnp.arange(4.0))
    only(call, "S101")
    assert kinds(call, "S101") == ["step_return", "step_return"]
    final, ys = run(mended(call, "S101", "step_return"))
    assert final.tolist() == [7.0] * 5
    assert ys is None

    def fixed(a: Any, x: Any) -> Any:
        return a + x, a

    clean(ScanCall(fixed, jnp.ones(5), jnp.arange(4.0)))


def test_three_things_are_grouped() -> None:
    call = ScanCall(lambda c, x: (c + x, x, 2 * x), 0.0, XS)
    final, (first, second) = run(mended(call, "S101", "step_return"))
    assert final == 6.0
    assert first.tolist() == [1.0, 2.0, 3.0]
    assert second.tolist() == [2.0, 4.0, 6.0]


def test_the_carry_s_parts_and_y_side_by_side_are_grouped() -> None:
    call = ScanCall(lambda s, x: (s[0] + x, s[1] * 2, x), (0.0, jnp.ones(2)), XS)
    (total, power), ys = run(mended(call, "S101", "step_return"))
    assert total == 6.0
    assert power.tolist() == [8.0, 8.0]
    assert ys.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "step",
    [lambda c, x: Two(c + x, x), lambda c, x: {"y": x, "carry": c + x}, lambda c, x: {"a": jnp.ones(2), "b": c + x}],
)
def test_named_pairs_become_a_tuple(step: Any) -> None:
    final, _ = run(mended(ScanCall(step, 0.0, XS), "S101", "step_return"))
    assert final == 6.0


def test_no_fix_where_the_carry_cannot_be_told_from_y() -> None:
    assert only(ScanCall(lambda c, x: {"p": c + x, "q": x}, 0.0, XS), "S101").fixes == ()
    assert only(ScanCall(lambda c, x: jnp.stack([c, x]), 0.0, XS), "S101").fixes == ()


def test_the_right_step_comes_first() -> None:
    call = ScanCall(lambda c, x: c + x, 0.0, XS, right_step=lambda c, x: (c + x, c + x))
    assert kinds(call, "S101")[0] == "step"
    final, ys = run(mended(call, "S101", "step"))
    assert final == 6.0
    assert ys.tolist() == [1.0, 3.0, 6.0]


def test_its_place_is_the_return_then_the_step() -> None:
    span, field = Span(3, 4, 3, 16), Field("scan_step", "step")
    places = Places({"return": span, "step": field})
    assert only(ScanCall(lambda c, x: c, 0.0, XS, places=places), "S101").place == span
    assert only(ScanCall(lambda c, x: c, 0.0, XS, places=Places({"step": field})), "S101").place == field
