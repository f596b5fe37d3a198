"""S108: length disagrees with xs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.places import Field, Places
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, only, run

XS = jnp.array([1.0, 2.0, 3.0])


def add(c: Any, x: Any) -> Any:
    return c + x, c


class Add:
    def __call__(self, c: Any, x: Any) -> Any:
        return c + x, c


@pytest.mark.parametrize("step", [Add(), Add().__call__, jax.jit(add), lambda *a: add(*a)])
def test_whatever_kind_of_callable(step: Any) -> None:
    only(ScanCall(step, 0.0, XS, length=5), "S108")


@pytest.mark.parametrize("length", [0, 1, 2, 4, 100, np.int64(4), jnp.array(4), 4.0])
def test_another_length(length: Any) -> None:
    call = ScanCall(add, 0.0, XS, length=length)
    violation = only(call, "S108")
    assert violation.message == f"length is {int(length)}, but xs has a leading axis of 3."
    assert run(mended(call, "S108", "length"))[0] == 6.0


def test_xs_may_be_cut_to_a_shorter_length() -> None:
    call = ScanCall(add, 0.0, XS, length=2)
    assert kinds(call, "S108") == ["length", "xs_leading"]
    final, ys = run(mended(call, "S108", "xs_leading"))
    assert final == 3.0
    assert ys.tolist() == [0.0, 1.0]
    assert kinds(ScanCall(add, 0.0, XS, length=4), "S108") == ["length"]
    assert kinds(ScanCall(add, 0.0, XS, length=0), "S108") == ["length"]


def test_several_leaves_that_agree_among_themselves() -> None:
    only(ScanCall(lambda c, x: (c + x[0] @ x[1], c), 0.0, (jnp.ones((3, 2)), jnp.ones((3, 2))), length=5), "S108")


@pytest.mark.parametrize(
    ("xs", "length"), [(XS, 3), (XS, None), (None, 3), ((), 2), (XS, np.int32(3)), (XS, jnp.array(3)), ({"a": None}, 4)]
)
def test_the_same_length_is_no_fault(xs: Any, length: Any) -> None:
    clean(ScanCall(lambda c, x: (c + 1, c), 0.0, xs, length=length))


def test_places() -> None:
    places = Places({"length": Field("scan_length", "length"), "xs": Field("scan_source", "xs")})
    violation = only(ScanCall(add, 0.0, XS, length=5, places=places), "S108")
    assert violation.place == Field("scan_length", "length")
    assert violation.because is not None
    assert violation.because.place == Field("scan_source", "xs")
