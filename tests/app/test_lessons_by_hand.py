"""Each step of each lesson, done as its text says it: with the controls of the page, found by the words of the text.

The Doctor's workers are started in tests/e2e: there its steps are done.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from core.lessons.lesson import LessonStep
from core.lessons.loader import lesson_of
from tests.app.test_lessons import is_done, opened, ran, said

type Act = Callable[[AppTest, LessonStep], object]


def told(step: LessonStep, words: str) -> None:
    """The text of the step says so."""
    assert words in f"{step.task} {step.hint}", (words, step.task)


def press(label: str) -> Act:
    """A button that the text names by its label."""

    def act(at: AppTest, step: LessonStep) -> None:
        told(step, f"“{label}”")
        (button,) = [one for one in at.button if one.label == label]
        ran(button.click())

    return act


def pick(key: str, option: str) -> Act:
    """A choice of a list, by the words of the option."""

    def act(at: AppTest, step: LessonStep) -> None:
        told(step, option)
        box = at.selectbox(key=key)
        found = [n for n, one in enumerate(box.options) if one.removeprefix("✗ ").split(" (")[0] == option]
        assert len(found) == 1, box.options
        ran(box.select_index(found[0]))

    return act


def count(key: str, value: float) -> Act:
    """A number."""

    def act(at: AppTest, step: LessonStep) -> None:
        told(step, str(value))
        ran(at.number_input(key=key).set_value(value))

    return act


def type_in(key: str, text: str) -> Act:
    """A text."""

    def act(at: AppTest, step: LessonStep) -> None:
        ran(at.text_input(key=key).set_value(text))

    return act


def switch(key: str, on: bool) -> Act:
    """A switch."""

    def act(at: AppTest, step: LessonStep) -> None:
        told(step, "on" if on else "off")
        ran(at.checkbox(key=key).set_value(on))

    return act


def numbers(text: str) -> Act:
    """The table of xs: a test cannot type into its cells, so the text that they give is put in their place."""

    def act(at: AppTest, step: LessonStep) -> None:
        assert all(number in f"{step.task} {step.hint}" for number in text.split(", "))
        assert text.count(",") + 1 == at.number_input(key="scan_length").value
        at.session_state["scan:values"] = {**at.session_state["scan:values"], "numbers": text}
        at.session_state["scan_numbers"] = text
        ran(at)

    return act


def apply(at: AppTest, step: LessonStep) -> None:
    """The first fix on the first card."""
    assert "fix" in step.task.lower()
    ran(next(button for button in at.button if button.label.startswith("Apply: ")).click())


def answer(at: AppTest, step: LessonStep) -> None:
    """Each wrong choice, and then the right one."""
    assert step.question is not None
    choices = step.question.choices
    for choice in sorted(choices, key=lambda choice: choice == step.question.answer):
        (pills,) = [one for one in at.pills if one.key and one.key.startswith("lesson_answer_")]
        pills.set_value(choice)
        ran(at)
        right = choice == step.question.answer
        assert is_done(at) == right
        assert ("Not quite" in said(at)) != right


#: What is done in each step, in order; a step of another page, or of the Doctor, is where a list ends.
LESSONS: dict[tuple[int, int], tuple[tuple[Act, ...], ...]] = {
    (1, 1): (
        (pick("scan_step", "Returns no pair"),),
        (apply,),
        (count("scan_length", 4), answer),
        (switch("scan_reverse", on=True),),
    ),
    (2, 1): ((answer,), (press("let the carry grow"),), (apply,), (pick("scan_step", "Fibonacci"),)),
    (3, 1): ((pick("scan_step", "Carry gains an axis"),), (apply,), (press("int init"),), (apply,)),
    (4, 1): (
        (type_in("scan_init", "0"), pick("scan_init_dtype", "int32")),
        (switch("scan_init_weak", on=False),),
        (pick("scan_init_dtype", "float32"),),
        (answer,),
    ),
    (5, 1): ((pick("scan_step", "Drops a key"),), (apply,), (pick("scan_step", "List for tuple"),), (apply,)),
    (6, 1): (
        (press("one array for the pair"),),
        (apply,),
        (press("(h, c) for (c, h)"),),
        (apply,),
        (pick("lstm_cell", "GRUCell"),),
    ),
    (7, 1): ((press("batch-major"),), (apply,)),
    (7, 3): ((press("wrong axis order"),), (apply,)),
    (8, 1): (
        (press("padding not masked"),),
        (apply,),
        (press("a length of 0"),),
        (apply,),
        (pick("sequence_padding", "zeros"),),
    ),
    (9, 1): ((press("no rngs to the cell"),), (apply,)),
    (10, 1): (
        (press("let it vanish"),),
        (press("make it remember (forget bias 3)"),),
        (press("let it explode"),),
        (),
        (apply,),
    ),
    (12, 1): (
        (count("scan_length", 0),),
        (pick("scan_step", "Fibonacci"), type_in("scan_length_argument", "")),
        (type_in("scan_length_argument", "10"),),
        (pick("scan_step", "Running sum"), pick("scan_source", "generator"), count("scan_length", 100000)),
        (count("scan_length", 100),),
    ),
    (13, 1): (
        (count("scan_length", 2), numbers("1e30, 1e30")),
        (numbers("2, 3"),),
        (pick("scan_step", "Running sum"), type_in("scan_init", "16777216")),
        (pick("scan_dtype", "int32"), pick("scan_init_dtype", "int32")),
        (answer,),
    ),
}


@pytest.mark.parametrize(("lesson", "first"), LESSONS, ids=lambda one: str(one))
def test_a_lesson_is_done_by_what_its_text_says(lesson: int, first: int):
    found = lesson_of(lesson)
    assert found is not None
    page = found.steps[first - 1].opening.page
    at = opened({"lesson": f"{lesson}.{first}"}, None if page == "scan" else f"pages/views/{page}.py")
    for number, acts in enumerate(LESSONS[lesson, first], first):
        step = found.steps[number - 1]
        assert f"step {number} of {len(found.steps)}" in said(at)
        assert not is_done(at), f"{lesson}.{number} is done before anything was done"
        for act in acts:
            act(at, step)
        if not acts:
            ran(at.button(key="lesson_set_up").click())
        assert is_done(at), f"{lesson}.{number}"
        if number < len(found.steps):
            ran(at.button(key="lesson_next").click())
