"""S116: a length or an unroll that is no count."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.outcome import Outcome
from core.base.places import Field, Places
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from core.doctor.check import check_script
from tests.unit.contract.scan_support import clean, kinds, mended, only, run

XS = jnp.array([1.0, 2.0, 3.0])


def count(c: Any, _: Any) -> Any:
    return c + 1, jnp.ones(2)


class Counter:
    def __call__(self, c: Any, _: Any) -> Any:
        return c + 1, jnp.ones(2)


NAN, INF = float("nan"), float("inf")


# --- length ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "steps"),
    [
        *((3.5, 3), (2.9, 2), (0.5, 0), (-0.5, 0), ("3", 3), (" 3 ", 3), (b"3", 3), (True, 1), (False, 0)),
        *((np.True_, 1), (jnp.array(2.9), 2), (np.float32(3.5), 3)),
    ],
)
def test_what_int_makes_something_else_of(length: Any, steps: int) -> None:
    call = ScanCall(count, 0.0, None, length=length)
    final, ys = run(call)
    assert (float(final), ys.shape) == (steps, (steps, 2))
    report = check(call)
    assert report.outcome is Outcome.VIOLATIONS
    assert report.codes == ("S116",)
    violation = report.broken[0]
    assert violation.severity is Severity.WARNING
    assert violation.silent
    assert violation.jax_said is None
    assert f"JAX takes it as {steps}." in violation.message
    fixed = mended(call, "S116", "length")
    assert clean(fixed).codes == ()
    assert type(fixed.length) is int


def test_a_fraction_may_be_meant_either_way() -> None:
    (violation,) = check(ScanCall(count, 0.0, None, length=2.9)).violations
    assert [fix.title for fix in violation.fixes] == ["Set length to 2", "Set length to 3"]


def test_the_proof_is_the_part_of_a_step_that_was_not_run() -> None:
    (violation,) = check(ScanCall(count, 0.0, None, length=2.75)).violations
    assert violation.proof is not None
    assert (violation.proof.before, violation.proof.after, violation.proof.expected) == (0.75, 0.0, 0.0)
    (text,) = check(ScanCall(count, 0.0, None, length="3")).violations
    assert text.proof is None  # three steps were asked for, and three were run


@pytest.mark.parametrize("length", [3.5, "3", np.float32(3.5)])
def test_beside_xs_of_that_length_it_is_still_bent(length: Any) -> None:
    call = ScanCall(count, 0.0, XS, length=length)
    run(call)
    report = check(call)
    assert [(v.code, v.severity) for v in report.broken] == [("S116", Severity.WARNING)]
    assert mended(call, "S116", "length").length is None


@pytest.mark.parametrize("length", [2.9, 4.5, "4", True, False, np.True_])
def test_beside_xs_of_another_length_jax_raises_and_there_is_one_message(length: Any) -> None:
    call = ScanCall(count, 0.0, XS, length=length)
    violation = only(call, "S116")
    assert violation.severity is Severity.ERROR
    assert "but xs has 3 steps" in violation.message
    assert run(mended(call, "S116", "length"))[0] == 3.0


@pytest.mark.parametrize("step", [Counter(), Counter().__call__, jax.jit(count), partial(count)])
def test_whatever_kind_of_callable(step: Any) -> None:
    only(ScanCall(step, 0.0, None, length=-1), "S116")
    only(ScanCall(step, 0.0, XS, unroll=-1), "S116")


@pytest.mark.parametrize("xs", [None, XS])
@pytest.mark.parametrize("length", [-1, -3, "-1", np.int64(-2), -2.0])
def test_negative(xs: Any, length: Any) -> None:
    call = ScanCall(count, 0.0, xs, length=length)
    violation = only(call, "S116")  # without xs JAX 0.11.2 fails as late as in the compiler
    assert "no negative number of steps" in violation.message
    run(mended(call, "S116", "length"))


def test_negative_with_nothing_to_stack_is_silent() -> None:
    call = ScanCall(lambda c, _: (c + 1, None), 0.0, None, length=-3)
    assert run(call)[0] == 0.0
    report = check(call)
    assert [(v.code, v.severity, v.silent, v.jax_said) for v in report.broken] == [("S116", Severity.ERROR, True, None)]
    assert run(mended(call, "S116", "length"))[0] == 3.0


@pytest.mark.parametrize("xs", [None, XS])
@pytest.mark.parametrize(
    "length",
    [[3], (3,), {"n": 3}, "", "3.5", "three", NAN, INF, 3 + 0j, np.array([3]), jnp.array([3]), jnp.ones(2), len],
)
def test_no_number_at_all(xs: Any, length: Any) -> None:
    call = ScanCall(count, 0.0, xs, length=length)
    violation = only(call, "S116")
    assert violation.severity is Severity.ERROR
    run(mended(call, "S116", "length"))


def test_a_long_value_is_cut() -> None:
    violation = only(ScanCall(count, 0.0, None, length="x" * 1000), "S116")
    assert len(violation.message) < 100


@pytest.mark.parametrize("length", [3.0, np.float64(3), jnp.array(3.0)])
@pytest.mark.parametrize("xs", [None, XS])
def test_a_whole_float_is_only_noted(length: Any, xs: Any) -> None:
    report = clean(ScanCall(count, 0.0, xs, length=length))
    assert report.codes == ("S116",)
    assert report.notes[0].severity is Severity.NOTE


@pytest.mark.parametrize("length", [1, 3, np.int64(3), np.uint8(3), np.array(3), jnp.array(3), jnp.int8(3)])
def test_whole_numbers_are_no_fault(length: Any) -> None:
    assert clean(ScanCall(count, 0.0, None, length=length)).codes == ()


def test_leaves_of_different_lengths_come_first() -> None:
    call = ScanCall(lambda c, x: (c, c), 0.0, (jnp.ones(3), jnp.ones(4)), length=2.5)
    with pytest.raises(ValueError):
        run(call)
    codes = [v.code for v in check(call).broken]
    assert sorted(codes) == ["S107", "S116"]
    assert "S108" not in codes


def test_a_traced_length_is_no_finding_here() -> None:
    seen: list[Any] = []

    def outer(n: Any) -> Any:
        seen.append(check(ScanCall(count, 0.0, None, length=n)))
        return n

    jax.make_jaxpr(outer)(3)
    (report,) = seen
    assert not {"S108", "S109", "S111", "S116"} & set(report.codes)
    assert report.outcome is Outcome.ERROR  # P209 will know it


# --- unroll ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unroll", [-1, -0.5, np.int64(-2)])
def test_a_negative_unroll(unroll: Any) -> None:
    call = ScanCall(count, 0.0, XS, unroll=unroll)
    only(call, "S116")
    assert run(mended(call, "S116", "unroll"))[0] == 3.0


@pytest.mark.parametrize(
    "unroll", [2.5, 1.0, 0.5, NAN, INF, "2", "", None, [2], (2,), jnp.array(2), np.array(2), np.array([2]), 2j, len]
)
def test_an_unroll_that_is_no_int(unroll: Any) -> None:
    def make() -> ScanCall:
        # A step of its own for each run: JAX's caches take 1.0 for 1, and what failed once fails for both.
        return ScanCall(lambda c, x: (c + 1, c), 0.0, XS, unroll=unroll)

    violation = only(make(), "S116")
    assert violation.path == "unroll"
    assert run(mended(make(), "S116", "unroll"))[0] == 3.0


def test_a_check_leaves_no_float_unroll_behind_in_jax_s_caches() -> None:
    def step(c: Any, x: Any) -> Any:
        return c + 1, c

    check(ScanCall(step, 0.0, XS, unroll=1.0))
    assert run(ScanCall(step, 0.0, XS, unroll=1))[0] == 3.0


@pytest.mark.parametrize("unroll", [0, 1, 2, 3, 100, True, False, np.int64(2), np.True_, np.False_])
def test_documented_unrolls_are_no_fault(unroll: Any) -> None:
    for length in (0, 3):
        assert "S116" not in clean(ScanCall(count, 0.0, XS[:length], unroll=unroll)).codes


def test_a_float_that_this_call_happens_to_take() -> None:
    # A y that is x itself needs no buffer, and unroll == T leaves nothing to cut.
    lucky = ScanCall(lambda c, x: (c + 1, x), 0.0, XS, unroll=3.0)
    run(lucky)
    assert clean(lucky).codes == ("S116",)
    only(ScanCall(lambda c, x: (c + 1, x), 0.0, XS, unroll=2.5), "S116")


def test_both_are_said() -> None:
    call = ScanCall(count, 0.0, XS, length=2.5, unroll=-1)
    report = check(call)
    assert [(v.code, v.path) for v in report.broken] == [("S116", "length"), ("S116", "unroll")]


def test_the_fixes_of_an_array_are_its_number() -> None:
    assert mended(ScanCall(count, 0.0, XS, unroll=jnp.array(2)), "S116", "unroll").unroll == 2
    assert kinds(ScanCall(count, 0.0, None, length=jnp.array([3])), "S116") == ["length"]
    assert mended(ScanCall(count, 0.0, None, length=jnp.array([3])), "S116", "length").length == 3


def test_places() -> None:
    places = Places({"length": Field("scan_length", "length"), "unroll": Field("scan_unroll", "unroll")})
    report = check(ScanCall(count, 0.0, XS, length=2.5, unroll=-1, places=places))
    assert [v.place for v in report.broken] == [Field("scan_length", "length"), Field("scan_unroll", "unroll")]


@pytest.mark.parametrize("length", [2**31, 10**12])
def test_a_length_that_the_counter_cannot_hold(length: int) -> None:
    """In a script, where no limit of a page comes first."""
    text = f"import jax\n_, ys = jax.lax.scan(lambda c, _: (c + 1, c), 0, None, length={length})\n"
    report = check_script(text).report
    assert [(v.code, v.severity, v.silent) for v in report.broken] == [("S116", Severity.ERROR, False)]
    assert f"{length:,}" in report.broken[0].message
    assert report.error is None
