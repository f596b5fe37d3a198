"""Every criterion can fail: for each one a thing that is broken, beside the same thing that is not."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from core.base.training import TrainingSpec
from core.contract.subject import ScanCall, SequenceTrial
from core.doctor.check import Terms
from core.report import calls, case
from core.report.cell_case import cell_negatives
from core.report.declared import DeclaredError, check_declared, data_of, read_declared
from core.report.formulas import FORMULAS, formula_criterion
from core.report.model import Asked, Declared, Name, Negative, Status
from core.report.parts import CRITERIA, Part, case_of
from core.report.training_case import mode_criterion
from core.report.wanted import SCRIPT, Wanted, from_link
from core.runners.cell_formulas import KINDS
from core.runners.parting_layer import Layered
from core.runners.parting_scan import Scanned
from core.runners.scan import run_call
from core.steps.library import STEPS

PASS, FAIL, NONE, NOT_RUN = Status.PASS, Status.FAIL, Status.NOT_APPLICABLE, Status.NOT_RUN


def criterion(name, page, declared=None, **link):
    """One criterion of a page's link."""
    read = from_link(page, link)
    assert not read.refused
    found = case_of(Wanted(page, read.values, declared=declared or {}), Terms())
    return found.work[name]()


def of_script(text, *names, declared=None):
    found = case_of(Wanted(SCRIPT, text=text, declared=declared or {}), Terms())
    try:
        made = [found.work[name]() for name in names]
        return made[0] if len(made) == 1 else made
    finally:
        found.close()


# --- rules and shapes


def test_rules_fail_for_a_step_that_breaks_one():
    found = criterion(Name.RULES, "scan", step="grows")
    assert (found.status, found.number, found.detail) == (FAIL, 1.0, "S103.")
    assert criterion(Name.RULES, "scan").status is PASS


def test_shapes_fail_for_a_carry_that_grows():
    found = criterion(Name.SHAPES, "scan", step="grows")
    assert found.status is FAIL
    assert found.number >= 1
    assert criterion(Name.SHAPES, "scan").status is PASS


def test_shapes_fail_for_a_carry_that_broadcasts_silently():
    """JAX raises nothing: the carry of one example is shared by all."""
    found = criterion(Name.SHAPES, "lstm", binit="one example")
    assert found.status is FAIL
    assert found.detail.startswith("carry[0] is float32[1,4], and must be float32[2,4]")


def test_shapes_fail_for_a_layer_that_takes_the_batch_for_time():
    assert criterion(Name.SHAPES, "sequence", tm="1", how="none").status is FAIL


# --- what was declared


def data(values, valid=None):
    return data_of("x", np.asarray(values), valid)


@pytest.mark.parametrize(
    ("declared", "number"),
    [
        (Declared("TF", ("rain", "wind"), "float32"), 0),
        (Declared("TBF"), 1),
        (Declared("TF", ("rain",)), 1),
        (Declared("TB", ("rain", "wind")), 1),
        (Declared("TF", (), "int32"), 1),
        (Declared("TBF", (), "int32"), 2),
    ],
)
def test_data_that_are_not_what_was_declared_fail(declared, number):
    found, _ = check_declared(declared, data(np.zeros((4, 2), np.float32)))
    assert found.number == number
    assert found.status is (FAIL if number else PASS)


def test_a_wrong_range_fails_with_how_many_lie_outside():
    values = np.array([0.0, 0.1, 2.0, np.nan], np.float32)
    assert check_declared(Declared(low=0.0, high=1.0), data(values))[1].number == 2
    assert check_declared(Declared(low=0.0, high=2.0), data(values[:3]))[1].status is PASS
    assert check_declared(Declared(), data(values))[1].status is NONE


def test_a_bound_is_rounded_as_the_data_are():
    assert check_declared(Declared(high=0.1), data(np.array([0.1], np.float32)))[1].status is PASS
    assert check_declared(Declared(low=0.1), data(np.array([0.1], np.float32)))[1].status is PASS


