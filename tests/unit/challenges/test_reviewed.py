"""Every reviewed challenge, graded by running it: the right answer is right, and what is near it is not.

The answers below were worked out by hand; the product holds none of them.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from core.base.outcome import Outcome
from core.base.violation import Severity
from core.challenges.challenge import Challenge, Kind, Level, Side, What
from core.challenges.fields import challenges_of
from core.challenges.grading import (
    OTHER_SIDE,
    RIGHT,
    WRONG,
    answer_text,
    answerable,
    broken_codes,
    choices_of,
    grade_fix,
    grade_predict,
    grade_spot,
    proof_text,
    title_of,
)
from core.challenges.loader import DATA, reviewed
from core.contract.rule import all_rules
from core.doctor.grade_job import Again
from core.lessons.pages import PAGES
from tests.unit.challenges.repairs import CHEATS, HONEST
from tests.unit.challenges.running import numbered, run, runs_of

#: By number, for each ask: the right answer, and answers that people give who have not seen the point.
PREDICTED: dict[int, list[tuple[str, list[str]]]] = {
    1: [("15", ["10", "12", "5"]), ("[7, 8, 12, 15]", ["[5, 7, 8, 12]", "[2, 1, 4, 3]", "[5, 7, 8, 12, 15]"])],
    2: [("(3,)", ["()", "(6,)", "(6, 3)"]), ("(6,)", ["()", "(3,)", "(6, 3)", "(6, 1)"])],
    3: [("float32", ["int32", "float64", "bfloat16"]), ("1.75", ["0", "1", "2"])],
    9: [("7", ["1", "4"]), ("[7, 6, 4]", ["[4, 6, 7]", "[1, 3, 7]", "[7, 3, 1]"])],
    10: [
        ("(2, 4)", ["(2, 3)", "(4,)", "(5, 2, 4)"]),
        ("(2, 4)", ["(4, 2)"]),
        ("(5, 2, 4)", ["(2, 5, 4)", "(5, 2, 3)"]),
    ],
    11: [("(2, 4, 6)", ["(4, 2, 6)", "(2, 4, 3)", "(2, 8, 3)", "(2, 2, 4, 3)"])],
    12: [("[0, 1, 1, 2, 3, 5]", ["[1, 1, 2, 3, 5, 8]"]), ("13", ["8", "5"]), ("int32", ["float32", "int64"])],
    13: [("2.5", ["0"]), ("(0, 3)", ["(0,)", "(3,)", "()"]), ("bool", ["float32", "int32"])],
    20: [("int8", ["int32", "float32", "int16"]), ("-126", ["130", "127", "-125"])],
    21: [("[1, 2, 4, 0]", ["[1, 2, 4]", "[1, 2, 4, nan]", "[1, 2, 4, -9]"])],
    22: [("6", ["15"]), ("6", ["15"])],
    27: [("7", ["15", "14"]), ("[4, 6, 6, 7]", ["[4, 6, 7]", "[4, 6, 0, 7]", "[4, 6, 14, 15]"])],
    28: [("[0.125, 0.25, 0.5, 1]", ["[1, 0.5, 0.25, 0.125]", "[1, 1, 1, 1]", "[0.0625, 0.125, 0.25, 0.5]"])],
}
#: By number, the one code that the broken script breaks.
BROKEN = {
    4: "S104",
    5: "S101",
    6: "P201",
    14: "S103",
    15: "S102",
    16: "L301",
    19: "S115",
    23: "L311",
    24: "N502",
    30: "P205",
}
#: By number, the one code that the wrong one of two programs breaks.
SPOTTED = {7: "P204", 8: "R401", 17: "R402", 18: "L302", 25: "S120", 26: "R405", 29: "L312"}


def of(kind: Kind) -> list[Challenge]:
    return [one for one in reviewed() if one.kind is kind]


def name(challenge: Challenge) -> str:
    return challenge.key


# --- the set ----------------------------------------------------------------------------------------------------------


def test_every_challenge_is_in_one_of_the_tables():
    assert [c.number for c in reviewed()] == list(range(1, len(reviewed()) + 1))
    assert {c.number for c in of(Kind.PREDICT)} == set(PREDICTED)
    assert {c.number for c in of(Kind.FIX)} == set(BROKEN) == set(HONEST) == set(CHEATS)
    assert {c.number for c in of(Kind.SPOT)} == set(SPOTTED)


def test_there_are_enough_of_each_kind_and_level():
    assert len(reviewed()) >= 18
    for kind in Kind:
        assert len(of(kind)) >= 6
        assert {c.level for c in of(kind)} == set(Level)


def test_they_go_from_easy_to_hard():
    levels = [c.level for c in challenges_of("all")]
    assert levels == sorted(levels)


def test_a_file_is_named_after_its_title():
    for path, challenge in zip(sorted(DATA.glob("*.md")), reviewed(), strict=True):
        words = re.sub(r"[^a-z0-9]+", "-", challenge.title.lower()).strip("-")
        assert path.name == f"{challenge.number:02d}-{words}.md"


@pytest.mark.parametrize("challenge", reviewed(), ids=name)
def test_texts_are_whole(challenge: Challenge):
    texts = (challenge.story, challenge.why, *challenge.hints)
    for text in texts:
        assert text.count("`") % 2 == 0, text
        assert text[-1] in ".?…)", text
    assert 2 <= len(challenge.hints) <= 3
    assert len(set(challenge.hints)) == len(challenge.hints)
    assert len(challenge.story) <= 400
    for ask in challenge.asks:
        assert re.search(rf"\b{ask.name}\b", challenge.program)
    for result in challenge.results:
        assert f"`{result}`" in challenge.story, "a learner is told what must come out right"
    assert challenge.documents


@pytest.mark.parametrize("challenge", of(Kind.PREDICT), ids=name)
def test_no_first_hint_gives_the_answer_away(challenge: Challenge):
    for ask in challenge.asks:
        answer = answer_text(ask, runs_of(challenge)[0])
        if len(answer) > 3 and ask.what is not What.DTYPE:  # the types of what goes in are told
            assert answer not in challenge.hints[0]
            assert answer not in challenge.story


@pytest.mark.parametrize("challenge", [c for c in reviewed() if c.see], ids=name)
def test_what_is_linked_is_there(challenge: Challenge):
    page, mark, query = challenge.see.partition("?")
    if not mark:
        assert challenge.see in {rule.code for rule in all_rules()}
        return
    assert PAGES[page].read(dict(parse_qsl(query, strict_parsing=True))).refused == ()


# --- predict ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("challenge", of(Kind.PREDICT), ids=name)
def test_the_predicted_is_right_and_what_is_near_it_is_not(challenge: Challenge):
    (run_of_it,) = runs_of(challenge)
    right = [answer for answer, _ in PREDICTED[challenge.number]]
    assert [answer_text(ask, run_of_it) for ask in challenge.asks] == right
    grade = grade_predict(challenge, right, run_of_it)
    assert (grade.right, grade.choice, grade.counted) == (True, RIGHT, True)
    for field, (_, wrong) in enumerate(PREDICTED[challenge.number]):
        for answer in wrong:
            given = [*right[:field], answer, *right[field + 1 :]]
            grade = grade_predict(challenge, given, run_of_it)
            assert (grade.right, grade.choice, grade.counted) == (False, WRONG, True), answer
            assert [one.field for one in grade.said if not one.right] == [field]
            (said,) = (one.text for one in grade.said if not one.right)
            assert f"`{answer}`" in said
            assert not said.endswith("` "), "it says what was compared"
            assert (
                right[field] not in said.replace(answer, "").split(" ", 3)[-1] or challenge.asks[field].what != "value"
            )


@pytest.mark.parametrize("challenge", of(Kind.PREDICT), ids=name)
def test_what_is_to_be_predicted_raises_nothing(challenge: Challenge):
    (run_of_it,) = runs_of(challenge)
    assert answerable(challenge, runs_of(challenge))
    assert run_of_it.answer.report.error is None
    assert not [one for one in run_of_it.answer.report.violations if one.severity is Severity.ERROR]


# --- what the explanations say beyond the program itself --------------------------------------------------------------


def test_a_strong_int_is_refused_where_a_weak_one_gives_way():
    assert "`jnp.int32(0)` would be refused" in numbered(3).why
    text = numbered(3).program.replace("rise, 0, gusts", "rise, jnp.int32(0), gusts")
    assert broken_codes(run(numbered(3).attempt(text))) == ("S104",)


def test_a_strong_int_keeps_a_sum_of_small_ones_from_wrapping():
    assert "`jnp.int32(0)`, and the total is an int32, 130" in numbered(20).why
    text = numbered(20).program.replace("add, 0, counts", "add, jnp.int32(0), counts")
    challenge = numbered(20)
    assert grade_predict(challenge, ["int32", "130"], run(challenge.attempt(text))).right


def test_a_layer_in_reverse_returns_the_order_of_its_visits_unless_it_is_told_to_keep_it():
    assert "`nnx.RNN(reverse=True)` returns them in the order of the visits" in numbered(9).why
    cell = nnx.GRUCell(1, 3, rngs=nnx.Rngs(0))
    xs = jnp.linspace(0.0, 1.0, 4).reshape(1, 4, 1)
    visits, kept = nnx.RNN(cell, reverse=True)(xs), nnx.RNN(cell, reverse=True, keep_order=True)(xs)
    np.testing.assert_array_equal(visits[:, ::-1], kept)
    np.testing.assert_allclose(visits, nnx.RNN(cell)(xs[:, ::-1]), rtol=1e-6)


# --- fix it -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("challenge", of(Kind.FIX), ids=name)
def test_the_broken_script_breaks_its_code_alone(challenge: Challenge):
    broken, mended = runs_of(challenge)
    assert broken_codes(broken) == (BROKEN[challenge.number],)
    grade = grade_fix(challenge, broken, mended)
    assert not grade.right
    assert not grade.counted, "it is as it was given: to look at what the check says is no try"
    assert title_of(BROKEN[challenge.number]) in grade.said[0].text


@pytest.mark.parametrize("challenge", of(Kind.FIX), ids=name)
def test_the_solution_is_clean_and_right_for_other_data(challenge: Challenge):
    _, mended = runs_of(challenge)
    assert answerable(challenge, runs_of(challenge))
    assert mended.answer.report.outcome is Outcome.OK
    assert broken_codes(mended) == ()
    assert mended.again is Again.RAN
    grade = grade_fix(challenge, mended, mended)
    assert (grade.right, grade.choice) == (True, RIGHT)
    for result in challenge.results:
        one, other = mended.values[result], mended.swapped[result]
        assert one
        assert other
        assert [leaf.values.tolist() for leaf in one] != [leaf.values.tolist() for leaf in other], (
            "what is typed in shows"
        )


# --- spot it ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("challenge", of(Kind.SPOT), ids=name)
def test_jax_is_silent_and_only_the_wrong_one_is_flagged(challenge: Challenge):
    wrong, right = runs_of(challenge)
    for one in (wrong, right):
        assert one.answer.report.error is None
        assert not [v for v in one.answer.report.violations if v.severity is Severity.ERROR]
    assert broken_codes(right) == (), "no false alarm"
    assert broken_codes(wrong) == (SPOTTED[challenge.number],)
    assert answerable(challenge, runs_of(challenge))


@pytest.mark.parametrize("challenge", of(Kind.SPOT), ids=name)
def test_a_number_on_the_wrong_program_shows_it(challenge: Challenge):
    wrong, right = runs_of(challenge)
    (proof,) = [v.proof for v in wrong.answer.report.broken]
    assert proof is not None
    assert proof.before != proof.expected
    assert proof.claim in proof_text(wrong)
    assert proof_text(right) == ""


@pytest.mark.parametrize("seed", [0, 1, 7])
@pytest.mark.parametrize("challenge", of(Kind.SPOT), ids=name)
def test_one_side_and_one_reason_are_right(challenge: Challenge, seed: int):
    runs, code = runs_of(challenge), SPOTTED[challenge.number]
    assert code in challenge.options
    wrong = challenge.side(seed)
    shown = challenge.shown(seed)
    assert shown[wrong] == challenge.program
    assert set(shown.values()) == {challenge.program, challenge.other}
    for side in Side:
        for option in challenge.options:
            grade = grade_spot(challenge, side, option, runs, seed)
            assert grade.right is (side is wrong and option == code)
            assert grade.choice == (option if side is wrong else OTHER_SIDE)
            assert grade.choice in choices_of(challenge)
            assert grade.counted
            assert any(proof_text(runs[0]) == one.text for one in grade.said) is grade.right


def test_the_wrong_one_stands_on_both_sides_for_some_class():
    for challenge in of(Kind.SPOT):
        assert {challenge.side(seed) for seed in range(20)} == set(Side)
