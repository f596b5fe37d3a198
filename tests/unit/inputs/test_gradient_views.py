"""The gradient of a scan and one update, as the Gradients page reads them; and the programs they stand for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from core.base.outcome import Outcome
from core.base.violation import FieldEdit
from core.inputs.gradient_fields import EVAL, NO_RNGS, PRESET, STEP_NAMES, TRAINING, YS
from core.inputs.gradient_inputs import GradientInputs
from core.inputs.gradient_page import look_at, program_of
from core.inputs.gradient_scan import code_changes
from core.inputs.gradient_training import mode_proof
from core.runners.cache import count_compiles
from core.runners.scan_gradient_check import check_scan_gradient
from core.steps.library import UNGUARDED


def scan(step: str, **changes) -> GradientInputs:
    return GradientInputs(of=PRESET, preset=step, **changes)


def training(**changes) -> GradientInputs:
    return GradientInputs(
        **{
            "of": TRAINING,
            "model": "SimpleCell",
            "train_length": 4,
            "batch": 3,
            "hidden_features": 5,
            "updates": 3,
            **changes,
        }
    )


def run(program: str) -> dict:
    space: dict = {}
    exec(compile(program, "program", "exec"), space)
    return space


# --- scans ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", [step.id for step in UNGUARDED])
def test_each_unguarded_step_is_found_and_its_guard_verified(step):
    look = look_at(scan(step))
    (found,) = look.report.violations
    assert (found.code, found.silent) == ("N502", True)
    (fix,) = found.fixes
    assert fix.remaining == ()
    assert found.proof.before == look.scan.gradient.wild > 0
    assert found.proof.after == 0
    guarded = look_at(scan(str(fix.edit.values["preset"])))
    assert not guarded.report.violations
    assert guarded.scan.gradient.wild == 0
    assert guarded.scan.gradient.value == pytest.approx(look.scan.gradient.value)
    assert check_scan_gradient(guarded.scan.call, guarded.scan.gradient).difference.within


@pytest.mark.parametrize("step", ["exponential_average", "kalman", "tanh_rnn", "path_length"])
@pytest.mark.parametrize("target", ["final carry", YS])
def test_right_steps_break_nothing_and_agree_with_finite_differences(step, target):
    look = look_at(scan(step, target=target))
    assert look.report.outcome is Outcome.OK
    assert check_scan_gradient(look.scan.call, look.scan.gradient).difference.within


def test_numbers_that_need_no_guard_break_nothing():
    look = look_at(scan("roots_unguarded", xs="4, 9"))
    assert not look.report.violations
    assert look.scan.gradient.value == 5.0


@pytest.mark.parametrize(
    ("inputs", "field", "said"),
    [
        (scan("sum_of_roots", xs="1, x"), "xs", "“x” is no number"),
        (scan("sum_of_roots", xs="1 2\n3"), "xs", "Row 2"),
        (scan("fibonacci"), "target", "no floating-point number"),
    ],
)
def test_what_cannot_be_is_said(inputs, field, said):
    look = look_at(inputs)
    assert not look.ran
    assert [problem.field for problem in look.problems] == [field]
    assert said in look.problems[0].text


def test_the_lines_that_the_guard_changes():
    lines = code_changes(FieldEdit({"preset": "sum_of_roots"}), "roots_unguarded")
    assert ("−", "    total = total + jnp.where(x > 0, jnp.sqrt(x), 0)") in lines
    assert ("+", "    safe = jnp.where(x > 0, x, 1)") in lines
    assert (" ", "    return total, total") in lines
    assert code_changes(FieldEdit({"target": YS}), "roots_unguarded") == ()


@pytest.mark.parametrize("step", [name for name in STEP_NAMES if name not in ("fibonacci", "streak")])
def test_the_program_of_a_scan_gives_the_same_gradient(step):
    look = look_at(scan(step, target=YS))
    space = run(program_of(look))
    gradient = look.scan.gradient
    assert float(space["value"]) == pytest.approx(gradient.value, rel=1e-5, abs=1e-6)
    for leaf in gradient.leaves:
        if leaf.values is not None and leaf.type.path == "xs":
            np.testing.assert_allclose(space["by_xs"], leaf.values, rtol=1e-4, atol=1e-5)


# --- one update -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{"optimizer": "sgd"}, {"mode": EVAL, "optimizer": "adam", "learning_rate": 0.01}])
def test_one_update_lowers_the_loss_and_the_program_says_the_same(changes):
    look = look_at(training(**changes))
    step = look.training.step
    assert step.loss_after < step.loss_before
    assert look.training.losses[0] == step.loss_before
    assert len(look.training.losses) == 4
    space = run(program_of(look))
    assert float(space["before"]) == pytest.approx(step.loss_before, rel=1e-5)
    assert float(space["after"]) == pytest.approx(step.loss_after, rel=1e-4)


def test_training_without_rngs_is_l318_with_both_ways_out():
    look = look_at(training(rngs=NO_RNGS))
    assert look.training is None
    assert look.raised.type == "ValueError"
    (found,) = look.report.violations
    assert (found.code, found.silent, found.proof) == ("L318", False, None)
    assert [dict(fix.edit.values) for fix in found.fixes] == [{"rngs": "given"}, {"mode": "eval"}]
    assert all(look_at(training(**{"rngs": NO_RNGS, **fix.edit.values})).ran for fix in found.fixes)
    with pytest.raises(ValueError, match="rngs"):
        run(program_of(look))


def test_without_rngs_nothing_is_wrong_where_nothing_is_dropped():
    for changes in ({"mode": EVAL}, {"rate": 0.0}):
        assert not look_at(training(rngs=NO_RNGS, **changes)).report.violations


def test_eval_is_deterministic_and_training_is_not():
    proof = mode_proof(look_at(training()).training.spec)
    assert (proof.eval_twice, proof.train_same) == (0.0, 0.0)
    assert proof.train_other > 0


def test_sliders_of_an_update_compile_nothing():
    look_at(training())
    with count_compiles() as compiles:
        for changes in ({"rate": 0.6}, {"learning_rate": 1.0}, {"dropout_seed": 9}, {"updates": 7}, {"data_seed": 3}):
            assert not look_at(training(**changes)).training.step.compiled
    assert compiles.count == 0


def test_steps_that_are_too_large_are_not_hidden():
    losses = look_at(training(mode=EVAL, learning_rate=10.0, updates=100)).training.losses
    assert math.isnan(losses[-1]) or losses[-1] > losses[0]


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"train_length": 0}, "train_length", "nothing to differentiate"),
        ({"batch": 0}, "batch", "batch B must be 1 or more"),
        ({"hidden_features": 0}, "hidden_features", "must be 1 or more"),
        ({"batch": 65}, "batch", "limit of 64"),
        ({"batch": 64, "train_length": 512, "hidden_features": 256, "updates": 100}, "updates", "billion"),
    ],
)
def test_sizes_that_cannot_be_are_said(changes, field, said):
    (problem,) = look_at(training(**changes)).problems
    assert problem.field == field
    assert said in problem.text
