"""S109: nothing to scan."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from core.base.places import Field, Places
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, mended, only, run


def double(c: Any, _: Any) -> Any:
    return c * 2, c


class Double:
    def __call__(self, c: Any, _: Any) -> Any:
        return c * 2, c


@pytest.mark.parametrize("step", [Double(), Double().__call__, jax.jit(double), lambda *a: double(*a)])
def test_whatever_kind_of_callable(step: Any) -> None:
    only(ScanCall(step, 1.0), "S109")


@pytest.mark.parametrize("xs", [None, (), {}, [], (None,), {"a": None, "b": ()}])
def test_no_array_and_no_length(xs: Any) -> None:
    only(ScanCall(double, 1.0, xs), "S109")


def test_says_what_xs_is() -> None:
    assert only(ScanCall(double, 1.0), "S109").message == (
        "There is nothing to scan over: xs is not given, and neither is length."
    )
    assert "xs is an empty dict without any array" in only(ScanCall(double, 1.0, {}), "S109").message


def test_the_least_that_runs_is_one_step() -> None:
    final, ys = run(mended(ScanCall(double, 1.0), "S109", "length"))
    assert final == 2.0
    assert ys.tolist() == [1.0]


def test_no_fix_where_the_step_wants_x() -> None:
    assert only(ScanCall(lambda c, x: (c * x, c), 1.0), "S109").fixes == ()


@pytest.mark.parametrize(("xs", "length"), [(None, 3), ((), 3), (jnp.ones(3), None), (jnp.ones(3), 3)])
def test_either_is_enough(xs: Any, length: Any) -> None:
    clean(ScanCall(double, 1.0, xs, length=length))


def test_nothing_to_scan_is_not_an_empty_sequence() -> None:
    clean(ScanCall(double, 1.0, jnp.ones(0)))
    clean(ScanCall(double, 1.0, None, length=0))


def test_place() -> None:
    places = Places({"length": Field("scan_length", "length"), "xs": Field("scan_source", "xs")})
    assert only(ScanCall(double, 1.0, places=places), "S109").place == Field("scan_length", "length")
    assert only(ScanCall(double, 1.0, (), places=places), "S109").place == Field("scan_source", "xs")