def test_padding_is_no_part_of_the_range():
    values = np.array([[[1.0], [np.nan]]], np.float32)
    valid = np.array([[True, False]])
    assert check_declared(Declared(low=0, high=1), data(values, valid))[1].status is PASS
    assert check_declared(Declared(low=0, high=1), data(values))[1].status is FAIL


def test_a_page_checks_a_range_that_a_person_declares():
    assert criterion(Name.RANGE, "scan", {"low": "0", "high": "2"}).number == 1
    assert criterion(Name.RANGE, "scan", {"low": "1", "high": "3"}).status is PASS


@pytest.mark.parametrize(
    ("field", "text"),
    [("axes", "TT"), ("axes", "XY"), ("dtype", "float12"), ("low", "few"), ("high", "nan"), ("target", "x" * 501)],
)
def test_what_cannot_be_declared_is_refused_at_its_field(field, text):
    with pytest.raises(DeclaredError) as refused:
        read_declared({field: text})
    assert refused.value.field == field


def test_a_range_that_is_upside_down_is_refused():
    with pytest.raises(DeclaredError, match="above"):
        read_declared({"low": "2", "high": "1"})


# --- keys


def test_a_key_that_is_used_again_in_a_step_fails():
    keys = jax.random.split(jax.random.key(0), 3)

    def once(carry, key):
        return carry + jax.random.normal(key), carry

    def twice(carry, key):
        return carry + jax.random.normal(key) + jax.random.uniform(key), carry

    assert calls.call_keys(ScanCall(once, 0.0, keys)).status is PASS
    assert calls.call_keys(ScanCall(twice, 0.0, keys)).status is FAIL
    same = jax.random.wrap_key_data(jnp.stack([jax.random.key_data(keys[0])] * 3))
    assert calls.call_keys(ScanCall(once, 0.0, same)).number == 2
    assert calls.call_keys(ScanCall(lambda c, x: (c + x, c), 0.0, jnp.ones(3))).status is NONE


def test_two_streams_of_one_seed_that_both_draw_fail():
    found = criterion(Name.KEYS, "lstm", carry="normal", cseed="0")
    assert found.status is FAIL
    assert "initialize_carry" in found.detail
    assert criterion(Name.KEYS, "lstm", carry="normal").status is PASS


def test_zeros_take_a_key_and_draw_nothing_with_it():
    """The commonest clean script: one seed for the parameters and for a carry of zeros."""
    assert criterion(Name.KEYS, "lstm", cseed="0").status is PASS


# --- finite


def test_outputs_that_are_not_finite_fail_and_are_counted():
    found = criterion(Name.OUTPUTS, "scan", **{"from": "paste", "x": "1, nan, 2"})
    assert (found.status, found.number) == (FAIL, 3.0)  # two of ys, and the final carry
    assert "1 were so already" in found.detail


def test_nan_in_what_counts_fails_a_layer_and_nan_in_its_padding_does_not():
    assert criterion(Name.OUTPUTS, "sequence", pad="nan").status is PASS
    assert criterion(Name.OUTPUTS, "sequence", pad="nan", how="none").status is FAIL


def test_a_gradient_that_is_not_finite_behind_a_finite_value_fails():
    bad = {"of": "preset", "step": "roots_unguarded"}
    assert criterion(Name.GRADIENTS, "gradients", **bad).status is FAIL
    assert criterion(Name.LOSS, "gradients", **bad).status is PASS
    assert criterion(Name.GRADIENTS, "gradients", of="preset", step="sum_of_roots").status is PASS


def test_a_loss_that_is_not_finite_fails():
    assert case.finite(Name.LOSS, np.float64(np.inf)).number == 1
    assert case.finite(Name.LOSS, np.float64(1.0)).status is PASS


# --- padding, negative tests


def test_a_mask_that_is_ignored_fails():
    found = criterion(Name.PADDING, "sequence", how="none")
    assert found.status is FAIL
    assert found.number > 0
    assert criterion(Name.PADDING, "sequence").status is PASS
    assert criterion(Name.PADDING, "sequence", len="8, 8, 8").status is NONE


