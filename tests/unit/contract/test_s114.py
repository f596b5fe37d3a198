"""S114: a reversed scan keeps the order of its outputs."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import mended, run
from tests.unit.contract.silent_support import add, noted, quiet, warned

XS = jnp.array([1.0, 2.0, 3.0])


@pytest.mark.parametrize("reverse", [True, 1, np.True_, "yes", 2.5])
def test_ys_stay_with_their_x(reverse: Any) -> None:
    call = ScanCall(add, 0.0, XS, reverse=reverse)
    final, ys = run(call)
    assert ys.tolist() == [6.0, 5.0, 3.0]
    assert final == ys[0]
    violation = noted(call, "S114")
    assert violation.severity is Severity.NOTE
    assert "from t = 2 down to 0" in violation.message


def test_without_xs_ys_are_filled_from_the_end() -> None:
    call = ScanCall(lambda c, _: (c + 1, c * 1), 0, None, length=3, reverse=True)
    assert run(call)[1].tolist() == [2, 1, 0]
    assert "ys[2] is the output of the step that ran first" in noted(call, "S114").message


@pytest.mark.parametrize("reverse", ["False", "false", "no", "0", "off"])
def test_a_text_that_says_no(reverse: str) -> None:
    call = ScanCall(add, 0.0, XS, reverse=reverse)
    assert run(call)[1].tolist() == [6.0, 5.0, 3.0]  # it runs backwards
    violation = warned(call, "S114")
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after) == (2, 0)
    assert run(mended(call, "S114", "reverse"))[1].tolist() == [1.0, 3.0, 6.0]


@pytest.mark.parametrize("reverse", [False, 0, None, "", np.False_])
def test_forwards(reverse: Any) -> None:
    quiet(ScanCall(add, 0.0, XS, reverse=reverse), "S114")


def test_nothing_to_say_for_one_step_for_no_ys_or_no_steps() -> None:
    quiet(ScanCall(add, 0.0, XS[:1], reverse=True), "S114")
    quiet(ScanCall(add, 0.0, XS[:0], reverse=True), "S114")
    quiet(ScanCall(lambda c, x: (c + x, None), 0.0, XS, reverse=True), "S114")


def test_what_jax_refuses_is_left_to_jax() -> None:
    report = check(ScanCall(add, 0.0, XS, reverse=[1]))
    assert report.violations == ()
    assert report.error is not None


def test_place() -> None:
    places = Places({"reverse": Field("scan_reverse", "reverse")})
    assert noted(ScanCall(add, 0.0, XS, reverse=True, places=places), "S114").place == Field("scan_reverse", "reverse")
