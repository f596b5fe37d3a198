"""N502 on a scan through which gradients are taken, and only there."""

from __future__ import annotations

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from core.base.scan_gradients import Target
from core.contract.engine import check
from core.contract.subject import ScanCall
from core.steps.library import PRESETS, UNGUARDED, right_of
from core.steps.step import Step, XKind, x_aval


def call_of(step: Step, target: Target | None = Target.FINAL) -> ScanCall:
    xs = step.opening_xs()
    aval = None if step.x in (XKind.NONE, XKind.KEY) else x_aval(xs)
    return ScanCall(
        step.fn,
        step.init(aval, step.defaults),
        xs,
        step.length if xs is None else None,
        params=step.arguments(step, aval, step.defaults),
        right_step=right_of(step).fn if step.right else None,
        gradient=target,
    )


def n502(call: ScanCall):
    return [v for v in check(call).violations if v.code == "N502"]


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("step", UNGUARDED, ids=lambda s: s.id)
def test_it_is_found_counted_and_mended(step, target):
    (found,) = n502(call_of(step, target))
    assert found.silent
    assert "is NaN, though the value is finite" in found.message
    assert "Differentiating step" in found.message
    assert [fix.remaining for fix in found.fixes] == [()]
    assert found.proof is not None
    assert found.proof.before > 0 == found.proof.after


@pytest.mark.parametrize("step", UNGUARDED, ids=lambda s: s.id)
def test_not_where_nobody_takes_gradients(step):
    report = check(call_of(step, None))
    assert not n502(call_of(step, None))
    assert not report.broken


@pytest.mark.parametrize("target", Target)
@pytest.mark.parametrize("step", PRESETS, ids=lambda s: s.id)
def test_right_steps_have_none(step, target):
    assert not n502(call_of(step, target))


def test_it_is_said_of_any_step_and_of_init():
    def root(carry, x):
        return jnp.sqrt(carry) + x, carry

    (found,) = n502(ScanCall(root, 0.0, np.array([1.0, 2.0], np.float32), gradient=Target.FINAL))
    assert "with respect to init is infinite" in found.message
    assert found.fixes == ()
    assert not n502(ScanCall(root, 1.0, np.array([1.0, 2.0], np.float32), gradient=Target.FINAL))


def test_a_value_that_is_not_finite_is_n501_s():
    call = call_of(UNGUARDED[0])
    codes = {v.code for v in check(replace(call, init=np.float32(np.nan))).violations}
    assert "N502" not in codes


def test_a_scan_that_raises_is_not_differentiated():
    codes = {v.code for v in check(replace(call_of(UNGUARDED[0]), step=lambda c, x: c)).violations}
    assert codes == {"S101"}
