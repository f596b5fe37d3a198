"""Challenges without end: the same everywhere, all templates in turn, texts that are filled."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from core.challenges.challenge import Challenge, Kind
from core.challenges.fields import FIELDS, LINK, challenge_at, challenges_of, neighbours, short_link
from core.challenges.generate import MORE, TEMPLATES, TURNS, generated, made, template_of

ROOT = Path(__file__).resolve().parents[3]
PRINT = """
import hashlib, json, sys
from dataclasses import asdict
from core.challenges.generate import generated
text = json.dumps([asdict(generated(seed, n)) for seed in (0, 7, 99) for n in range(1, 31)])
print(hashlib.sha256(text.encode()).hexdigest())
"""


def as_text(challenge: Challenge) -> str:
    return json.dumps(asdict(challenge))


def test_another_process_with_another_hash_seed_makes_the_same():
    text = json.dumps([asdict(generated(seed, n)) for seed in (0, 7, 99) for n in range(1, 31)])
    here = hashlib.sha256(text.encode()).hexdigest()
    for hash_seed in ("12345",):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", PRINT], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == here


def test_the_kinds_take_turns_and_every_template_comes_before_one_comes_again():
    for seed in (0, 3):
        for at, kind in enumerate(TURNS):
            count = len(TEMPLATES[kind])
            numbers = [at + 1 + len(TURNS) * turn for turn in range(2 * count)]
            assert all(generated(seed, n).kind is kind for n in numbers)
            for half in (numbers[:count], numbers[count:]):
                assert {template_of(seed, n) for n in half} == {(kind, t) for t in range(count)}


def test_seeds_and_numbers_make_others():
    texts = {generated(seed, n).program for seed in range(12) for n in range(1, 25)}
    assert len(texts) > 0.95 * 12 * 24


@pytest.mark.parametrize("number", [0, -1])
def test_there_is_none_below_one(number: int):
    with pytest.raises(ValueError):
        generated(0, number)
    assert challenge_at(MORE, 0, number) is None


@pytest.mark.parametrize(("kind", "template"), [(k, t) for k in Kind for t in range(len(TEMPLATES[k]))])
def test_texts_are_filled_and_programs_are_python(kind: Kind, template: int):
    for seed in range(25):
        one = made(kind, template, seed, 1)
        for text in (one.title, one.story, one.why, *one.hints):
            assert text.strip()
            assert not set("{}$") & set(text)
            assert text.count("`") % 2 == 0
        for program in filter(None, (one.program, one.other)):
            assert "$" not in program
            compile(program, "made", "exec")
            assert len(program) < 1_200
        assert one.documents
        assert 2 <= len(one.hints) <= 3
        for result in one.results:
            assert f"`{result}`" in one.story


def test_a_seed_has_all_levels():
    assert {generated(5, n).level for n in range(1, 60)} == {1, 2, 3}


# --- links ------------------------------------------------------------------------------------------------------------


def test_links_are_short_enough_for_a_board():
    longest = {"set": "predict", "seed": 99, "challenge": 999, "tally": "ABCD"}
    for name in FIELDS.field("set").options:
        for values in (
            {"set": name, "seed": 99, "challenge": 0, "tally": ""},
            {**longest, "set": name, "challenge": 0},
        ):
            link = short_link({**FIELDS.defaults(), **values})
            assert len(link) <= LINK, link
    assert short_link({**FIELDS.defaults(), "challenge": 17}) == "/challenges?c=17"
    assert short_link(FIELDS.defaults()) == "/challenges"


def test_a_link_is_read_back():
    values = {"set": "more", "seed": 7, "challenge": 12, "tally": "ABCD"}
    read = FIELDS.from_link(FIELDS.to_link(values).params)
    assert read.refused == ()
    assert read.values == values


def test_the_challenges_of_a_set_follow_each_other():
    for name in ("all", "easy", "mid", "hard", "predict", "fix", "spot"):
        numbers = [one.number for one in challenges_of(name)]
        assert len(numbers) >= 6
        assert neighbours(name, numbers[0])[0] == 0
        assert neighbours(name, numbers[-1])[1] == 0
        at = numbers[0]
        walked = [at]
        while at := neighbours(name, at)[1]:
            walked.append(at)
        assert walked == numbers
    assert neighbours(MORE, 1) == (0, 2)
    assert neighbours("easy", 29) == (0, challenges_of("easy")[0].number)
    assert challenge_at("easy", 0, 29) == challenge_at("all", 3, 29)
    assert challenge_at("all", 0, 999) is None