@pytest.mark.parametrize(
    ("raised", "status"), [("TypeError", PASS), ("ValueError", FAIL), ("", FAIL)], ids=["right", "other", "nothing"]
)
def test_a_negative_test_fails_when_it_raises_nothing_or_something_else(raised, status):
    tests = (Negative("x.", "TypeError", "TypeError"), Negative("y.", "TypeError", raised))
    found = case.negatives_criterion(tests)
    assert found.status is status
    assert found.number == (status is FAIL)


def test_a_negative_test_is_really_run():
    assert case.negative("x.", "TypeError", lambda: None).raised == ""
    assert case.negative("x.", "TypeError", lambda: 1 + "").ok  # type: ignore[operator]


@pytest.mark.parametrize("kind", KINDS)
def test_each_cell_refuses_what_it_must(kind):
    assert [one.raised for one in cell_negatives(kind)] == ["TypeError"] * 3


@pytest.mark.parametrize("step", STEPS)
def test_each_preset_has_a_negative_test_that_holds(step):
    found = case_of(Wanted("scan", from_link("scan", {"step": step}).values), Terms())
    assert found.negatives
    assert all(one.ok for one in found.negatives), found.negatives


# --- paths


class Uneven:
    """A step whose second trace is not its first."""

    def __init__(self):
        self.traced = 0

    def __call__(self, carry, x):
        self.traced += 1
        return carry + x + (0.0 if self.traced < 2 else 1.0), carry


def test_jit_that_gives_something_else_fails():
    found = case.Paths({"": Scanned(ScanCall(Uneven(), 0.0, jnp.ones(3)))})(Name.JIT)
    assert found.status is FAIL
    assert found.number >= 1
    good = case.Paths({"": Scanned(ScanCall(lambda c, x: (c + x, c), 0.0, jnp.ones(3)))})(Name.JIT)
    assert good.status is PASS


def test_a_step_that_mixes_examples_fails_under_vmap():
    def step(mix):
        return lambda c, x: (c + (x.mean() if mix else x), c)

    def found(mix):
        call = ScanCall(step(mix), np.zeros(2, np.float32), np.arange(6, dtype=np.float32).reshape(3, 2))
        return case.Paths({"": Scanned(replace(call, axes={"xs": "TB"}))})(Name.VMAP)

    assert found(True).status is FAIL
    assert found(False).status is PASS


def test_without_a_batch_nothing_is_mapped():
    assert criterion(Name.VMAP, "scan").status is NONE


def test_a_path_that_raises_fails_and_an_eager_one_that_raises_is_not_run():
    bad = SequenceTrial("LSTMCell", np.zeros((2, 3, 1), np.float32), "BTF", 2, unroll=-1)
    assert case.Paths({"": Layered(bad)})(Name.JIT).status is NOT_RUN


def test_a_scan_that_a_loop_does_not_confirm_fails():
    call = ScanCall(lambda c, x: (c + x, c), 0.0, np.ones(3, np.float32))
    result = run_call(call)
    assert calls.call_loop(call, result).status is PASS
    other = replace(call, step=lambda c, x: (c + 2 * x, c))
    found = calls.call_loop(other, result)
    assert (found.status, found.number) == (FAIL, 3.0)


# --- formulas and modes


@pytest.mark.parametrize("step", FORMULAS)
def test_each_formula_agrees_with_its_preset_and_not_with_another_result(step):
    found = case_of(Wanted("scan", from_link("scan", {"step": step}).values), Terms())
    assert found.work[Name.FORMULA]().status is PASS


def test_a_result_that_the_formula_does_not_give_fails():
    call = ScanCall(STEPS["running_sum"].fn, 0.0, np.ones(3, np.float32))
    result = run_call(call)
    assert formula_criterion("running_sum", call, result).status is PASS
    found = formula_criterion("running_max", call, result)
    assert found.status is FAIL
    assert found.detail == "carry, step 1: the scan gives 2.0, the formula 1.0."


def test_a_preset_that_draws_has_no_formula():
    assert criterion(Name.FORMULA, "scan", step="random_walk").status is NONE


