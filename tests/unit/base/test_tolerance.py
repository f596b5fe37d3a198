from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

from core.base.tolerance import EXACT, TOLERANCES, Tolerance, difference, tolerance_of


@pytest.mark.parametrize(
    ("dtypes", "want"),
    [
        (("float32",), Tolerance(1e-5, 1e-6)),
        (("float32", "bfloat16"), TOLERANCES["bfloat16"]),
        (("float16", "float64"), TOLERANCES["float16"]),
        (("int32", "float32"), TOLERANCES["float32"]),
        (("int8", "int32"), EXACT),
        (("bool",), EXACT),
        (("uint32",), EXACT),
        ((jnp.float8_e4m3fn,), Tolerance(0.125, 0.125)),
    ],
    ids=str,
)
def test_the_least_precise_decides(dtypes, want):
    assert tolerance_of(*dtypes) == want


def test_the_words_beside_a_result():
    assert tolerance_of("float32").text == "rtol 1e-5, atol 1e-6"
    assert EXACT.text == "exact"


@pytest.mark.parametrize(("apart", "within"), [(0.9e-6, True), (1.1e-6, False)])
def test_absolute_near_zero(apart, within):
    got = difference(np.array([0.0, apart]), np.zeros(2), TOLERANCES["float32"])
    assert (got.within, got.largest, got.first) == (within, apart, None if within else (1,))


@pytest.mark.parametrize(("factor", "within"), [(1 + 0.9e-5, True), (1 + 1.2e-5, False), (1 - 1.2e-5, False)])
def test_relative_far_from_zero(factor, within):
    want = np.array([[1e6, -1e6]], np.float64)
    assert difference(want * factor, want, TOLERANCES["float32"]).within is within


def test_nan_and_inf_equal_themselves_and_nothing_else():
    values = np.array([np.nan, np.inf, -np.inf, 1.0], np.float32)
    same = difference(values, values.copy())
    assert (same.within, same.largest) == (True, 0.0)
    for other, first in (
        ([1.0, np.inf, -np.inf, 1.0], 0),
        ([np.nan, -np.inf, -np.inf, 1.0], 1),
        ([np.nan, 9, -np.inf, 1], 1),
    ):
        got = difference(values, np.array(other, np.float32))
        assert (got.within, got.largest, got.first) == (False, np.inf, (first,))
    assert not difference(np.array([np.nan]), np.array([0.0]), Tolerance(1e9, 1e9)).within


def test_whole_numbers_and_bools_are_exact_and_do_not_wrap():
    got = difference(np.array([3, 250], np.uint8), np.array([3, 5], np.uint8))
    assert (got.within, got.largest, got.first, got.tolerance) == (False, 245.0, (1,), EXACT)
    assert not difference(np.array([True, False]), np.array([True, True])).within
    big = 2**53
    assert not difference(np.array([big + 1]), np.array([big])).within  # equal as doubles


def test_shapes_are_not_broadcast():
    got = difference(np.ones(3), np.ones((3, 1)))
    assert (got.within, got.largest, got.first) == (False, np.inf, None)


def test_half_precision_complex_empty_and_no_axes():
    a = np.array([1.0, 2.0]).astype(jnp.bfloat16)
    assert difference(a, a * np.float32(1.005)).within
    assert not difference(a, (a * np.float32(1.05)).astype(jnp.bfloat16)).within
    assert difference(a, np.array([1, 2])).within
    assert difference(np.complex64(1 + 1j), np.complex64(1 + 1.000001j)).within
    assert not difference(np.complex64(1 + 1j), np.complex64(1 + 2j)).within
    assert difference(np.zeros((0, 3)), np.zeros((0, 3))) == difference(np.zeros(0), np.zeros(0))
    assert difference(2.0, 3.0).first == ()
