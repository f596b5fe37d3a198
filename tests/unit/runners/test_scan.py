from __future__ import annotations

from collections import namedtuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from core.contract.subject import ScanCall
from core.runners.cache import PROGRAMS, count_compiles
from core.runners.scan import padded_length, run_call
from core.steps.accumulate import exponential_average, running_sum
from core.steps.dynamics import random_walk
from core.steps.memory import fibonacci, moving_window, running_variance
from core.steps.step import step_keys

Pair = namedtuple("Pair", "a b")


def same(got, want) -> None:
    """Equal to the last bit, of the same dtype and tree; typed keys by their data."""
    assert jax.tree.structure(got) == jax.tree.structure(want)
    for a, b in zip(jax.tree.leaves(got), map(jnp.asarray, jax.tree.leaves(want)), strict=True):
        if jnp.issubdtype(b.dtype, jax.dtypes.prng_key):
            b = jax.random.key_data(b)
        assert isinstance(a, np.ndarray)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, np.asarray(b))


def both(step, init, xs=None, length=None, reverse=False, unroll=1):
    result = run_call(ScanCall(step, init, xs, length, reverse, unroll))
    same((result.final, result.ys), tuple(lax.scan(step, init, xs, length, reverse, unroll)))
    return result


def test_the_guide_s_case():
    result = both(running_sum, 0.0, np.array([1.0, 2.0, 3.0], np.float32))
    assert result.final == 6
    assert result.ys.tolist() == [1, 3, 6]
    (carry,) = result.carries
    assert (carry.path, str(carry.type), carry.type.aval.weak) == ("carry", "float32[]", True)
    assert carry.values.tolist() == [0, 1, 3, 6]
    assert (result.length, result.padded, result.order) == (3, 4, (0, 1, 2))
    assert [(s.path, s.values.tolist()) for s in result.xs] == [("x", [1, 2, 3])]
    assert [(s.path, s.values.tolist()) for s in result.ys_series] == [("y", [1, 3, 6])]


def test_reverse_visits_from_the_end_and_keeps_the_order_of_ys():
    result = both(running_sum, 0.0, np.array([1.0, 2.0, 4.0], np.float32), reverse=True)
    assert result.ys.tolist() == [7, 6, 4]
    assert result.carries[0].values.tolist() == [0, 4, 6, 7]
    assert result.xs[0].values.tolist() == [4, 2, 1]
    assert result.ys_series[0].values.tolist() == [4, 6, 7]
    assert result.order == (2, 1, 0)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 8, 9, 31, 40])
@pytest.mark.parametrize("reverse", [False, True])
def test_padding_changes_no_bit(length, reverse):
    xs = np.random.default_rng(length).normal(size=(length, 3)).astype(np.float32)
    init = (np.int32(0), np.zeros(3, np.float32), np.zeros(3, np.float32))
    result = both(running_variance, init, xs, reverse=reverse)
    assert result.padded == padded_length(length)


@pytest.mark.parametrize("unroll", [True, False, 0, 2, 3, 7, 50])
def test_unrolled_values_are_those_of_the_unrolled_scan(unroll):
    xs = np.random.default_rng(0).normal(size=(13, 3)).astype(np.float32)
    result = both(exponential_average, np.zeros(3, np.float32), xs, unroll=unroll)
    np.testing.assert_array_equal(result.carries[0].values[-1], result.final)
    np.testing.assert_allclose(result.carries[0].values[1:], result.ys, rtol=1e-6)


def test_what_is_visited_in_the_padding_cannot_be_seen():
    """Past the end the carry overflows to inf and NaN; nothing of it may come back."""
    xs = np.full(5, 1e30, np.float32)
    result = both(exponential_average, 3e38, xs)
    assert np.isfinite(result.final)
    result = both(lambda c, x: (c * x - c, c), 1.0, xs)
    assert result.carries[0].values.shape == (6,)


def test_no_steps_traces_the_step_and_compiles_nothing():
    def step(carry, x):
        return (carry[0] + x, carry[1]), {"y": x * 2, "none": None}

    call = ScanCall(step, (0, jnp.float32(2.0)), np.zeros(0, np.float32))
    with count_compiles() as compiles:
        result = run_call(call)
    assert compiles.count == 0
    assert result.ys["y"].shape == (0,)
    assert result.ys["none"] is None
    assert result.final == (0, 2)
    assert result.final[0].dtype == np.float32  # weak 0 was promoted although no step ran
    assert [s.values.shape for s in result.carries] == [(1,), (1,)]
    assert (result.length, result.padded, result.compiled) == (0, 0, False)


def test_no_steps_with_keys_in_every_place():
    keys = jax.random.split(jax.random.key(0), 3)
    result = run_call(ScanCall(lambda c, k: (c, k), keys[0], keys[:0]))
    assert result.ys.shape == (0, 2)
    np.testing.assert_array_equal(result.final, jax.random.key_data(keys[0]))


