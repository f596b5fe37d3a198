from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from core.base.limits import LIMITS
from core.contract.engine import check_late
from core.contract.subject import ScanCall
from core.runners.cache import count_compiles
from core.runners.memo import one_check
from core.runners.reference import loop_check
from core.runners.scan import keep_run, run_call
from core.steps.accumulate import exponential_average, running_sum
from core.steps.dynamics import logistic_map
from core.steps.library import PRESETS
from core.steps.step import Step, XKind, x_aval


def opening(step: Step) -> ScanCall:
    xs = step.opening_xs()
    aval = x_aval(xs) if step.x is not XKind.KEY else None
    arguments = step.arguments(step, aval, step.defaults)
    length = step.length if xs is None else None
    return ScanCall(step.fn, step.init(aval, step.defaults), xs, length, params=arguments)


@pytest.mark.parametrize("step", PRESETS, ids=lambda s: s.id)
def test_every_preset_equals_its_loop(step):
    call = opening(step)
    check = loop_check(call, run_call(call), None)
    assert check.ok
    assert check.complete
    assert check.steps == step.length
    assert {leaf.path for leaf in check.carries} == set(step.leaves)


def test_only_the_first_steps_unless_all_are_asked_for():
    call = ScanCall(running_sum, 0.0, np.ones(200, np.float32))
    result = run_call(call)
    some, every = loop_check(call, result), loop_check(call, result, None)
    assert (some.steps, some.complete) == (LIMITS["check_steps"].value, False)
    assert (every.steps, every.complete) == (200, True)
    assert some.ys[0].shape == some.ys[0].loop_shape == (200,)
    assert loop_check(call, result, 3).end[0].ok


@pytest.mark.parametrize("reverse", [False, True])
def test_a_wrong_value_is_found_at_its_t_and_leaf(reverse):
    call = ScanCall(running_sum, 0.0, np.arange(10, dtype=np.float32), reverse=reverse)
    result = run_call(call)
    values = result.ys_series[0].values.copy()
    values[6] += 0.5
    values[8] += 0.25
    check = loop_check(call, replace(result, ys_series=(replace(result.ys_series[0], values=values),)))
    t = 3 if reverse else 6
    assert not check.ok
    assert check.first == (t, "y")
    assert (check.ys[0].first, check.ys[0].largest) == (t, 0.5)
    assert all(leaf.ok for leaf in (*check.carries, *check.end))
    assert loop_check(call, result, 6).ok


def test_a_wrong_carry_is_found_at_its_position():
    call = ScanCall(running_sum, 0.0, np.arange(5, dtype=np.float32))
    result = run_call(call)
    values = result.carries[0].values.copy()
    values[5] += 1
    check = loop_check(call, replace(result, carries=(replace(result.carries[0], values=values),)))
    assert (check.first, check.carries[0].first, check.end[0].ok) == ((4, "carry"), 5, False)
    assert loop_check(call, replace(result, carries=(replace(result.carries[0], values=values),)), 4).ok


def test_a_wrong_init_is_named_by_minus_one():
    call = ScanCall(running_sum, 0.0, np.ones(2, np.float32))
    result = run_call(replace(call, init=1.0))
    check = loop_check(call, result)
    assert check.first == (-1, "carry")


def test_a_wrong_leading_length_is_found():
    call = ScanCall(running_sum, 0.0, np.ones(4, np.float32))
    result = run_call(call)
    short = replace(result, ys_series=(replace(result.ys_series[0], values=result.ys_series[0].values[:3]),))
    check = loop_check(call, short, 2)
    assert not check.lengths_ok
    assert not check.ok


def test_small_changes_within_the_stated_tolerance_pass_and_beyond_it_do_not():
    call = ScanCall(running_sum, 0.0, np.full(3, 100.0, np.float32))
    result = run_call(call)
    for factor, ok in ((1 + 5e-6, True), (1 + 5e-5, False)):
        values = (result.ys_series[0].values * np.float32(factor)).astype(np.float32)
        moved = replace(result, ys_series=(replace(result.ys_series[0], values=values),))
        assert loop_check(call, moved).ok is ok


