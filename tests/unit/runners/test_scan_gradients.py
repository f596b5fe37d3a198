"""The gradient of a preset's scan: against formulas, against differences, and where it is not finite."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.scan_gradients import Target
from core.contract.subject import ScanCall
from core.runners.cache import count_compiles
from core.runners.gradient_source import GRADIENT_PROGRAMS
from core.runners.scan import run_call
from core.runners.scan_gradient_check import check_scan_gradient
from core.runners.scan_gradients import NoGradientError, scan_gradient
from core.steps.library import PRESETS, STEPS, UNGUARDED, right_of
from core.steps.step import Step, XKind, x_aval

FINAL, YS = Target.FINAL, Target.YS


def call_of(step: Step, xs=None, length=None, **changes) -> ScanCall:
    xs = step.opening_xs() if xs is None else xs
    aval = None if step.x in (XKind.NONE, XKind.KEY) else x_aval(xs)
    length = (length or step.length) if xs is None else None
    params = step.arguments(step, aval, step.defaults)
    return ScanCall(step.fn, step.init(aval, step.defaults), xs, length, params=params, **changes)


def leaf(gradient, path):
    return next(one.values for one in gradient.leaves if one.type.path == path)


# --- formulas -------------------------------------------------------------------------------------------------------


def test_of_a_running_sum():
    call = call_of(STEPS["running_sum"], np.array([1.0, 2.0, 3.0], np.float32))
    final, ys = scan_gradient(call, FINAL), scan_gradient(call, YS)
    assert (final.value, ys.value) == (6, 10)
    assert leaf(final, "xs").tolist() == [1, 1, 1]
    assert leaf(ys, "xs").tolist() == [3, 2, 1]
    assert (leaf(final, "init"), leaf(ys, "init")) == (1, 3)
    backwards = scan_gradient(replace(call, reverse=True), YS)
    assert leaf(backwards, "xs").tolist() == [1, 2, 3]
    assert (final.first, final.wild, final.behind_a_value) == (None, 0, False)


def test_of_a_product_where_padding_would_be_differentiated():
    """T = 5 is padded to 8 elsewhere: the gradient is that of five factors."""
    xs = np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32)
    got = scan_gradient(call_of(STEPS["product"], xs), FINAL)
    assert leaf(got, "xs").tolist() == [120, 60, 40, 30, 24]
    assert leaf(got, "init") == 120
    assert got.length == 5


def test_a_python_float_has_a_gradient_and_a_whole_number_has_none():
    call = call_of(STEPS["running_variance"])
    assert isinstance(call.init[1], float)
    got = scan_gradient(call, FINAL)
    assert got.without == ("init[0]",)
    assert leaf(got, "init[1]").dtype == np.float32
    assert [one.role for one in got.leaves] == ["init", "init", "init", "xs"]
    whole = replace(call_of(STEPS["running_sum"], np.ones(3, np.float32)), init=0)
    assert scan_gradient(whole, FINAL).without == ("init",)


def test_keys_have_none():
    assert scan_gradient(call_of(STEPS["random_walk"]), FINAL).without == ("xs",)


@pytest.mark.parametrize(("name", "target"), [("fibonacci", FINAL), ("streak", YS), ("count_positive", FINAL)])
def test_where_nothing_floats_there_is_no_gradient(name, target):
    with pytest.raises(NoGradientError, match="no floating-point number"):
        scan_gradient(call_of(STEPS[name]), target)


def test_what_the_scan_raises_is_raised():
    with pytest.raises(TypeError):
        scan_gradient(call_of(STEPS["grows"]), FINAL)


def test_half_precision_keeps_its_dtype_and_is_summed_in_float32():
    xs = np.ones(300, jnp.bfloat16)
    got = scan_gradient(call_of(STEPS["running_max"], xs), YS)
    assert got.value == 300
    assert leaf(got, "xs").dtype == jnp.bfloat16


def test_no_steps():
    got = scan_gradient(call_of(STEPS["running_sum"], np.zeros(0, np.float32)), FINAL)
    assert (got.length, leaf(got, "init"), leaf(got, "xs").shape) == (0, 1, (0,))
    assert check_scan_gradient(call_of(STEPS["running_sum"], np.zeros(0, np.float32)), got).compared == 0


# --- differences ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("step", PRESETS, ids=lambda s: s.id)
def test_differences_agree_on_every_preset(step, target):
    call = call_of(step)
    try:
        got = scan_gradient(call, target)
    except NoGradientError:
        assert not any(jnp.issubdtype(leaf.dtype, np.floating) for leaf in jax.tree.leaves(run_call(call).final))
        return
    checked = check_scan_gradient(call, got)
    assert checked.difference.within
    assert got.wild == 0
    assert checked.compared + checked.bends == checked.total
    assert checked.compared > 0
    assert checked.bends == {"sum_of_roots": 1, "path_length": 2, "entropy": 1}.get(step.id, 0)


@pytest.mark.parametrize("reverse", [False, True])
def test_they_see_a_gradient_that_is_wrong(reverse):
    call = replace(call_of(STEPS["kalman"]), reverse=reverse)
    got = scan_gradient(call, FINAL)
    assert check_scan_gradient(call, got).difference.within
    bad = tuple(replace(one, values=one.values * np.float32(1.001)) for one in got.leaves)
    checked = check_scan_gradient(call, replace(got, leaves=bad))
    assert not checked.difference.within
    assert (checked.compared, checked.bends, checked.total) == (12, 0, 12)


def test_a_chaotic_map_is_followed():
    """300 steps of the logistic map at 4 multiply a derivative by about 2^300: whole runs could not show it."""
    step = STEPS["logistic_map"]
    values = step.defaults | {"rate": 3.9}
    call = ScanCall(step.fn, step.init(None, values), None, 120, params=step.arguments(step, None, values))
    got = scan_gradient(call, FINAL)
    assert abs(leaf(got, "init")) > 1e15
    assert check_scan_gradient(call, got).difference.within


def test_only_some_of_many_are_compared():
    call = call_of(STEPS["running_sum"], np.ones((64, 5), np.float32))
    checked = check_scan_gradient(call, scan_gradient(call, FINAL))
    assert (checked.compared, checked.total) == (64, 325)
    assert checked.difference.within


def test_64_bits_stay_inside():
    call = call_of(STEPS["kalman"])
    check_scan_gradient(call, scan_gradient(call, FINAL))
    assert not jax.config.jax_enable_x64
    assert jnp.zeros(1).dtype == np.float32


# --- not finite -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", UNGUARDED, ids=lambda s: s.id)
def test_an_unguarded_slope_is_not_finite_behind_a_value_that_is(step):
    call = call_of(step)
    got = scan_gradient(call, FINAL)
    assert got.behind_a_value
    assert got.first is not None
    assert not np.isfinite(got.first.value)
    guarded = scan_gradient(replace(call, step=right_of(step).fn), FINAL)
    assert guarded.value == got.value
    assert guarded.wild == 0
    good, bad = leaf(guarded, "xs"), leaf(got, "xs")
    assert (good[np.isfinite(bad)] == bad[np.isfinite(bad)]).all()


@pytest.mark.parametrize(
    ("xs", "reverse", "t"), [((1, 0, 4, 0, 9), False, 3), ((1, 0, 4, 0, 9), True, 1), ((0, 1), False, 0)]
)
def test_the_first_is_the_one_that_the_backward_pass_meets_first(xs, reverse, t):
    call = replace(call_of(STEPS["roots_unguarded"], np.array(xs, np.float32)), reverse=reverse)
    first = scan_gradient(call, FINAL).first
    assert first is not None
    assert (first.path, first.t, first.index) == ("xs", t, ())


def test_the_element_is_named():
    moves = np.array([[3, 4], [0, 0]], np.float32)
    first = scan_gradient(call_of(STEPS["norm_unguarded"], moves), FINAL).first
    assert first is not None
    assert (first.t, first.index) == (1, (0,))
    assert np.isnan(first.value)


def root(carry, x):
    return jnp.sqrt(carry) + x, carry


def test_init_alone_may_be_at_fault():
    got = scan_gradient(ScanCall(root, 0.0, np.array([1.0, 2.0], np.float32)), FINAL)
    assert got.first is not None
    assert (got.first.path, got.first.t, got.first.index, got.first.value) == ("init", None, (), np.inf)
    assert got.behind_a_value


def test_a_value_that_is_not_finite_itself_hides_nothing():
    got = scan_gradient(ScanCall(root, -1.0, np.ones(2, np.float32)), FINAL)
    assert np.isnan(got.value)
    assert not got.behind_a_value


# --- programs -------------------------------------------------------------------------------------------------------


def test_moving_numbers_compiles_nothing_and_a_learners_step_is_not_kept():
    call = call_of(STEPS["kalman"])
    scan_gradient(call, FINAL)
    with count_compiles() as compiles:
        got = scan_gradient(replace(call, xs=call.xs * 2, params={"drift": 0.5, "noise": 2.0}), FINAL)
    assert (compiles.count, got.compiled) == (0, False)
    own = ScanCall(lambda c, x: (c * x, c), 1.0, np.ones(3, np.float32))
    kept = GRADIENT_PROGRAMS.stats.programs
    assert scan_gradient(own, FINAL).compiled
    assert scan_gradient(own, FINAL).compiled
    assert GRADIENT_PROGRAMS.stats.programs == kept
