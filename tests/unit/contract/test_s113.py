"""S113: ys and the carry are one step apart."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import pytest

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import run
from tests.unit.contract.silent_support import add, noted, quiet

XS = jnp.array([1.0, 2.0, 3.0])


def new(c: Any, x: Any) -> Any:
    c = c + x
    return c, c


def old(c: Any, x: Any) -> Any:
    return c + x, c


def test_the_new_carry() -> None:
    final, ys = run(ScanCall(new, 0.0, XS))
    assert ys[-1] == final
    violation = noted(ScanCall(new, 0.0, XS), "S113")
    assert violation.severity is Severity.NOTE
    assert violation.message == (
        "y is the new carry of each step: its last entry is the final carry (6), and init (0) is not among them."
    )


def test_the_incoming_carry() -> None:
    final, ys = run(ScanCall(old, 0.0, XS))
    assert ys[0] == 0.0
    assert final not in ys
    assert noted(ScanCall(old, 0.0, XS), "S113").message == (
        "y is the carry that came into each step: it begins with init (0), and the final carry (6) is not in it."
    )


def test_in_reverse() -> None:
    final, ys = run(ScanCall(new, 0.0, XS, reverse=True))
    assert ys[0] == final
    assert "its first entry is the final carry (6)" in noted(ScanCall(new, 0.0, XS, reverse=True), "S113").message
    assert run(ScanCall(old, 0.0, XS, reverse=True))[1][-1] == 0.0
    assert "it ends with init (0)" in noted(ScanCall(old, 0.0, XS, reverse=True), "S113").message


def test_a_leaf_of_either() -> None:
    def step(c: Any, x: Any) -> Any:
        total = c["sum"] + x
        return {"n": c["n"] + 1, "sum": total}, {"twice": 2 * total, "total": total}

    violation = noted(ScanCall(step, {"n": 0, "sum": jnp.zeros(2)}, jnp.ones((3, 2))), "S113")
    assert violation.path == "y['total']"
    assert "(" not in violation.message  # no numbers for a vector


@pytest.mark.parametrize(
    ("step", "init"),
    [
        (add, 0.0),
        (lambda c, x: (c + x, x), 0.0),
        (lambda c, x: (c + x, None), 0.0),
        (lambda c, x: (c + x, c * 2), 0.0),
        (lambda c, x: ((c[0] + x, c[1]), c[1]), (0.0, 5.0)),  # handed on unchanged: old and new are the same
    ],
)
def test_near_misses(step: Any, init: Any) -> None:
    quiet(ScanCall(step, init, XS), "S113")


def test_one_note_for_several_leaves_and_none_for_no_steps() -> None:
    both = ScanCall(lambda c, x: ((c[0] + x, c[1] + x), c), (0.0, 0.0), XS)
    noted(both, "S113")
    quiet(ScanCall(new, 0.0, jnp.zeros(0)), "S113")


def test_place() -> None:
    places = Places({"return": Field("r", "return"), "step": Field("scan_step", "step")})
    assert noted(ScanCall(new, 0.0, XS, places=places), "S113").place == Field("r", "return")