def test_whole_numbers_are_exact():
    call = ScanCall(running_sum, np.int32(0), np.arange(5, dtype=np.int32))
    result = run_call(call)
    check = loop_check(call, result)
    assert check.ok
    assert check.ys[0].tolerance.text == "exact"
    values = result.ys_series[0].values.copy()
    values[4] += 1
    assert not loop_check(call, replace(result, ys_series=(replace(result.ys_series[0], values=values),))).ok


def test_nan_equals_nan_at_the_same_place_only():
    xs = np.array([1.0, np.nan, 2.0], np.float32)
    call = ScanCall(lambda c, x: (c, x), 0.0, xs)
    result = run_call(call)
    assert loop_check(call, result).ok
    moved = replace(result.ys_series[0], values=xs[[1, 0, 2]])
    check = loop_check(call, replace(result, ys_series=(moved,)))
    assert check.first == (0, "y")
    assert check.ys[0].largest == np.inf


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "int8", "bool", "float32", "int32"])
def test_every_dtype_of_the_pages(dtype):
    xs = (np.arange(70) % 3).astype(jnp.dtype(dtype))
    for init in (np.zeros((), jnp.dtype(dtype)), 0.0, 0):
        call = ScanCall(lambda c, x: (c, c + x), init, xs)
        assert loop_check(call, run_call(call), None).ok


def test_the_loop_starts_in_single_precision():
    """A Python float would run in float64, and a logistic map leaves any tolerance within ten steps."""
    call = ScanCall(logistic_map, 0.2, None, 200, params={"rate": 3.9})
    check = loop_check(call, run_call(call), None)
    assert check.ok
    population, path = 0.2, []
    for _ in range(200):
        population = 3.9 * population * (1 - population)
        path.append(population)
    assert not np.allclose(run_call(call).ys, path, rtol=1e-5, atol=1e-6)


def test_a_weak_init_that_was_promoted_starts_promoted():
    call = ScanCall(running_sum, 0, np.full(3, 100, np.int8))
    check = loop_check(call, run_call(call))
    assert check.ok
    assert check.carries[0].loop_dtype == "int8"


def test_keys_and_empty_sequences_and_trees():
    keys = jax.random.split(jax.random.key(0), 4)
    walk = ScanCall(lambda c, k: ((c[0] + jax.random.normal(k), k), k), (0.0, keys[0]), keys, reverse=True)
    assert loop_check(walk, run_call(walk)).ok
    empty = ScanCall(running_sum, 0, np.zeros(0, np.float32))
    check = loop_check(empty, run_call(empty))
    assert (check.ok, check.steps, check.ys, check.complete) == (True, 0, (), True)
    nothing = ScanCall(lambda c, x: (None, None), None, np.ones(3))
    assert loop_check(nothing, run_call(nothing)).ok
    weak = ScanCall(lambda c, x: (c * x, x), jnp.bfloat16(1.5), jnp.full(3, 2))
    assert loop_check(weak, run_call(weak)).ok


def test_what_the_step_raises_in_the_loop_is_said_not_raised():
    def step(c, x):
        if not isinstance(x, jax.core.Tracer):
            raise ZeroDivisionError("only under a trace")
        return c + x, c

    call = ScanCall(step, 0.0, np.ones(3, np.float32))
    check = loop_check(call, run_call(call))
    assert not check.ok
    assert check.error is not None
    assert (check.error.type, check.error.message) == ("ZeroDivisionError", "only under a trace")


def test_a_step_with_a_memory_of_its_own_is_caught():
    def make():
        calls: list[int] = []

        def step(c, x):
            calls.append(1)
            return c + len(calls) * x, c

        return step

    call = ScanCall(make(), 0.0, np.ones(4, np.float32))
    assert not loop_check(call, run_call(call)).ok


def test_the_second_loop_compiles_nothing_whatever_the_values_and_length():
    def call(n: int, value: float) -> ScanCall:
        return ScanCall(exponential_average, 0.0, np.full(n, value, np.float32), params={"decay": value})

    first = call(4, 0.5)
    loop_check(first, run_call(first))
    calls = [(c, run_call(c)) for c in (call(4, 0.25), call(6, 0.5), call(7, 0.125))]
    with count_compiles() as compiles:
        assert all(loop_check(c, r).ok for c, r in calls)
    assert compiles.count == 0


