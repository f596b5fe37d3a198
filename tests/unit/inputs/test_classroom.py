"""What a teacher's link may say around a page, and what it may not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.catalogue.fields import FIELDS as CATALOGUE
from core.challenges.fields import FIELDS as CHALLENGES
from core.doctor.link import FIELDS as DOCTOR
from core.inputs import cell_fields, gradient_fields, scan_fields, sequence_fields
from core.inputs.class_panels import hideable
from core.inputs.classroom import EXAMPLES, MOST, NAMES, Classroom
from core.inputs.fields import FieldTable
from core.steps.library import STEPS

KEY = st.from_regex(r"[a-z]{1,9}_[a-z0-9_]{1,20}", fullmatch=True)
KEYS = st.lists(KEY, max_size=MOST, unique=True).map(tuple)


@given(KEYS, KEYS, st.booleans())
def test_what_is_written_is_read_back(hide, lock, present):
    settings = Classroom(hide, lock, present)
    assert Classroom.of_link(settings.params) == settings
    assert not Classroom.of_link(settings.params).refused


@given(st.dictionaries(st.sampled_from(NAMES), st.text(max_size=400)))
def test_anything_in_an_address_is_read_or_refused_and_never_raises(params):
    settings = Classroom.of_link(params)
    assert len(settings.hide) <= MOST
    assert len(settings.lock) <= MOST
    assert all(len(sentence) < 400 for sentence in settings.refused)
    assert Classroom.of_link(settings.params) == settings


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"hide": "scan_length,<script>"}, "no key of a control"),
        ({"lock": ",".join(f"scan_a{n}" for n in range(MOST + 1))}, f"more than {MOST}"),
        ({"present": "yes"}, "0 or 1"),
    ],
)
def test_a_refusal_says_what_and_why(params, said):
    (sentence,) = Classroom.of_link(params).refused
    assert said in sentence


def fields_of(page: str) -> FieldTable | None:
    return {
        "scan": scan_fields.scan_fields({}),
        "lstm": cell_fields.FIELDS,
        "sequence": sequence_fields.sequence_fields({}),
        "gradients": gradient_fields.FIELDS,
        "doctor": DOCTOR,
        "challenges": CHALLENGES,
        "catalogue": CATALOGUE,
    }.get(page)


@pytest.mark.parametrize("page", EXAMPLES)
def test_a_refused_key_is_told_with_one_of_the_page_itself(page):
    (sentence,) = Classroom.of_link({"hide": "?"}, page).refused
    assert sentence.endswith(f"such as {EXAMPLES[page]}. The default is used.") or EXAMPLES[page] in sentence
    table = fields_of(page)
    assert EXAMPLES[page] in hideable(page, () if table is None else table.fields)


def test_a_page_without_controls_gets_the_first_pages_example():
    (sentence,) = Classroom.of_link({"lock": "?"}, "status").refused
    assert "scan_length" in sentence


def test_nothing_is_set_by_an_address_that_says_nothing():
    assert Classroom.of_link({}) == Classroom()
    assert Classroom().params == {}


def tables() -> list[FieldTable]:
    return [cell_fields.FIELDS, *(scan_fields.scan_fields({"step": step}) for step in STEPS)]


def test_no_page_uses_the_names_of_the_class_for_itself():
    for table in tables():
        assert not {field.url for field in table.fields} & set(NAMES)


@pytest.mark.parametrize(
    ("text", "lesson", "again"), [("3", (3, 1), "3"), ("3.1", (3, 1), "3"), ("13.5", (13, 5), "13.5")]
)
def test_a_lesson_and_its_step_are_read_and_written(text: str, lesson: tuple[int, int], again: str):
    settings = Classroom.of_link({"lesson": text})
    assert settings.lesson == lesson
    assert settings.params == {"lesson": again}
    assert Classroom.of_link(settings.params) == settings


@pytest.mark.parametrize("text", ["0", "3.", ".2", "3.0", "-1", "3.2.1", "three", "٣", "1" * 400])
def test_what_is_no_lesson_is_refused_by_name(text: str):
    settings = Classroom.of_link({"lesson": text})
    assert settings.lesson is None
    (sentence,) = settings.refused
    assert sentence.startswith("The lesson: ")
    assert len(sentence) < 200
