"""Every lesson as a learner goes through it: not done when a step opens, done when it is set up; its code runs."""

from __future__ import annotations

import doctest

import pytest

from core.lessons.checks import Check
from core.lessons.lesson import Lesson, LessonStep
from core.lessons.loader import lesson_of, lessons
from tests.support.lesson_pages import facts_of

STEPS = [
    pytest.param(lesson, step, id=f"{lesson.number}.{at}")
    for lesson in lessons()
    for at, step in enumerate(lesson.steps, 1)
]
CODE = [
    pytest.param(code, id=f"{lesson.number}-{at}")
    for lesson in lessons()
    for at, code in enumerate([*lesson.code, *(code for step in lesson.steps for code in step.code)], 1)
]
#: Titles as the issue names its topics, a word of each.
TOPICS = (
    "what scan does", "carry against ys", "shape and dtype", "weak-type", "pytrees", "(c, h)", "time and batch", "masks and padding",
    "keys and rngs", "gradients that vanish", "tracers", "empty sequences", "green",
)  # fmt: skip


def test_all_topics_are_there_in_order():
    assert [lesson.number for lesson in lessons()] == list(range(1, len(TOPICS) + 1))
    for lesson, topic in zip(lessons(), TOPICS, strict=True):
        assert topic in lesson.title.lower()
        assert 3 <= len(lesson.steps) <= 5
        assert lesson.documents
        assert lesson.intro


@pytest.mark.parametrize(("lesson", "step"), STEPS)
def test_a_step_is_open_at_first_and_done_when_it_is_set_up(lesson: Lesson, step: LessonStep):
    answer = step.question.answer if step.question else None
    opening = facts_of(step.opening)
    if step.checks:
        assert not step.done(opening, answer), "it would be done before anything was done"
    done = facts_of(step.setting, opening)
    assert step.done(done, answer), (
        done.codes,
        done.outcome,
        [check for check in step.checks if not check.holds(done)],
    )
    if step.question:
        assert not step.done(done)
        for wrong in set(step.question.choices) - {step.question.answer}:
            assert not step.done(done, wrong)
    else:
        assert not step.done(None)


@pytest.mark.parametrize("lesson", lessons(), ids=lambda lesson: str(lesson.number))
def test_a_lesson_breaks_something_and_mends_it(lesson: Lesson):
    kinds = [check.kind for step in lesson.steps for check in step.checks]
    assert "code" in kinds
    assert "fixed" in kinds


@pytest.mark.parametrize(("lesson", "step"), STEPS)
def test_a_task_is_short_enough_for_the_rail(lesson: Lesson, step: LessonStep):
    assert len(step.task) <= 170


@pytest.mark.parametrize("code", CODE)
def test_code_in_a_lesson_prints_what_it_says(code: str):
    examples = doctest.DocTestParser().get_doctest(code, {}, "lesson", None, 0)
    assert examples.examples, "code in a lesson shows what it prints, as a session with >>>"
    runner = doctest.DocTestRunner(verbose=False)
    said: list[str] = []
    runner.run(examples, out=said.append)
    assert not runner.failures, "".join(said)


def test_the_first_step_of_lesson_3_names_its_mistake():
    lesson = lesson_of(3)
    assert lesson is not None
    assert lesson.steps[0].checks == (Check("code", "S103"),)
    assert lesson_of(99) is None
