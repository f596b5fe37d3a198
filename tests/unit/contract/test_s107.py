"""S107: leaves of xs of different leading lengths."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import pytest

from core.base.places import Field, Places
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import clean, kinds, mended, only, run


def total(c: Any, x: Any) -> Any:
    return c + sum(jnp.sum(leaf) for leaf in jax.tree.leaves(x)), c


class Total:
    def __call__(self, c: Any, x: Any) -> Any:
        return total(c, x)


@pytest.mark.parametrize("step", [total, Total(), Total().__call__, jax.jit(total), lambda *a: total(*a)])
@pytest.mark.parametrize(
    ("xs", "lengths"),
    [
        ((jnp.ones(3), jnp.ones(5)), "xs[0] has 3, xs[1] has 5"),
        ({"b": jnp.ones((4, 2)), "a": jnp.ones(5)}, "xs['a'] has 5, xs['b'] has 4"),
        ({"p": (jnp.ones(2), jnp.ones(2)), "q": jnp.ones(1)}, "xs['p'][0] has 2, xs['p'][1] has 2, xs['q'] has 1"),
    ],
)
def test_each_leaf_s_length_is_said(step: Any, xs: Any, lengths: str) -> None:
    violation = only(ScanCall(step, 0.0, xs), "S107")
    assert violation.message == f"The leaves of xs have different leading lengths: {lengths}."


def test_all_are_cut_to_the_shortest() -> None:
    call = ScanCall(total, 0.0, {"a": jnp.arange(5.0), "b": jnp.ones((3, 2))})
    only(call, "S107")
    final, ys = run(mended(call, "S107", "xs_leading"))
    assert final == 0.0 + 1 + 2 + 6
    assert ys.shape == (3,)


def test_a_length_beside_them() -> None:
    agrees = ScanCall(total, 0.0, (jnp.ones(3), jnp.ones(5)), length=3)
    assert run(mended(agrees, "S107", "xs_leading"))[0] == 6.0
    longer = ScanCall(total, 0.0, (jnp.ones(3), jnp.ones(5)), length=5)
    only(longer, "S107")  # not S108 beside it: what length disagrees with is not settled
    assert run(mended(longer, "S107", "xs_leading"))[0] == 6.0
    shorter = ScanCall(total, 0.0, (jnp.ones(3), jnp.ones(5)), length=2)
    assert run(mended(shorter, "S107", "xs_leading"))[0] == 4.0


def test_nothing_is_cut_to_nothing() -> None:
    assert kinds(ScanCall(total, 0.0, (jnp.ones(0), jnp.ones(5))), "S107") == []


@pytest.mark.parametrize(
    "xs",
    [
        (jnp.ones(3), jnp.ones((3, 5))),
        {"a": jnp.ones(2), "b": (jnp.ones((2, 1)), None)},
        jnp.ones((3, 5)),
        (jnp.ones((1, 4)), jnp.ones((1, 7))),
    ],
)
def test_one_length_is_no_fault(xs: Any) -> None:
    clean(ScanCall(total, 0.0, xs))


def test_the_odd_one_is_the_place_and_the_usual_one_is_why() -> None:
    places = Places({f"xs:xs[{i}]": Field(f"xs_{i}", str(i)) for i in range(3)})
    call = ScanCall(total, 0.0, (jnp.ones(4), jnp.ones(3), jnp.ones(4)), places=places)
    violation = only(call, "S107")
    assert violation.place == Field("xs_1", "1")
    assert violation.because is not None
    assert violation.because.place == Field("xs_0", "0")
    assert violation.because.text == "xs[0] has the leading length 4 here"
