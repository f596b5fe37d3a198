"""Whatever stands in an address: every page opens, says what it could not have, and goes on with its defaults."""

from __future__ import annotations

import html
import random
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from core.catalogue import fields as catalogue_fields
from core.challenges import fields as challenge_fields
from core.doctor import link as doctor_link
from core.inputs import cell_fields, gradient_fields, scan_fields, sequence_fields
from core.lessons import fields as lesson_fields

ROOT = Path(__file__).resolve().parents[2]
TABLES = {
    "scan": scan_fields.scan_fields({}),
    "lstm": cell_fields.FIELDS,
    "sequence": sequence_fields.FIELDS,
    "gradients": gradient_fields.FIELDS,
    "doctor": doctor_link.FIELDS,
    "catalogue": catalogue_fields.FIELDS,
    "lessons": lesson_fields.FIELDS,
    "challenges": challenge_fields.FIELDS,
}
HOSTILE = {
    "ten kilobytes": "a" * 10_240,
    "digits": "9" * 10_240,
    "nul": "\x00",
    # What an address's %ED%A0%80 is by the time that a page sees it.
    "half a character": "\ufffd",
    "right to left": "\u202e\u2066fdp.exe",
    "encoded twice": "%2531%2500",
    "markup": "<script>alert(1)</script>**[x](javascript:1)",
    "template": "{limit.__class__}",
    "brackets": "[" * 3_000,
    "large": "zeros(99999999999)",
    "packed": "eJwDAAAAAAE",
    "negative": "-1",
    "nan": "nan",
}


def opened(page: str, query: dict[str, str | list[str]]) -> AppTest:
    at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=120)
    if page != "scan":
        at.run()
    for name, value in query.items():
        at.query_params[name] = value
    if page != "scan":
        at.switch_page(f"pages/views/{page}.py")
    at.run()
    assert not at.exception, at.exception
    assert not at.error, [error.value for error in at.error]
    return at


def said(at: AppTest) -> str:
    return html.unescape(" ".join(element.proto.body for element in at.get("html")))


@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("page", TABLES)
def test_a_hostile_value_in_every_name_at_once(page: str, what: str):
    value = HOSTILE[what]
    names = [field.url for field in TABLES[page].fields]
    at = opened(page, dict.fromkeys([*names, "s", "e", "hide", "lock", "present", "lesson", value[:40] or "x"], value))
    assert "the link says" in said(at) or "The link names" in said(at)
    assert "<script>alert" not in " ".join(element.proto.body for element in at.get("html"))
    assert "The lesson: the link says" in said(at)
    assert "lesson" not in dict(at.query_params)
    at.run()
    assert not at.exception


@pytest.mark.parametrize("page", TABLES)
def test_names_that_are_none_repeated_ones_and_another_version(page: str):
    first = TABLES[page].fields[0].url
    at = opened(page, {"v": "7", "nothing": "1", "at_all": "2", first: ["x", "y"]})
    text = said(at)
    assert "another version (7)" in text
    assert "nothing" in text
    assert f"gives “{first}” 2 times" in text


@pytest.mark.parametrize(
    ("page", "name", "given", "reason"),
    [
        ("lessons", "n", "99", "there is no such lesson"),
        ("lessons", "n", "0", "there is no such lesson"),
        ("lessons", "n", "-1", "there is no such lesson"),
        ("lessons", "n", "٣", "there is no such lesson"),
        ("lessons", "n", "3.2", "there is no such lesson"),
        ("lessons", "n", "3" * 9, "more than a link may hold"),
        ("challenges", "c", "998", "there is no such challenge"),
        ("challenges", "c", "-1", "between"),
        ("challenges", "c", "1000", "between"),
        ("challenges", "seed", "100", "between"),
        ("challenges", "s", "hardest", "none of its choices"),
        ("catalogue", "c", "S999", "there is no such code"),
    ],
)
def test_what_is_not_there_is_refused_by_name_and_the_list_is_shown(page: str, name: str, given: str, reason: str):
    at = opened(page, {name: given})
    text = said(at) + " ".join(warning.value for warning in at.warning)
    assert given[:24] in text
    assert reason in text
    first = {"lessons": "lessons_read_1", "challenges": "challenges_start", "catalogue": "catalogue_open_S101"}[page]
    keys = {button.key for button in at.button}
    assert first in keys, keys


@pytest.mark.parametrize(
    ("path", "page", "key"),
    [
        ({"n": "3"}, "lessons", "lessons_begin"),
        ({"c": "3"}, "challenges", "challenges_hint"),
        ({"c": "S104"}, "catalogue", "catalogue_all"),
        ({"code": "S104"}, "catalogue", "catalogue_all"),
    ],
)
def test_a_short_path_opens_what_it_names(path: dict[str, str], page: str, key: str):
    at = opened(page, dict(path))
    assert any((button.key or "").startswith(key) for button in at.button), [button.key for button in at.button]
    assert "the link says" not in said(at)


def test_a_long_script_is_said_to_be_too_long_for_a_link_and_comes_as_a_file():
    # Ordinary code of 8 KB fits; this is code that cannot be compressed.
    letters = random.Random(0).choices("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", k=15_000)
    at = opened("doctor", {})
    at.session_state["doctor_text"] = "x = '" + "".join(letters) + "'"
    values = dict(at.session_state["doctor:values"])
    at.session_state["doctor:values"] = {**values, "text": at.session_state["doctor_text"]}
    at.run()
    assert not at.exception
    assert "more than a link holds" in said(at)
    assert any(button.key == "doctor_long_script" for button in at.get("download_button"))
    assert "s" not in dict(at.query_params)


def test_a_script_of_eight_kilobytes_of_ordinary_code_fits_a_link():
    for file in sorted((ROOT / "core").rglob("*.py")):
        code = file.read_text(encoding="utf-8")[:8_192]
        values = {**doctor_link.FIELDS.defaults(), "text": code}
        link = doctor_link.FIELDS.to_link(values)
        assert not link.problem, file
        assert doctor_link.FIELDS.from_link(link.params).values == values or not code.strip()
