"""The result sheet: what was tried and what ran it, and nothing about anybody."""

from __future__ import annotations

import csv
import io
import json
from importlib.metadata import version

import jax

from core.challenges.challenge import Kind, Level
from core.challenges.generate import generated
from core.challenges.sheet import COLUMNS, Attempt, as_csv, as_json, rows
from tests.unit.challenges.running import numbered

PREDICT, FIX = numbered(1), numbered(4)


def some() -> list[Attempt]:
    return [
        Attempt.of(PREDICT, 7).hinted(1).tried(False).hinted(2).tried(True),
        Attempt.of(FIX, 7).tried(False).given_up(),
        Attempt.of(numbered(7), 7).hinted(2),
        Attempt.of(generated(7, 3), 7).tried(True),
    ]


def table(data: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))


def test_an_attempt_counts_tries_and_hints_until_it_is_over():
    one = Attempt.of(PREDICT, 7)
    assert (one.tries, one.hints, one.right, one.shown, one.over) == (0, 0, False, False, False)
    one = one.tried(False).hinted(2).hinted(1).tried(True)
    assert (one.tries, one.hints, one.right, one.over) == (2, 2, True, True)
    assert one.tried(False) == one.given_up() == one.hinted(3) == one


def test_what_was_shown_is_not_solved_any_more():
    one = Attempt.of(PREDICT, 7).given_up()
    assert one.over
    assert not one.right
    assert one.tried(True) == one


def test_csv_has_a_row_for_what_was_tried_or_shown():
    first, second, third = table(as_csv(some()))
    assert tuple(first) == COLUMNS
    assert first == {
        "challenge": "1", "kind": "predict", "level": "1", "tries": "2", "hints": "2", "solution_shown": "0",
        "result": "right", "seed": "7", "jax": version("jax"), "jaxlib": version("jaxlib"), "flax": version("flax"),
    }  # fmt: skip
    assert (second["challenge"], second["solution_shown"], second["result"]) == ("4", "1", "wrong")
    assert third["challenge"] == "more-7-3"


def test_json_says_the_same_and_pins_the_versions_once():
    sheet = json.loads(as_json(some()))
    assert sheet["schema"] == 1
    assert sheet["versions"]["jax"] == jax.__version__
    assert set(sheet["versions"]) == {"jax", "jaxlib", "flax"}
    for one, row in zip(sheet["results"], table(as_csv(some())), strict=True):
        assert one["solution_shown"] is (row["solution_shown"] == "1")
        assert {name: str(value) for name, value in one.items() if name != "solution_shown"} == {
            name: value for name, value in row.items() if name in one and name != "solution_shown"
        }


def test_an_empty_sheet_is_a_sheet():
    assert table(as_csv([])) == []
    assert as_csv([]).decode().strip().split(",") == list(COLUMNS)
    assert json.loads(as_json([]))["results"] == []


def test_nothing_in_it_is_about_a_person_or_was_typed():
    kinds = {"challenge": str, "kind": str, "level": int, "tries": int, "hints": int, "solution_shown": bool,
             "result": str, "seed": int, "jax": str, "jaxlib": str, "flax": str}  # fmt: skip
    for row in rows(some()):
        assert {name: type(value) for name, value in row.items()} == kinds
        assert row["kind"] in set(map(str, Kind))
        assert row["level"] in set(map(int, Level))
        assert row["result"] in {"right", "wrong"}


def test_no_cell_is_a_formula():
    for row in table(as_csv(some())):
        assert not any(value.startswith(("=", "+", "-", "@", "\t", "\r")) for value in row.values())