def test_no_xs_but_a_length():
    result = both(fibonacci, (0, 1), None, 10)
    assert result.ys.tolist() == [0, 1, 1, 2, 3, 5, 8, 13, 21, 34]
    assert result.xs == ()


@pytest.mark.parametrize("length", [3, 3.7, "3", np.int64(3), True])
def test_length_is_taken_as_lax_scan_takes_it(length):
    assert both(fibonacci, (0, 1), None, length).length == int(length)


@pytest.mark.parametrize("reverse", [1, 0, None, "yes", np.bool_(True), 2.5])
def test_reverse_is_taken_as_lax_scan_takes_it(reverse):
    both(running_sum, 0.0, np.array([1.0, 2.0, 4.0], np.float32), reverse=reverse)


@pytest.mark.parametrize(
    ("init", "xs", "promoted"),
    [
        (0, np.ones(3, np.float32), "float32"),
        (0, np.full(3, 100, np.int8), "int8"),
        (300, np.ones(3, np.int8), "int8"),
        (0.0, np.ones(3, jnp.bfloat16), "bfloat16"),
        (1 + 2**-8 + 2**-30, np.zeros(3, jnp.bfloat16), "bfloat16"),
        (0.1, np.ones(3, np.float16), "float16"),
        (jnp.array(0), np.ones(3, np.float32), "float32"),
        (0.0, np.ones(3, np.int32), "float32"),
        (True, np.ones(3, np.int32), None),
    ],
)
def test_a_weak_init_is_promoted_as_lax_scan_does(init, xs, promoted):
    if promoted is None:  # a Python bool is not weak: JAX raises, and so does the runner
        with pytest.raises(TypeError):
            run_call(ScanCall(running_sum, init, xs))
        return
    result = both(running_sum, init, xs)
    carry = result.carries[0]
    assert carry.values.dtype.name == promoted
    # Rounded once, from the Python number: ml_dtypes 0.7 does, 0.6 goes by float32.
    assert carry.values[0] == np.asarray(lax.convert_element_type(init, promoted))
    assert carry.type.aval.weak is (promoted == "float32" and isinstance(init, float))


def test_int8_wraps_at_127_without_a_word():
    assert run_call(ScanCall(running_sum, 0, np.full(3, 100, np.int8))).final == 44


def test_a_weak_xs_stays_weak():
    xs = jnp.full(3, 2)
    assert xs.weak_type
    result = both(lambda c, x: (c * x, x), jnp.bfloat16(1.5), jnp.full(3, 2))
    assert result.xs[0].type.aval.weak


def test_keys_in_xs_carry_and_ys():
    keys = jax.random.split(jax.random.key(7), 5)

    def step(carry, key):
        position, last = carry
        here, kept = jax.random.split(key)
        return (position + jax.random.normal(here), kept), last

    result = both(step, (0.0, jax.random.key(1)), keys)
    types = {s.path: str(s.type) for s in (*result.carries, *result.xs, *result.ys_series)}
    assert types == {"carry[0]": "float32[]", "carry[1]": "key<fry>[]", "x": "key<fry>[]", "y": "key<fry>[]"}
    np.testing.assert_array_equal(result.xs[0].values, jax.random.key_data(keys))


def test_keys_of_another_kind_and_reversed():
    keys = jax.random.split(jax.random.key(3, impl="rbg"), 6)
    both(lambda c, k: (c + jax.random.uniform(k), k), 0.0, keys, reverse=True)
    raw = jax.random.split(jax.random.PRNGKey(3), 6)
    both(lambda c, k: (c + jax.random.uniform(k), k), 0.0, raw)