# --- gradients ------------------------------------------------------------------------------------------------------


def differentiable(step: Step) -> bool:
    return step.id not in {"fibonacci", "streak", "count_positive"}


@pytest.mark.parametrize("step", [s for s in PRESETS if differentiable(s)], ids=lambda s: s.id)
def test_gradients_through_the_scan_equal_those_through_the_loop(step):
    call = opening(step)
    floats = lambda leaf: jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.floating)  # noqa: E731
    leaves, tree = jax.tree.flatten(call.init)
    movable = [float_leaf for float_leaf in leaves if floats(float_leaf)]
    fixed = [None if floats(leaf) else leaf for leaf in leaves]
    xs_moves = call.xs is not None and step.x is not XKind.KEY
    length = step.length

    def init_of(moved):
        moved = iter(moved)
        return tree.unflatten([next(moved) if leaf is None else leaf for leaf in fixed])

    def loss_of(final, ys):
        floats_only = [leaf for leaf in jax.tree.leaves((final, ys)) if floats(leaf)]
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in floats_only)

    def through_scan(moved, xs, params):
        body = lambda c, x: step.fn(c, x, **params)  # noqa: E731
        return loss_of(*lax.scan(body, init_of(moved), xs if xs_moves else call.xs, length))

    def through_loop(moved, xs, params):
        carry, ys = init_of(moved), []
        for t in range(length):
            x = None if call.xs is None else (xs if xs_moves else call.xs)[t]
            carry, y = step.fn(carry, x, **params)
            ys.append(y)
        return loss_of(carry, jax.tree.map(lambda *leaves: jnp.stack(leaves), *ys))

    moved = [jnp.asarray(leaf, jnp.float32) for leaf in movable]
    xs = jnp.asarray(call.xs) if xs_moves else jnp.zeros(())
    args = (moved, xs, {k: jnp.asarray(v) for k, v in call.params.items()})
    # Chaos makes both gradients of a long logistic map meaningless: a mild rate has one.
    if step.id == "logistic_map":
        args = (moved, xs, {"rate": jnp.float32(2.5)})
    scan, loop = jax.grad(through_scan, (0, 1, 2))(*args), jax.grad(through_loop, (0, 1, 2))(*args)
    assert any(np.any(np.asarray(g) != 0) for g in jax.tree.leaves(scan))
    for a, b in zip(jax.tree.leaves(scan), jax.tree.leaves(loop), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_it_says_which_tolerance_was_used_and_why() -> None:
    mixed = ScanCall(lambda c, x: (c + (x.astype(jnp.bfloat16) * 2).astype(c.dtype), c > 0), 0.0, jnp.ones(4))
    check = loop_check(mixed, run_call(mixed))
    assert check.carries[0].tolerance_text == "rtol 0.01, atol 0.01, since the step computes in bfloat16"
    assert check.ys[0].tolerance_text == "exact"  # truth values
    plain = ScanCall(lambda c, x: (c + x, c), 0.0, jnp.ones(4))
    assert {leaf.tolerance_text for leaf in loop_check(plain, run_call(plain)).carries} == {"rtol 1e-5, atol 1e-6"}


def test_within_one_check_the_loop_and_the_scan_run_once_for_all_who_ask():
    """The panel and the rule N503 both want the loop; the rule also wants the scan that the panel has run."""
    calls = 0

    def step(carry, x):
        nonlocal calls
        calls += 1
        return carry + x, carry

    call = ScanCall(step, jnp.float32(0), jnp.arange(3.0))
    result = run_call(call)
    calls = 0
    with one_check():
        keep_run(call, result)
        check = loop_check(call, result)
        once_each = calls
        assert check_late(call) == ()
        assert loop_check(call, result) is check
        # The rule traces the step to learn its dtypes; it calls it neither in a scan nor in a loop again.
        assert calls <= once_each + 1
    assert loop_check(call, result) is not check
