"""What an answer is told: what was compared, what counts as a try, and what does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from core.base.limits import LIMITS
from core.challenges.challenge import Ask, Challenge, Kind, Level, What
from core.challenges.grading import (
    OTHER_SIDE,
    RIGHT,
    WRONG,
    Grade,
    UnanswerableError,
    answer_text,
    answerable,
    choices_of,
    grade_fix,
    grade_predict,
    grade_spot,
    value_text,
)
from core.doctor.grade_job import Again, Graded, Leaf
from tests.unit.challenges.running import numbered, run, runs_of

STAIRS = numbered(4)


def asked(what: What, values: object, dtype: str = "float32") -> tuple[Challenge, Graded]:
    """A "predict" of one name, and a run in which it has these values."""
    challenge = Challenge("0", 0, Kind.PREDICT, Level.EASY, "t", "s", "x = 0\n", asks=(Ask(what, "x"),))
    stored = np.asarray(values, np.float32 if dtype == "bfloat16" else dtype)
    return challenge, replace(runs_of(numbered(1))[0], values={"x": (Leaf("", dtype, stored),)})


def told(what: What, answer: str, values: object, dtype: str = "float32") -> str:
    challenge, graded = asked(what, values, dtype)
    grade = grade_predict(challenge, [answer], graded)
    assert grade.counted
    (said,) = grade.said
    assert grade.right is said.right
    return said.text


# --- predict ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("answer", "says"), [
    ("(2, 3)", "right"), ("f32[2,3]", "right"), ("(2,)", "more axes"), ("()", "more axes"), ("(1, 2, 3)", "fewer axes"),
    ("(3, 2)", "axis 0"), ("(2, 4)", "axis 1"),
])  # fmt: skip
def test_a_shape_is_compared_axis_by_axis(answer: str, says: str):
    assert says in told(What.SHAPE, answer, np.zeros((2, 3)))


@pytest.mark.parametrize(("dtype", "answer", "says"), [
    ("float32", "f32", "right"), ("float32", "float16", "another one of the floats"), ("float32", "int32", "not whole numbers"),
    ("bfloat16", "bf16", "right"), ("bfloat16", "float16", "another one of the floats"), ("float16", "bfloat16", "another one of the floats"),
    ("int8", "uint8", "another one of the whole numbers"), ("bool", "int32", "not whole numbers"), ("int32", "bool", "not truth values"),
])  # fmt: skip
def test_a_dtype_is_compared_by_its_kind(dtype: str, answer: str, says: str):
    assert says in told(What.DTYPE, answer, 0, dtype)


@pytest.mark.parametrize(("values", "dtype", "answer", "says"), [
    (3.0, "float32", "3", "right"), (3.0, "float32", "3.000001", "right"), (3.0, "float32", "3.001", "give all digits"),
    (3.0, "float32", "4", "another number"), (3.0, "float32", "[3]", "yours is (1,), the program's is ()"),
    (5.8125, "float32", "5.81", "give all digits"), (5.8125, "float32", "93/16", "right"), (3, "int32", "3.001", "another number"),
    ([1, 2, 3], "int32", "1 2 3", "right"), ([1, 2, 3], "int32", "[1.0, 2.0, 3.0]", "right"), ([1, 2, 3], "int32", "[1, 2, 4]", "entry 2"), ([1, 2, 3], "int32", "[0, 0, 0]", "entry 0"),
    ([1, 2, 3], "int32", "[1, 2]", "yours is (2,), the program's is (3,)"), ([[1, 2]], "float32", "[[1, 3]]", "entry [0, 1]"),
    ([True, False], "bool", "[True, False]", "right"), ([True, False], "bool", "[1, 0]", "right"), (True, "bool", "False", "another number"),
    ([np.nan, 1], "float32", "[nan, 1]", "right"), ([np.nan, 1], "float32", "[0, 1]", "entry 0"), (np.inf, "float32", "inf", "right"),
    (130.0, "bfloat16", "130.5", "right"), ([], "float32", "[]", "right"), ([], "float32", "0", "yours is (), the program's is (0,)"),
])  # fmt: skip
def test_a_value_is_compared_number_by_number(values: object, dtype: str, answer: str, says: str):
    assert says in told(What.VALUE, answer, values, dtype)


def test_each_ask_is_said_at_its_own_field():
    challenge = numbered(1)
    grade = grade_predict(challenge, ["15", "[5, 7, 8, 12]"], runs_of(challenge)[0])
    assert [(one.field, one.right) for one in grade.said] == [(0, True), (1, False)]
    assert (grade.right, grade.choice) == (False, WRONG)


def test_nonsense_is_said_at_its_field_and_is_no_try():
    challenge = numbered(1)
    grade = grade_predict(challenge, ["fifteen", ""], runs_of(challenge)[0])
    assert [field for field, _ in grade.forms] == [0, 1]
    assert (grade.right, grade.said, grade.choice, grade.counted) == (False, (), "", False)


def test_one_unreadable_answer_keeps_the_others_secret():
    challenge = numbered(1)
    grade = grade_predict(challenge, ["15", "?"], runs_of(challenge)[0])
    assert not grade.counted
    assert grade.said == ()


def test_what_is_said_back_is_short_and_has_no_code_marks():
    said = told(What.VALUE, "`" + ", ".join(["1"] * 90) + "`", [1.0])
    assert said.count("`") == 4
    assert len(said) < 250


def test_the_right_answer_is_written_as_people_type_it():
    for number, want in ((2, ["(3,)", "(6,)"]), (13, ["2.5", "(0, 3)", "bool"])):
        challenge = numbered(number)
        assert [answer_text(ask, runs_of(challenge)[0]) for ask in challenge.asks] == want
    assert value_text(Leaf("", "bool", np.array([True, False]))) == "[True, False]"


def test_a_program_without_the_name_cannot_be_answered():
    challenge, graded = asked(What.VALUE, 1.0)
    with pytest.raises(UnanswerableError):
        grade_predict(challenge, ["1"], replace(graded, values={"x": None}))
    assert not answerable(challenge, [replace(graded, values={"x": None})])
    assert answerable(challenge, [graded])


# --- fix it -----------------------------------------------------------------------------------------------------------


def fixed(text: str) -> Grade:
    return grade_fix(STAIRS, run(STAIRS.attempt(text)), runs_of(STAIRS)[1])


@pytest.mark.parametrize(("text", "says"), [
    ("x = (1,\n", "cannot be run: "), ("def f(:\n", "cannot be run: "), ("if True:\nx = 1\n", "cannot be run: "), ("", "no code"), ("   \n# only words\n", "cannot be run: "),
    ("import os\nprint(os.listdir())\n" + STAIRS.other, "cannot be run: "), (STAIRS.other + "#" * LIMITS["script_text"].value, "characters"),
])  # fmt: skip
def test_what_cannot_be_run_is_said_and_is_no_try(text: str, says: str):
    grade = fixed(text)
    assert (grade.right, grade.counted, grade.choice) == (False, False, "")
    assert says in grade.said[0].text
    assert ".." not in grade.said[0].text


def test_the_script_as_it_was_given_is_no_try_and_is_told_what_breaks():
    for text in (STAIRS.program, STAIRS.program + "\n\n", "\n" + STAIRS.program):
        grade = fixed(text)
        assert (grade.right, grade.counted, grade.choice) == (False, False, "")
        assert "S104" in grade.said[0].text


def test_a_script_that_raises_says_what():
    grade = fixed(STAIRS.other + "undefined\n")
    assert "NameError" in grade.said[0].text
    assert (grade.counted, grade.choice) == (True, WRONG)


def test_a_name_that_is_gone_is_told():
    grade = fixed(STAIRS.other.replace("height, track = ", "height, steps = "))
    assert [one.text for one in grade.said] == ["`track` is not there, or is no array."]


def test_values_within_rounding_are_right_and_others_are_not():
    _, want = runs_of(STAIRS)
    (leaf,) = want.values["height"]

    def with_height(values: np.ndarray) -> Grade:
        moved = (replace(leaf, values=values.astype(np.float32)),)
        got = replace(want, values={**want.values, "height": moved}, swapped=want.swapped)
        return grade_fix(STAIRS, got, want)

    assert with_height(leaf.values * (1 + 1e-6)).right
    assert not with_height(leaf.values * 1.001).right
    assert not with_height(leaf.values + np.nan).right
    assert not with_height(leaf.values[None]).right


@pytest.mark.parametrize(("again", "says"), [(Again.LOST, "Leave `rises = …`"), (Again.STOPPED, "the script stops")])
def test_a_run_with_other_data_that_did_not_end_is_told(again: Again, says: str):
    _, want = runs_of(STAIRS)
    grade = grade_fix(STAIRS, replace(want, again=again, swapped={}), want)
    assert not grade.right
    assert says in grade.said[0].text


def test_a_list_of_arrays_is_as_good_as_one_array_but_not_the_other_way_round():
    _, want = runs_of(STAIRS)
    (leaf,) = want.values["track"]
    rows = tuple(Leaf(f"[{i}]", leaf.dtype, row) for i, row in enumerate(leaf.values))
    (other,) = want.swapped["track"]
    others = tuple(Leaf(f"[{i}]", leaf.dtype, row) for i, row in enumerate(other.values))
    got = replace(want, values={**want.values, "track": rows}, swapped={**want.swapped, "track": others})
    assert grade_fix(STAIRS, got, want).right
    assert not grade_fix(STAIRS, want, got).right
    short = replace(got, values={**want.values, "track": rows[:-1]})
    assert not grade_fix(STAIRS, short, want).right


def test_a_check_that_had_no_time_to_end_is_no_try_and_is_never_right():
    _, want = runs_of(STAIRS)
    grade = grade_fix(STAIRS, replace(want, whole=False), want)
    assert (grade.right, grade.counted, grade.choice) == (False, False, "")
    assert "busy" in grade.said[0].text
    assert not answerable(STAIRS, [want, replace(want, whole=False)])


def test_a_script_that_was_stopped_from_outside_is_a_try():
    grade = Grade.stopped("It took too long.")
    assert (grade.right, grade.counted, grade.choice) == (False, True, WRONG)


# --- spot it ----------------------------------------------------------------------------------------------------------


def test_a_spot_whose_check_did_not_end_cannot_be_answered():
    challenge = numbered(7)
    wrong, right = runs_of(challenge)
    for runs in ((right, right), (wrong, wrong)):
        assert not answerable(challenge, runs)
        with pytest.raises(UnanswerableError):
            grade_spot(challenge, challenge.side(0), challenge.options[0], runs, 0)


def test_a_tally_counts_choices_that_are_few_and_known():
    assert choices_of(numbered(1)) == choices_of(numbered(4)) == (RIGHT, WRONG)
    assert choices_of(numbered(7)) == (OTHER_SIDE, *numbered(7).options)