def test_a_cell_whose_equations_are_others_fails(monkeypatch):
    from core.runners import cells

    right = cells.formula_step
    monkeypatch.setattr(cells, "formula_step", lambda kind, w, carry, x: right(kind, w, carry, 2 * np.asarray(x)))
    assert criterion(Name.FORMULA, "lstm").status is FAIL


def test_dropout_without_rngs_is_a_mode_that_fails():
    inputs, targets = np.zeros((2, 3, 1), np.float32), np.zeros((2, 1), np.float32)
    spec = TrainingSpec(inputs, targets, hidden_features=2)
    assert mode_criterion(spec, "ValueError").status is FAIL
    assert mode_criterion(spec, None).status is PASS
    assert criterion(Name.MODE, "scan").status is NONE


# --- scripts

SCRIPT_TEXT = """
import jax
import jax.numpy as jnp
def step(carry, x):
    return carry {change}, carry
final, ys = jax.lax.scan(step, 0.0, jnp.array([1.0, {last}]))
"""


def test_a_script_is_checked_like_a_page():
    names = (Name.RULES, Name.SHAPES, Name.OUTPUTS, Name.JIT, Name.LOOP, Name.RANGE)
    good = of_script(SCRIPT_TEXT.format(change="+ x", last="2.0"), *names, declared={"low": "0", "high": "2"})
    assert [one.status for one in good] == [PASS] * 6
    bad = of_script(SCRIPT_TEXT.format(change="+ x", last="jnp.inf"), *names, declared={"low": "0", "high": "2"})
    assert [one.status for one in bad] == [bad[0].status, PASS, FAIL, PASS, PASS, FAIL]


def test_a_script_that_raises_has_failed_and_the_rest_is_not_run():
    names = (Name.RULES, Name.SHAPES, Name.OUTPUTS, Name.JIT)
    found = of_script(SCRIPT_TEXT.format(change="[None] + x", last="2.0"), *names)
    assert found[0].status is FAIL
    assert {one.status for one in found[2:]} == {NOT_RUN}


def test_a_scripts_keys_are_compared_by_value():
    text = """
import jax
from flax import nnx
one = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
two = nnx.Linear(2, 3, rngs=nnx.Rngs({seed}))
"""
    assert of_script(text.format(seed=0), Name.KEYS).status is FAIL
    assert of_script(text.format(seed=1), Name.KEYS).status is PASS


def test_a_scripts_gradient_that_is_not_finite_fails():
    text = """
import jax
import jax.numpy as jnp
slope = jax.grad(lambda x: jnp.sqrt(x))
print(slope({at}))
"""
    assert of_script(text.format(at="0.0"), Name.GRADIENTS).status is FAIL
    assert of_script(text.format(at="1.0"), Name.GRADIENTS).status is PASS


# --- all of them


def test_every_criterion_is_in_one_part():
    named = [name for part in Part for name in CRITERIA[part]]
    assert sorted(named) == sorted(Name)


@pytest.mark.parametrize("page", ["scan", "lstm", "sequence", "gradients", "script"])
def test_every_case_works_every_criterion_out(page):
    values = {} if page == "script" else from_link(page, {}).values
    text = SCRIPT_TEXT.format(change="+ x", last="2.0") if page == "script" else ""
    found = case_of(Wanted(page, values, text=text), Terms())
    assert set(found.work) == set(Name) - {Name.NEGATIVE}
    assert found.negatives
    found.close()


def test_requests_for_keys_have_an_order_and_a_count():
    found = case_of(Wanted("lstm", from_link("lstm", {}).values), Terms())
    first = found.asked[:12]
    assert [one.order for one in first] == list(range(12))
    assert [one.count for one in first] == list(range(12))
    assert all(one.by == "nnx.LSTMCell" and one.stream == "params (default)" for one in first)
    assert sum(one.drawn for one in first) == 8  # eight kernels; four biases of zeros
    assert [(one.by, one.drawn) for one in found.asked[12:]] == [("nnx.LSTMCell.initialize_carry", False)] * 2
    assert isinstance(first[0], Asked)
