"""What a preset cannot take is said at the input that does not fit, with an edit that was tried."""

from __future__ import annotations

import pytest

from core.base.outcome import Outcome
from core.inputs.scan_check import Checked, evaluate
from core.inputs.scan_fields import follow, opening, scan_fields
from core.steps.library import PRESETS, STEPS
from core.steps.step import XKind


def checked(step: str, **edits) -> Checked:
    return evaluate(follow(opening(step), edits))


def mended(found: Checked) -> Checked:
    """As the button does it: exactly these fields."""
    (mend,) = found.built.mends
    merged = {**found.values, **mend.edit.values}
    return evaluate(scan_fields(merged).complete(merged))


@pytest.mark.parametrize(
    ("step", "edits", "field", "said", "title"),
    [
        (
            "distance",
            {"source": "generate", "features": 0},
            "features",
            "rows of 2 numbers; x has shape ().",
            "Set F to 2",
        ),
        (
            "distance",
            {"numbers": "1, 2"},
            "numbers",
            "rows of 2 numbers; x has shape ().",
            "Take the step's own sequence",
        ),
        ("tanh_rnn", {"numbers": "1"}, "numbers", "rows of numbers; x has shape ().", "Make each number a row"),
        ("tanh_rnn", {"source": "generate", "features": 0}, "features", "rows of numbers", "Set F to 2"),
        ("tanh_rnn", {"init": "[0, 0]"}, "init", "init of shape (4,); it has shape (2,).", "Set init to [0, 0, 0, 0]"),
        ("moving_window", {"init": "0"}, "init", "init of shape (3,); it has shape ().", "Set init to [0, 0, 0]"),
        ("moving_window", {"init": "[[]]"}, "init", "it has shape (1, 0).", "Set init to [0, 0, 0]"),
        (
            "rotation",
            {"init": "1"},
            "init",
            "For an x of shape () this step takes an init of shape (2,)",
            "Set init to [1, 0]",
        ),
        (
            "running_sum",
            {"numbers": "1, 2\n3, 4", "init": "[0, 0, 0]"},
            "init",
            "(2,); it has shape (3,).",
            "Set init to",
        ),
        (
            "gradient_descent",
            {"init_w": "[1, 2]"},
            "init_w",
            "This step takes an init w of shape (); it",
            "Set init w to 0.",
        ),
        (
            "running_variance",
            {"numbers": "1, 2\n3, 4", "init_mean": "[0, 0, 0]"},
            "init_mean",
            "init mean of shape (2,)",
            "Set init mean to [0, 0]",
        ),
    ],
)
def test_a_misfit_is_said_at_its_input_and_its_button_mends_it(step, edits, field, said, title):
    found = checked(step, **edits)
    assert found.report is None
    assert found.built.misfit
    (problem,) = found.built.problems
    assert problem[0] == field == found.built.mends[0].field
    assert said in problem[1]
    assert found.built.mends[0].title.startswith(title)
    after = mended(found)
    assert after.report.outcome is Outcome.OK
    assert after.result is not None


@pytest.mark.parametrize(
    ("step", "edits", "code"),
    [
        ("rotation", {"numbers": "1, 2\n3, 4"}, "S103"),
        ("moving_window", {"init": "[]"}, "S103"),
        ("distance", {"source": "generate", "batch": 3}, "S103"),
    ],
)
def test_where_a_rule_knows_it_the_rule_speaks(step, edits, code):
    found = checked(step, **edits)
    assert code in found.report.codes
    assert not found.built.misfit


@pytest.mark.parametrize(
    ("step", "edits"),
    [
        ("random_walk", {"init": "[1, 2]"}),
        ("kalman", {"init_mean": "[1, 2]"}),
        ("distance", {"numbers": "1, 2, 3\n4, 5, 6"}),
    ],
)
def test_what_runs_is_no_misfit(step, edits):
    assert checked(step, **edits).report.outcome is Outcome.OK


@pytest.mark.parametrize("step", [s.id for s in STEPS.values() if s.xs])
def test_every_step_takes_what_it_opens_with_and_what_a_generator_makes(step):
    x = STEPS[step]
    assert x.takes(x.opening_xs().shape[1:])
    found = checked(step, source="generate", length=4)
    assert found.report is not None
    assert found.report.error is None


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 10**30])
def test_a_python_number_beyond_int32_is_said_where_it_stands(value):
    (problem,) = checked("fibonacci", init_a=str(value)).built.problems
    assert problem[0] == "init_a"
    assert f"{value} does not fit it (-2147483648 to 2147483647)" in problem[1]


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31)])
def test_the_ends_of_int32_fit(value):
    assert checked("fibonacci", init_a=str(value)).result is not None


def test_a_strong_number_beyond_int32_is_cut_by_jax_and_n504_says_so():
    assert "N504" in checked("fibonacci", init_a=str(2**31), init_a_weak=False).report.codes


@pytest.mark.parametrize(
    ("numbers", "place"),
    [("1, 2147483648", "At t = 1: 2147483648"), ("1, 2\n3, 2147483648", "At t = 1, index 1: 2147483648")],
)
def test_a_list_holds_no_wider_number(numbers, place):
    found = checked("running_sum", dtype="int32", numbers=numbers, as_list=True)
    assert found.built.problems[0][0] == "numbers"
    assert found.built.problems[0][1].startswith(f"{place} does not fit int32 (-2147483648 to 2147483647)")


@pytest.mark.parametrize(
    "sizes", [{}, {"features": 2}, {"batch": 3, "features": 2}, {"batch": 3, "features": 2, "axes": "batch"}]
)
@pytest.mark.parametrize("step", [s.id for s in PRESETS if s.x is XKind.ANY])
def test_the_empty_sequence_keeps_the_contract(step, sizes):
    """The app's own init is read back in its own shape, whatever has no elements."""
    report = checked(step, source="generate", length=0, **sizes).report
    assert report.outcome is Outcome.OK
    assert report.error is None


@pytest.mark.parametrize("step", ["distance", "tanh_rnn"])
def test_an_empty_sequence_of_rows_keeps_the_contract(step):
    assert checked(step, source="generate", length=0).report.outcome is Outcome.OK
