"""Challenges without end, over seeds: the same twice, the right answer right, a wrong one wrong, and small.

The answers are found by running the programs in this process, as the command line's check does; `tests/unit/challenges` runs
those of the reviewed ones in the step language.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.outcome import Outcome
from core.base.violation import Severity
from core.challenges.challenge import Challenge, Kind, Side, What
from core.challenges.fields import LAST, SEEDS
from core.challenges.generate import TEMPLATES, generated, made
from core.challenges.grading import (
    answer_text,
    answerable,
    broken_codes,
    grade_fix,
    grade_predict,
    grade_spot,
    leaf_of,
    proof_text,
    title_of,
)
from core.challenges.make_spot import ALIKE
from core.doctor import grade_job
from core.doctor.check import PLAIN
from core.doctor.grade_job import Again, Graded
from core.doctor.job import answer_of

SEED, NUMBER = st.integers(0, SEEDS), st.integers(1, LAST)
#: Each example runs one or two programs: fewer of them here than where nothing is run.
FEW = settings(max_examples=max(10, settings().max_examples // 5))
#: Numbers of one answer, characters of it, and seconds of a core for one program, whatever else the machine is doing.
MOST_NUMBERS, MOST_CHARACTERS, MOST_SECONDS = 40, 60, 10.0


def templates(kind: Kind) -> st.SearchStrategy[int]:
    return st.integers(0, len(TEMPLATES[kind]) - 1)


@cache
def runs_of(challenge: Challenge) -> tuple[Graded, ...]:
    """What its programs give; each in bounded time."""
    out = []
    for request in challenge.requests():
        start = time.process_time()
        out.append(grade_job.read(json.loads(json.dumps(grade_job.handle(request, PLAIN, answer_of)))))
        assert time.process_time() - start < MOST_SECONDS
    return tuple(out)


@given(seed=SEED, number=NUMBER)
def test_a_seed_and_a_number_make_the_same_challenge_every_time(seed: int, number: int):
    one, again = generated(seed, number), generated(seed, number)
    assert asdict(one) == asdict(again)
    assert one.key == f"more-{seed}-{number}"
    assert len(one.program) + len(one.other) < 2_400
    assert one.side(seed) is again.side(seed)


@given(seed=SEED, number=NUMBER, template=templates(Kind.SPOT))
def test_options_are_four_codes_in_an_order_that_tells_nothing(seed: int, number: int, template: int):
    one = made(Kind.SPOT, template, seed, number)
    assert len(set(one.options)) == 4
    assert list(one.options) == sorted(one.options)
    assert all(title_of(code) for code in one.options)
    assert one.program != one.other


@FEW
@given(seed=SEED, number=NUMBER, template=templates(Kind.PREDICT), data=st.data())
def test_what_is_predicted_right_is_right_and_what_is_off_is_wrong(
    seed: int, number: int, template: int, data: st.DataObject
):
    one = made(Kind.PREDICT, template, seed, number)
    (run,) = runs_of(one)
    assert run.answer.report.error is None
    assert not [v for v in run.answer.report.violations if v.severity is Severity.ERROR]
    right = [answer_text(ask, run) for ask in one.asks]
    assert grade_predict(one, right, run).right
    assert all(len(answer) <= MOST_CHARACTERS for answer in right)
    field = data.draw(st.integers(0, len(one.asks) - 1))
    ask, leaf = one.asks[field], leaf_of(one.asks[field], run.values)
    assert leaf.values.size <= MOST_NUMBERS or ask.what is not What.VALUE
    wrong = list(right)
    match ask.what:
        case What.SHAPE:
            wrong[field] = str((*leaf.values.shape, data.draw(st.integers(0, 9))))
        case What.DTYPE:
            wrong[field] = data.draw(
                st.sampled_from(["float32", "int32", "bool", "int8", "bfloat16"]).filter(lambda d: d != leaf.dtype)
            )
        case What.VALUE:
            moved = np.array(leaf.values, np.float64)
            assert np.isfinite(moved).all()
            flat = moved.reshape(-1)
            flat[data.draw(st.integers(0, moved.size - 1))] += data.draw(
                st.sampled_from([-2.0, -1.0, -0.25, 0.25, 1.0, 2.0])
            )
            wrong[field] = str(moved.tolist())
    grade = grade_predict(one, wrong, run)
    assert not grade.right
    assert [said.field for said in grade.said if not said.right] == [field]
    assert grade.counted


@FEW
@given(seed=SEED, number=NUMBER, template=templates(Kind.FIX))
def test_a_broken_script_is_broken_and_its_solution_is_right(seed: int, number: int, template: int):
    one = made(Kind.FIX, template, seed, number)
    broken, mended = runs_of(one)
    assert answerable(one, (broken, mended))
    assert len(broken_codes(broken)) == 1
    assert not grade_fix(one, broken, mended).right
    assert mended.answer.report.outcome is Outcome.OK
    assert mended.again is Again.RAN
    assert grade_fix(one, mended, mended).right
    for result in one.results:
        leaves, others = mended.values[result], mended.swapped[result]
        assert sum(leaf.values.size for leaf in leaves) <= MOST_NUMBERS
        assert all(np.isfinite(leaf.values).all() for leaf in (*leaves, *others))
    # What was typed in gives the same with other data: it must be told from what is computed.
    assert not grade_fix(one, Graded(mended.answer, mended.values, Again.RAN, mended.values), mended).right


@FEW
@given(seed=SEED, number=NUMBER, template=templates(Kind.SPOT))
def test_one_of_two_is_wrong_for_one_reason_and_a_number_shows_it(seed: int, number: int, template: int):
    one = made(Kind.SPOT, template, seed, number)
    runs = runs_of(one)
    assert answerable(one, runs)
    assert not [v for run in runs for v in run.answer.report.violations if v.severity is Severity.ERROR]
    assert [run.answer.report.error for run in runs] == [None, None]
    right = [(side, code) for side in Side for code in one.options if grade_spot(one, side, code, runs, seed).right]
    (code,) = broken_codes(runs[0])
    assert right == [(one.side(seed), code)]
    assert not any({code, other} in ALIKE for other in one.options if other != code), "no other could be meant"
    (violation,) = runs[0].answer.report.broken
    assert violation.silent
    assert violation.proof is not None
    assert violation.proof.before != violation.proof.expected
    assert proof_text(runs[0])


@pytest.mark.parametrize("kind", list(Kind))
def test_there_are_many_templates_of_each_kind(kind: Kind):
    assert len(TEMPLATES[kind]) >= 8
