"""Scripts that people mend: whatever is honestly right is right, and a way round the task is refused.

Each is run in the step language, twice, as a worker runs it.
"""

from __future__ import annotations

import pytest

from core.challenges.grading import WRONG, grade_fix
from tests.unit.challenges.repairs import CHEATS, HONEST, edited
from tests.unit.challenges.running import numbered, run, runs_of


@pytest.mark.parametrize(("number", "repair"), [(n, name) for n, all_ in HONEST.items() for name in all_])
def test_an_honest_repair_is_right(number: int, repair: str):
    challenge = numbered(number)
    text = edited(challenge.program, HONEST[number][repair])
    grade = grade_fix(challenge, run(challenge.attempt(text)), runs_of(challenge)[1])
    assert grade.right, [one.text for one in grade.said]


@pytest.mark.parametrize(("number", "cheat"), [(n, name) for n, all_ in CHEATS.items() for name in all_])
def test_a_way_round_the_task_is_refused_and_says_why(number: int, cheat: str):
    challenge = numbered(number)
    edits, says = CHEATS[number][cheat]
    grade = grade_fix(challenge, run(challenge.attempt(edited(challenge.program, edits))), runs_of(challenge)[1])
    assert (grade.right, grade.counted, grade.choice) == (False, True, WRONG)
    assert says in " ".join(one.text for one in grade.said)


def test_each_fix_has_three_honest_repairs_and_two_ways_round_it():
    assert all(len(repairs) >= 3 for repairs in HONEST.values())
    assert all(len(cheats) >= 2 for cheats in CHEATS.values())
