"""Addresses for a class: lessons and their steps, challenges, codes, scripts; what each opens, and how short it is."""

from __future__ import annotations

import random
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.limits import LIMITS
from core.catalogue.entries import entries, entry_of
from core.catalogue.fields import link_fields
from core.challenges import fields as challenges
from core.challenges.loader import reviewed
from core.doctor.gallery import EXAMPLES
from core.doctor.link import FIELDS as DOCTOR
from core.inputs.classroom import Classroom
from core.inputs.fields import FieldTable, Value
from core.lessons.fields import FIELDS as LESSONS
from core.lessons.lesson import Lesson
from core.lessons.loader import lesson_of, lessons
from core.lessons.pages import PAGES

#: Characters of a path with its query that a class types from a projector.
PROJECTOR = 40
BY_NUMBER = {"ids": lambda one: str(one.number)}


def typed(table: FieldTable, path: str) -> dict[str, Value]:
    """The values of a page that is opened by a path as somebody types it: without a version."""
    read = table.from_link(dict(parse_qsl(path.partition("?")[2])))
    assert read.refused == ()
    return read.values


# --- lessons --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lesson", lessons(), **BY_NUMBER)
def test_a_lessons_path_is_short_and_opens_it(lesson: Lesson):
    path = f"/lessons?n={lesson.number}"
    assert len(path) <= PROJECTOR
    assert lesson_of(int(typed(LESSONS, path)["number"])) is lesson
    link = LESSONS.to_link({"number": str(lesson.number)}).params
    assert len(f"/lessons?{urlencode(link)}") <= PROJECTOR


@pytest.mark.parametrize("lesson", lessons(), **BY_NUMBER)
def test_a_steps_path_is_short_and_opens_it(lesson: Lesson):
    for at, step in enumerate(lesson.steps, 1):
        settings = Classroom(lesson=(lesson.number, at))
        path = f"/{'' if step.opening.page == 'scan' else step.opening.page}?{urlencode(settings.params)}"
        assert len(path) <= PROJECTOR
        assert Classroom.of_link(dict(parse_qsl(path.partition("?")[2]))) == settings


@pytest.mark.parametrize("lesson", lessons(), **BY_NUMBER)
def test_what_a_step_sets_up_is_an_address_with_the_same_state(lesson: Lesson):
    for step in lesson.steps:
        page = PAGES[step.setting.page]
        for setting in (step.opening, step.setting):
            values = page.read(setting.params).values
            link = page.table(setting.params).to_link(values)
            assert not link.problem
            query = dict(parse_qsl(urlencode(link.params), keep_blank_values=True))
            again = page.read(query)
            assert again.refused == ()
            assert again.values == values


LESSON_TEXTS = (
    st.text(max_size=12)
    | st.sampled_from(["0", "-1", "3.", ".3", "3.0", "3.2.1", "03", "٣", "3.٢", "1e1", "9" * 10_000, "a" * 10_000, "3 ", "\x00"])
    | st.tuples(st.integers(-5, 2_000), st.integers(-5, 200)).map(lambda pair: f"{pair[0]}.{pair[1]}")
)  # fmt: skip


@given(LESSON_TEXTS)
def test_anything_for_a_lesson_is_one_or_is_refused_by_name(text: str):
    settings = Classroom.of_link({"lesson": text})
    if settings.lesson is None:
        assert not text or len(settings.refused) == 1
        assert all(one.startswith("The lesson: the link says") and len(one) < 300 for one in settings.refused)
    else:
        assert not settings.refused
        assert Classroom.of_link(settings.params) == settings
        assert settings.lesson[0] <= 999
        assert settings.lesson[1] <= 99


@given(st.dictionaries(st.just("n"), LESSON_TEXTS))
def test_anything_for_a_lessons_number_is_kept_in_bounds(params: dict[str, str]):
    read = LESSONS.from_link(params)
    number = str(read.values["number"])
    assert len(number) <= 8
    assert not read.refused or number == ""
    assert LESSONS.from_link(LESSONS.to_link(read.values).params).values == read.values


# --- challenges -----------------------------------------------------------------------------------------------------


def challenge_state() -> st.SearchStrategy[dict[str, Value]]:
    code = st.text("ABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=challenges.CODE, max_size=challenges.CODE)
    return st.fixed_dictionaries(
        {
            "set": st.sampled_from(list(map(str, challenges.SETS))),
            "seed": st.integers(0, challenges.SEEDS),
            "challenge": st.integers(0, challenges.LAST),
            "tally": st.just("") | code,
        }
    )


@given(challenge_state())
def test_a_challenges_path_is_short_and_opens_the_very_same(values: dict[str, Value]):
    path = challenges.short_link(values)
    # What the page offers: a set with its seed and tally, or one challenge.
    assert len(path) <= PROJECTOR or (values["challenge"] and values["tally"])
    again = typed(challenges.FIELDS, path)
    assert again == values
    name, seed, number = str(values["set"]), int(values["seed"]), int(values["challenge"])
    one = challenges.challenge_at(name, seed, number)
    other = challenges.challenge_at(str(again["set"]), int(again["seed"]), int(again["challenge"]))
    assert one == other
    assert challenges.challenges_of(name) == challenges.challenges_of(str(again["set"]))


@pytest.mark.parametrize("number", [one.number for one in reviewed()])
def test_each_reviewed_challenge_has_a_path_of_its_own(number: int):
    path = f"/challenges?c={number}"
    assert len(path) <= PROJECTOR
    values = typed(challenges.FIELDS, path)
    found = challenges.challenge_at(str(values["set"]), int(values["seed"]), int(values["challenge"]))
    assert found is not None
    assert found.number == number


# --- codes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [entry.code for entry in entries()])
def test_each_code_has_a_short_path(code: str):
    for name in ("c", "code"):
        path = f"/catalogue?{name}={code}"
        assert len(path) <= PROJECTOR
        entry = entry_of(str(typed(link_fields({name: code}), path)["code"]))
        assert entry is not None
        assert entry.code == code


# --- scripts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_a_short_path_of_its_own(name: str):
    link = DOCTOR.to_link({**DOCTOR.defaults(), "text": EXAMPLES[name].text})
    query = urlencode(link.params)
    assert len(f"/doctor?{query}") <= PROJECTOR
    assert DOCTOR.from_link(dict(parse_qsl(query))).values["text"] == EXAMPLES[name].text


LINES = st.sampled_from(
    ["import jax", "x = jnp.zeros((2, 4))", "# π — ≤ 🐛", "def step(c, x):\n    return c + x, c", "", "s = '''\t'''", "y = x @ w"]
)  # fmt: skip


@given(st.lists(LINES, max_size=500), st.randoms(use_true_random=False))
def test_a_script_travels_or_the_page_says_that_it_does_not(lines: list[str], rnd: random.Random):
    text = "\n".join(lines)
    if rnd.random() < 0.2:
        text += "".join(chr(rnd.randrange(33, 0x2FFF)) for _ in range(rnd.randrange(6_000)))
    link = DOCTOR.to_link({**DOCTOR.defaults(), "text": text})
    if link.problem:
        assert not link.params
        assert len(text.encode()) > 8_192
        return
    query = urlencode(link.params)
    assert len(query) <= 2 * LIMITS["url_text"].value
    values = DOCTOR.from_link(dict(parse_qsl(query, keep_blank_values=True))).values
    assert values["text"] == text or not text.strip()
