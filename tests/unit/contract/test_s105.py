"""S105: a weak init changes its dtype."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import kinds, mended, only, run, several
from tests.unit.contract.silent_support import add, noted, quiet, warned

BYTES = jnp.array([100, 100, 100], jnp.int8)


def test_the_report_a_total_of_int8() -> None:
    call = ScanCall(lambda total, x: (total + x, total + x), 0, BYTES)
    assert run(call)[0] == 44
    violation = warned(call, "S105")
    assert violation.message == (
        "carry (`total` in the step) starts as a weak int32, takes int8 from the step and wraps at t = 1: "
        "200 becomes -56."
    )
    assert violation.proof is not None
    assert violation.proof.before == 256
    final, ys = run(mended(call, "S105", "init_dtype"))
    assert final == 300
    assert ys.tolist() == [100, 200, 300]


@pytest.mark.parametrize("init", [0, jnp.array(0), jnp.asarray(7)])
@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8])
def test_whatever_is_weak_and_narrow(init: Any, dtype: Any) -> None:
    call = ScanCall(add, init, jnp.array([100, 100, 100, 100], dtype))
    warned(call, "S105")
    assert run(mended(call, "S105", "init_dtype"))[0] == 400 + int(init)


def test_leaves_of_a_dict_one_by_one() -> None:
    def step(c: Any, x: Any) -> Any:
        return {"sum": c["sum"] + x, "n": c["n"] + 1}, None

    call = ScanCall(step, {"sum": 0, "n": 0}, BYTES)
    violation = warned(call, "S105")
    assert violation.path == "carry['sum']"
    assert run(mended(call, "S105", "init_dtype"))[0]["sum"] == 300


def test_wrapping_backwards_and_coming_back() -> None:
    call = ScanCall(add, 0, jnp.array([100, 100, -100], jnp.int8))
    assert run(call)[0] == 100  # the final carry is right, the way to it is not
    assert warned(call, "S105").proof.before == 256  # type: ignore[union-attr]
    call = ScanCall(add, 0, BYTES, reverse=True)
    assert "at t = 1" in warned(call, "S105").message


def test_a_start_that_the_dtype_does_not_have() -> None:
    call = ScanCall(add, 300, jnp.array([1, 2], jnp.int8))
    assert run(call)[0] == 47
    assert "starts from 300" in warned(call, "S105").message
    assert run(mended(call, "S105", "init_dtype"))[0] == 303
    assert "4294967295" in warned(ScanCall(add, -1, jnp.array([1, 2], jnp.uint32)), "S105").message
    call = ScanCall(add, 16777217, jnp.array([0.0, 1.0]))
    assert run(call)[1].tolist() == [16777216.0, 16777216.0]
    assert "16777217" in warned(call, "S105").message


def test_a_total_of_bfloat16_stops_counting() -> None:
    call = ScanCall(lambda c, x: (c + x, c + x), 0.0, jnp.ones(300, jnp.bfloat16))
    assert run(call)[0] == 256
    violation = warned(call, "S105")
    assert "256 + 1 stays 256" in violation.message
    assert "256 instead of 300" in violation.message
    assert run(mended(call, "S105", "init_dtype"))[0] == 300


def test_a_total_of_float16_overflows() -> None:
    call = ScanCall(add, 0.0, jnp.array([60000, 60000], jnp.float16))
    assert "120000 becomes inf" in warned(call, "S105").message
    assert run(mended(call, "S105", "init_dtype"))[0] == 120000


@pytest.mark.parametrize(
    ("init", "xs"),
    [
        (0, jnp.array([1.5, 2.5])),
        (jnp.array(0), jnp.array([1.5, 2.5])),
        (0, jnp.array([10, 10], jnp.int8)),
        (0, jnp.ones(3, jnp.uint32)),
        (0.0, jnp.ones(9, jnp.bfloat16)),
        (0.0, jnp.array([1j, 2j])),
    ],
)
def test_only_the_name_changes(init: Any, xs: Any) -> None:
    violation = noted(ScanCall(add, init, xs), "S105")
    assert violation.severity is Severity.NOTE
    assert violation.fixes


@pytest.mark.parametrize(
    ("init", "xs"),
    [
        (0.0, jnp.array([1.5, 2.5])),  # `0.` stays float32
        (0, jnp.array([1, 2])),
        (0, jnp.array([True, True])),
        (jnp.int32(0), BYTES),
        (np.float32(0), np.ones(3)),
        (jnp.zeros(()), jnp.ones(3, jnp.bfloat16)),
        (1, None),
    ],
)
def test_nothing_changes(init: Any, xs: Any) -> None:
    step = add if xs is not None else (lambda c, _: (c + 1, None))
    quiet(ScanCall(step, init, xs, length=3 if xs is None else None), "S105")


def test_bits_mixed_on_purpose_are_no_harm() -> None:
    noted(ScanCall(lambda c, x: (c ^ x, None), 0, jnp.array([200, 100, 255], jnp.uint8)), "S105")


def test_a_leaf_fed_from_another_one_a_hop_later() -> None:
    call = ScanCall(lambda c, x: ((c[0] + c[1], c[1] + x), c[0]), (0, 0), jnp.array([1.5, 2.5]))
    violation = only(call, "S105")
    assert violation.path == "carry[0]"
    assert "a pass later" in violation.message
    assert run(mended(call, "S105", "init_dtype"))[0] == (1.5, 4.0)


def test_a_chain_needs_several_leaves() -> None:
    def step(c: Any, x: Any) -> Any:
        return (c[0] + c[1], c[1] + c[2], c[2] + c[3], c[3] + x), None

    call = ScanCall(step, (0, 0, 0, 0), jnp.array([1.5, 2.5]))
    only(call, "S105")
    assert kinds(call, "S105") == ["init_dtypes"]
    assert run(mended(call, "S105", "init_dtypes"))[0] == (0.0, 0.0, 1.5, 4.0)


def test_promotion_that_does_not_help() -> None:
    call = ScanCall(lambda c, x: (jnp.int32(c) + x, c), 1.5, jnp.array([1, 2]))
    only(call, "S105")
    assert kinds(call, "S105") == ["step_cast"]  # 1.5 is not given away
    call = ScanCall(lambda c, x: (jnp.int32(c) + x, c), 0.0, jnp.array([1, 2]))
    assert kinds(call, "S105") == ["init_dtype", "step_cast"]
    assert run(mended(call, "S105", "init_dtype"))[0] == 3


def test_it_speaks_instead_of_s104_for_its_own_leaf_only() -> None:
    call = ScanCall(lambda c, x: ((c[0] + c[1], c[1] + x), None), (jnp.int32(0), 0), jnp.array([1.5]))
    assert [v.code for v in check(call).broken] == ["S104"]  # init's first leaf is strong
    two = ScanCall(lambda c, x: ((c[0] + c[2], c[1] + c[2], c[2] + x), None), (0, 0, 0), jnp.array([1.5]))
    assert [v.path for v in several(two, "S105")] == ["carry[0]", "carry[1]"]


def test_places() -> None:
    places = Places({"init": Field("scan_init", "init"), "step": Field("scan_step", "step")})
    violation = warned(ScanCall(add, 0, BYTES, places=places), "S105")
    assert violation.place == Field("scan_init", "init")
    assert violation.because is not None
    assert violation.because.place == Field("scan_step", "step")
