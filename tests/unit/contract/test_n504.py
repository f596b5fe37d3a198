"""N504: precision is lost silently."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.places import Field, Places, Span
from core.base.violation import Severity
from core.contract.engine import check
from core.contract.subject import ScanCall
from core.doctor.check import check_script
from tests.unit.contract.scan_support import mended, run
from tests.unit.contract.silent_support import add, noted, quiet, warned

STAMPS = 1.7e9 + np.arange(10.0)  # seconds since 1970


# --- the carry stops moving -----------------------------------------------------------------------------------------


def test_the_report_a_float64_clock() -> None:
    call = ScanCall(add, np.float64(1.0), np.full(1000, 1e-8))
    assert run(call)[0] == 1.0
    violation = warned(call, "N504")
    assert violation.message == (
        "carry stops moving at t = 0: 1 + 1e-08 is 1 in float32. float64 was asked for, in which it ends at 1.00001 "
        "instead of 1; 1000 of the 1000 steps are lost."
    )
    assert [str(t) for t in (*violation.expected, *violation.got)] == ["float64[]", "float32[]"]
    assert violation.proof is not None
    assert violation.proof.before == pytest.approx(1e-5, rel=1e-6)
    assert not jax.config.read("jax_enable_x64")


@pytest.mark.parametrize(
    ("init", "xs"),
    [
        (1.0, np.full(50, 1e-8)),  # asked for by xs alone
        (jnp.float32(1e6), jnp.full(100, 1e-3)),  # not asked for: it is lost all the same
        (np.array([0.0, 1.0]), np.full((50, 2), 1e-8)),  # one unit of two
        (np.float64(1.0), np.full(5, 1e-9)),  # asked for by init: less than one unit in the last place, and lost
        (jnp.float32(1.0), jnp.full(50, 7e-8)),  # moves, by steps of twice the size
    ],
)
def test_increments_below_the_resolution(init: Any, xs: Any) -> None:
    warned(ScanCall(add, init, xs), "N504")


def test_counters() -> None:
    call = ScanCall(lambda c, _: (c + 1, None), 16777210.0, None, length=20)
    assert run(call)[0] == 16777216.0
    assert "at t = 6: 16777216 + 1 is 16777216 in float32" in warned(call, "N504").message
    call = ScanCall(lambda c, _: (c + 1, None), jnp.bfloat16(0), None, length=300)
    assert run(call)[0] == 256
    assert "at t = 256" in warned(call, "N504").message
    assert run(mended(call, "N504", "init_dtype"))[0] == 300


def test_weights_that_do_not_learn() -> None:
    call = ScanCall(lambda w, g: (w - 1e-9 * g, None), jnp.ones(3), jnp.ones((200, 3)))
    assert run(call)[0].tolist() == [1.0, 1.0, 1.0]
    warned(call, "N504")


T = np.arange(300.0)


@pytest.mark.parametrize(
    ("step", "init", "xs"),
    [
        (add, np.float64(0.0), np.linspace(0, 1, 300)),
        (add, np.float64(1e5), np.sin(T)),
        (add, np.float64(0.0), 0.1 + 1e-9 * np.sin(T)),
        (lambda c, x: (0.9 * c + 0.1 * x, None), np.float64(0.0), np.ones(300)),  # comes to rest
        (lambda c, x: (0.999 * c + 0.001 * x, None), np.float64(0.0), np.ones(500)),
        (lambda c, x: (0.9 * c + 0.1 * x, None), np.float64(1.0), np.ones(300)),  # at rest from the start
        (lambda c, x: (0.9 * c + 0.1 * x, None), jnp.bfloat16(0), jnp.ones(100, jnp.bfloat16)),
        (lambda c, x: (0.5 * (c + 2 / c), None), np.float64(1.0), T),  # Newton
        (lambda c, x: (0.5 * (c + 2 / c), None), np.float64(2**0.5), T),
        (lambda c, x: (0.5 * (c + 2 / c), None), np.float64(1.41421356), T),  # one last jump onto the fixed point
        (add, jnp.float32(1.0), jnp.full(5, 1e-9)),  # float32 would be the same at the end
        (add, 1.0, np.full(5, 1e-9)),
        (lambda c, x: (3.9 * c * (1 - c), None), np.float64(0.3), T),  # chaotic: off its path, each step exact
        (lambda c, x: (1 - 2 * jnp.abs(c - 0.5), None), np.float64(0.3), T),
        (lambda c, x: (jnp.maximum(c, x), None), np.float64(-1e9), np.sin(T)),
        (lambda c, x: (jnp.tanh(0.5 * c + x), None), np.zeros(2), np.zeros((300, 2)) + 0.3),
        (lambda c, x: (c * 0.5, None), np.float64(1.0), T[:100]),
        (lambda c, x: (c, None), np.float64(0.1), T),  # constant on purpose
        (lambda c, k: (c + jax.random.normal(k), None), np.float64(0), jax.random.split(jax.random.key(0), 50)),
        (lambda c, x: (c + 1, None), 0.0, T),
        (lambda c, x: (c + x, None), jnp.bfloat16(0), jnp.full(50, 0.1, jnp.bfloat16)),  # rounds, but counts on
    ],
)
def test_rounding_is_no_fault(step: Any, init: Any, xs: Any) -> None:
    quiet(ScanCall(step, init, xs), "N504")


# --- numbers of the host --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("init", "xs", "path"),
    [
        (0, np.array([1, 2**40]), "xs"),
        (np.int64(2**40), jnp.arange(3), "carry"),
        (0, np.array([2**31]), "xs"),
        (0.0, np.array([1.0, 1e300]), "xs"),
        (np.float64(1e300), np.ones(3), "carry"),
        (-1e39, np.ones(3), "carry"),
    ],
)
def test_numbers_that_do_not_fit_in_32_bits(init: Any, xs: Any, path: str) -> None:
    violation = warned(ScanCall(add, init, xs), "N504")
    assert violation.path == path


def test_what_they_become() -> None:
    call = ScanCall(add, 0, np.array([7, 2**40 + 5]))
    assert run(call)[0] == 12
    assert "xs at [1] is 1099511627781 as int64 and reaches the step as 5" in warned(call, "N504").message


@pytest.mark.parametrize("xs", [np.array([2**31 - 1, -(2**31)]), np.arange(5), np.array([3e38]), np.array([np.inf])])
def test_numbers_that_fit(xs: Any) -> None:
    quiet(ScanCall(lambda c, x: (x * 1, None), xs.dtype.type(0), xs), "N504")


def test_time_stamps() -> None:
    call = ScanCall(lambda last, t: (t, t - last), STAMPS[0], STAMPS)
    assert run(call)[1].tolist() == [0.0] * 10
    violation = warned(call, "N504")
    assert violation.path == "xs"
    assert "from 0 to 1 it is 1 and becomes 0" in violation.message
    quiet(ScanCall(call.step, 0.0, STAMPS - STAMPS[0]), "N504")


def test_time_stamps_after_a_first_difference_as_large_as_the_time() -> None:
    call = ScanCall(lambda last, t: (t, t - last), 0.0, 1.7e9 + np.arange(20.0))
    assert run(call)[1][1:].tolist() == [0.0] * 19
    assert warned(call, "N504").path == "xs"
    quiet(ScanCall(lambda n, t: (n + 1, t), 0.0, call.xs), "N504")  # handed on, as exact as float32 can


def test_lost_differences_that_change_no_result() -> None:
    noise = 0.1 + 1e-9 * np.random.default_rng(0).normal(size=50)
    quiet(ScanCall(add, 0.0, noise), "N504")
    quiet(ScanCall(add, 0.0, np.array([0.3, 0.1 + 0.2, 0.1 * 3])), "N504")  # noise of the host's own arithmetic
    quiet(ScanCall(add, 0.0, 1 + np.exp(-T)), "N504")  # a curve that comes to rest


# --- whole numbers --------------------------------------------------------------------------------------------------


def test_fibonacci_and_factorial() -> None:
    call = ScanCall(lambda c, _: ((c[1], c[0] + c[1]), None), (0, 1), None, length=60)
    violation = warned(call, "N504")
    assert violation.path == "carry[1]"
    assert "2971215073 does not fit in int32 and becomes -1323752223" in violation.message
    quiet(ScanCall(call.step, (0, 1), None, length=45), "N504")
    product: Any = lambda c, x: (c * x, None)  # noqa: E731
    assert "at t = 12: 6227020800" in warned(ScanCall(product, 1, jnp.arange(1, 16)), "N504").message
    quiet(ScanCall(product, 1, jnp.arange(1, 13)), "N504")


def test_small_dtypes() -> None:
    call = ScanCall(add, jnp.int8(0), jnp.array([100, 100], jnp.int8))
    violation = warned(call, "N504")
    assert violation.path == "carry"  # y wraps along with it: one fault
    assert run(mended(call, "N504", "init_dtype"))[0] == 200
    assert noted(ScanCall(add, jnp.uint8(0), jnp.array([200, 100], jnp.uint8)), "N504").severity is Severity.NOTE
    alone = ScanCall(lambda c, x: (c + 1, x * x), jnp.int8(0), jnp.array([5, 20], jnp.int8))
    assert warned(alone, "N504").path == "y"


def test_a_number_on_the_way() -> None:
    call = ScanCall(lambda c, _: (c * 16807 % 2147483647, None), 1, None, length=3)
    assert run(call)[0] != 1622650073  # what the generator gives
    assert "1622650073" in warned(call, "N504").message


@pytest.mark.parametrize(
    ("step", "init", "xs"),
    [
        (lambda c, x: (c * jnp.uint32(1664525) + jnp.uint32(1013904223), None), jnp.uint32(1), T),  # a generator
        (lambda c, x: (c * 1103515245 + 12345, None), 1, T),
        (lambda c, x: ((c ^ x) * jnp.uint32(16777619), None), jnp.uint32(2166136261), jnp.arange(9, dtype=jnp.uint32)),
        (lambda c, x: (c ^ (c << 13), None), jnp.int32(1), T),
        (
            lambda c, x: (jnp.minimum(c, jnp.where(x > 0, x, jnp.iinfo(x.dtype).max)), None),
            jnp.int32(2**31 - 1),
            jnp.array([3, -1]),
        ),
        (lambda c, x: (jnp.maximum(c, x), None), jnp.int32(-(2**31)), jnp.arange(5)),
        (add, 0, jnp.arange(500)),
        (lambda c, x: ((c + x) % 7, None), 0, jnp.arange(50)),
        (lambda c, x: (jnp.int32(c * 1.1) + x, None), jnp.int32(100), jnp.full(50, 10**6)),  # cut by the learner
    ],
)
def test_whole_numbers_that_are_right_or_mixed_on_purpose(step: Any, init: Any, xs: Any) -> None:
    quiet(ScanCall(step, init, xs), "N504")


I32 = jnp.int32


def total_and_hash(c: Any, x: Any) -> Any:
    return {"total": c["total"] + x, "hash": c["hash"] ^ x}, None


@pytest.mark.parametrize(
    ("step", "init", "xs", "path"),
    [
        (lambda c, x: ((c * x).astype(I32), None), I32(1), np.arange(1, 20), "carry"),  # the cast changes nothing
        (lambda c, x: ((c + x).astype(jnp.int8), None), jnp.int8(0), np.full(9, 100, np.int8), "carry"),
        (lambda c, x: (c, jnp.asarray(x * x, I32)), 0, np.array([5, 70000]), "y"),
        (total_and_hash, {"total": I32(0), "hash": I32(1)}, np.full(9, 2**29, np.int32), "carry['total']"),
        (lambda c, x: (c + x * (x & 1), c >> 1), I32(0), np.full(9, 2**29 + 1, np.int32), "carry"),  # tests a bit
        (lambda c, x: (c * 10 + x, None), I32(0), jnp.arange(20) % 10, "carry"),
        (lambda c, x: (c * 11 + x, None), I32(0), jnp.arange(20) % 10, "carry"),
    ],
)
def test_wraps_that_were_hidden(step: Any, init: Any, xs: Any, path: str) -> None:
    assert warned(ScanCall(step, init, xs), "N504").path == path


@pytest.mark.parametrize(
    ("step", "init", "xs"),
    [
        (
            lambda c, x: ((c.astype(I32) * x).astype(jnp.int8), None),
            jnp.int8(3),
            np.full(9, 100, np.int8),
        ),  # a real cut
        (lambda c, _: ((c[0] * 5 + 1, c[1] ^ c[0]), None), (I32(1), I32(1)), T[:40]),  # feeds the mixing
        (lambda c, _: ((c >> 1) | ((c & 1) << 31), c), I32(12345), T[:20]),
    ],
)
def test_bits_that_are_cut_or_mixed_on_purpose(step: Any, init: Any, xs: Any) -> None:
    quiet(ScanCall(step, init, xs), "N504")


def test_a_hash_wraps_on_purpose() -> None:
    for step in (lambda c, x: (c * 31 + x, None), lambda c, x: (33 * c + x, c)):
        assert noted(ScanCall(step, I32(7), jnp.arange(40)), "N504").severity is Severity.NOTE


# --- buffers --------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_a_float_into_a_buffer_of_integers() -> None:
    call = ScanCall(lambda b, x: (b.at[0].set(x), None), jnp.zeros(2, int), jnp.array([1.5, 2.5]))
    assert run(call)[0].tolist() == [2, 0]
    violation = warned(call, "N504")
    assert violation.message == (
        "The int32 buffer carry at [0] cannot keep what is written into it at t = 0: the float32 1.5 becomes 1."
    )
    assert run(mended(call, "N504", "init_dtype"))[0].tolist() == [2.5, 0.0]
    added = ScanCall(lambda b, x: (b.at[0].add(x), None), jnp.zeros(2, jnp.int8), jnp.array([300, 2]))
    assert "the int32 300 becomes 44" in warned(added, "N504").message


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    "step",
    [
        lambda b, x: (b.at[0].set(jnp.floor(x)), None),  # whole numbers
        lambda b, x: (b.at[0].set(x.astype(int)), None),  # cut by the learner
        lambda b, x: (b.at[0].set(jnp.int32(x)), None),
        lambda b, x: (b + 1, b.astype(float).at[0].set(x)),
    ],
)
def test_buffers_that_keep_what_they_are_given(step: Any) -> None:
    quiet(ScanCall(step, jnp.zeros(2, int), jnp.array([1.5, 2.5])), "N504")


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_rounding_into_a_narrower_float_buffer_is_no_fault() -> None:
    cache: Any = lambda b, i: (b.at[i].set(jnp.sin(i.astype(jnp.float32))), None)  # noqa: E731
    quiet(ScanCall(cache, jnp.zeros(9, jnp.bfloat16), jnp.arange(9)), "N504")
    large = ScanCall(lambda b, x: (b.at[0].set(x), None), jnp.zeros(2, jnp.float16), jnp.array([1.0, 1e6]))
    assert "the float32 1000000 becomes inf" in warned(large, "N504").message


# --- the rest -------------------------------------------------------------------------------------------------------


def test_a_weak_init_is_the_business_of_s105() -> None:
    for init, xs in ((0, jnp.full(3, 100, jnp.int8)), (0.0, jnp.ones(300, jnp.bfloat16))):
        assert [v.code for v in check(ScanCall(add, init, xs)).broken] == ["S105"]


def test_in_64_bits_there_is_nothing_to_lose() -> None:
    with jax.enable_x64(True):
        quiet(ScanCall(add, np.float64(1.0), np.full(20, 1e-8)), "N504")
        quiet(ScanCall(add, 0, np.array([2**40, 1])), "N504")


def test_places() -> None:
    places = Places({"init": Field("scan_init", "init"), "xs": Field("scan_source", "xs")})
    violation = warned(ScanCall(add, 1.0, np.full(20, 1e-8), places=places), "N504")
    assert violation.place == Field("scan_init", "init")
    assert violation.because is not None
    assert violation.because.place == Field("scan_source", "xs")
    assert warned(ScanCall(add, 0, np.array([2**40]), places=places), "N504").place == Field("scan_source", "xs")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_an_infinite_init_says_nothing_on_stderr() -> None:
    check(ScanCall(lambda c, x: (jnp.minimum(c, x) + 1e-9, None), np.array([np.inf, 1.0]), np.ones((9, 2))))


# --- 64 bits asked for by name, in a script -------------------------------------------------------------------------

HEAD = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nv = [1, 2]\nx = jnp.ones(3)\n"


@pytest.mark.parametrize(
    ("text", "argument", "wide", "got"),
    [
        ("a = jnp.zeros(3, dtype=jnp.float64)", "jnp.float64", "float64", "float32"),
        ("a = x.astype(jnp.float64)", "jnp.float64", "float64", "float32"),
        ("a = jnp.asarray(v, 'float64')", "'float64'", "float64", "float32"),
        ("a = jnp.array(v, dtype=np.int64)", "np.int64", "int64", "int32"),
        ("a = jnp.zeros(3, np.dtype('uint64'))", "np.dtype('uint64')", "uint64", "uint32"),
        ("for _ in v: a = jnp.zeros(3, jnp.complex128)", "jnp.complex128", "complex128", "complex64"),
    ],
)
def test_64_bits_asked_for_by_name(text: str, argument: str, wide: str, got: str) -> None:
    checkup = check_script(HEAD + text + "\n")
    (violation,) = checkup.report.violations
    assert violation.code == "N504"
    assert f"is asked for {wide} and gives {got}" in violation.message
    assert violation.severity is (Severity.NOTE if "int" in wide else Severity.WARNING)
    assert isinstance(violation.place, Span)
    assert text[violation.place.col : violation.place.end_col] == argument
    mended = checkup.sources[0]
    assert any('config.update("jax_enable_x64", True)' in source for source in mended)
    assert any(f"jnp.{got}" in source for source in mended)


@pytest.mark.parametrize(
    "text",
    [
        "jax.config.update('jax_enable_x64', True)\na = jnp.zeros(3, dtype=jnp.float64)",
        "a = np.zeros(3, dtype=np.float64)",
        "a = jnp.zeros(3, dtype=float)",
        "a = jnp.zeros(3, dtype=np.ones(2).dtype)",
        "a = x.dtype == jnp.float64",
        "wide = jnp.float64\na = jnp.zeros(3)",
        "a = jnp.issubdtype(x.dtype, jnp.float64)",
        "a = jnp.finfo(jnp.float64).eps",
    ],
)
def test_64_bits_that_were_not_asked_of_jax(text: str) -> None:
    assert not check_script(HEAD + text + "\n").report.violations


def test_one_finding_where_a_scan_says_what_it_costs() -> None:
    loop = "jax.lax.scan(lambda c, d: (c + d, None), jnp.ones((), jnp.float64), np.full(1000, 1e-8))\n"
    (violation,) = check_script(HEAD + loop).report.violations
    assert "stops moving" in violation.message