@pytest.mark.parametrize(
    ("step", "init", "xs"),
    [
        (lambda c, x: (None, x), None, np.ones(3)),
        (lambda c, x: ((), None), (), np.ones(3)),
        (lambda c, x: (c, ()), {}, np.ones(3)),
        (lambda c, x: ({"b": c["b"] + x["p"], "a": c["a"]}, [x["q"]]), {"a": 1.0, "b": np.zeros(2)}, None),
        (lambda c, x: (Pair(c.b, c.a + x[0]), x[1]), Pair(0.0, 1.0), (np.ones(3), np.ones((3, 0)))),
        (lambda c, x: [c + x, c], 0.0, np.ones(3)),
        (lambda c, x: (c + 1, 2.5), 0, np.ones(3)),
        (lambda c, x: (c ^ x, ~x), np.bool_(False), np.array([True, False, True])),
        (lambda c, x: (c + x, c), np.float64(0), np.ones(3, np.float64)),
        (lambda c, x: (c + x, c), np.int64(0), np.array([2**40, 1, 2])),
        (lambda c, x: (c + x, c), np.complex64(1j), np.ones(3, np.complex64)),
    ],
    ids=[
        "none",
        "empty",
        "empty dict",
        "dicts",
        "namedtuple",
        "list returned",
        "number as y",
        "bool",
        "f64",
        "i64",
        "c64",
    ],
)
def test_trees_and_dtypes_of_every_kind(step, init, xs):
    if xs is None:
        xs = {"p": np.arange(6.0).reshape(3, 2), "q": np.arange(3, dtype=np.uint8)}
    for reverse in (False, True):
        both(step, init, xs, reverse=reverse)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (ScanCall(running_sum, 0.0, [1, 2, 3]), ValueError),
        (ScanCall(running_sum, 0.0, 3.0), ValueError),
        (ScanCall(running_sum, 0.0, np.float32(3.0)), IndexError),
        (ScanCall(running_sum, 0.0), ValueError),
        (ScanCall(running_sum, 0.0, (np.ones(3), np.ones(2))), ValueError),
        (ScanCall(running_sum, 0.0, np.ones(3), length=2), ValueError),
        (ScanCall(running_sum, 0.0, np.ones(3), unroll=-1), ValueError),
        (ScanCall(running_sum, 0.0, np.ones(3), unroll=2.5), TypeError),
        (ScanCall(running_sum, 0.0, np.ones(3), reverse=[]), TypeError),
        (ScanCall(running_sum, "0", np.ones(3)), TypeError),
        (ScanCall(lambda c, x: c, 0.0, np.ones(3)), TypeError),
        (ScanCall(lambda c, x: {"b": c, "a": c + x}, 0.0, np.ones(3)), TypeError),
        (ScanCall(lambda c, x: Pair(c + x, c), 0.0, np.ones(3)), TypeError),
        (ScanCall(lambda total, x: (jnp.append(total, x), x), 0.0, np.ones(3)), TypeError),
    ],
)
def test_what_lax_scan_raises_is_raised_as_it_raises_it(call, error):
    with pytest.raises(error) as theirs:
        lax.scan(call.step, call.init, call.xs, call.length, call.reverse, call.unroll)
    with pytest.raises(error) as ours:
        run_call(call)
    assert str(ours.value) == str(theirs.value)


def test_moving_values_and_parameters_compiles_nothing():
    def call(seed: float, decay: float) -> ScanCall:
        xs = np.full(9, seed, np.float32)
        return ScanCall(exponential_average, seed, xs, params={"decay": decay})

    first = run_call(call(1.5, 0.5))
    with count_compiles() as compiles:
        second = run_call(call(2.5, 0.25))
    assert compiles.count == 0
    assert not second.compiled
    assert first.ys[0] != second.ys[0]


def test_sweeping_the_length_compiles_ten_times_at_most():
    """Also with keys, whose making and slicing must not compile either."""
    PROGRAMS.clear()
    step_keys(0, 1)
    for make in (lambda n: ScanCall(running_sum, 0.0, np.arange(float(n))), _walk):
        with count_compiles() as compiles:
            compiled = sum(run_call(make(n)).compiled for n in range(1, 513))
        assert compiles.count == compiled == 10


def _walk(length: int) -> ScanCall:
    return ScanCall(random_walk, 0.0, step_keys(1, length), params={"stride": 0.5})


def test_a_learner_s_step_is_not_padded_and_not_kept():
    def step(c, x):
        return c + x, c

    before = PROGRAMS.stats.programs
    result = run_call(ScanCall(step, 0.0, np.ones(5, np.float32)))
    assert (result.padded, result.compiled) == (5, True)
    assert run_call(ScanCall(step, 0.0, np.ones(5, np.float32))).compiled
    assert PROGRAMS.stats.programs == before


def test_a_hundred_shapes_of_a_library_step_stay_within_the_limit():
    limit = 32
    for n in range(1, 101):
        run_call(ScanCall(running_sum, np.zeros(n, np.float32), np.ones((2, n), np.float32)))
        assert PROGRAMS.stats.programs <= limit


def test_parameters_that_are_no_arrays_are_constants_of_a_program_of_their_own():
    def step(c, x, *, how, scale):
        return how(c, scale * x), c

    result = run_call(ScanCall(step, 1.0, np.ones(3, np.float32), params={"how": jnp.maximum, "scale": 4.0}))
    assert result.final == 4


def test_results_are_frozen_on_the_host():
    result = run_call(ScanCall(moving_window, np.zeros((2, 3), np.float32), np.ones((4, 3), np.float32)))
    assert all(isinstance(leaf, np.ndarray) for leaf in jax.tree.leaves((result.final, result.ys)))
    assert [s.values.shape for s in result.carries] == [(5, 2, 3)]
    assert str(result.carries[0].type) == "float32[2,3]"
