"""The running set, the one before it, and the way back, which is checked."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.weights.refusal import Stage, WeightsRefused
from core.weights.shelf import Shelf
from tests.unit.weights.support import drawn, of_seed


def test_what_ran_before_is_kept_and_comes_back():
    seeds, first, second = of_seed(), drawn(seed=1), drawn(seed=2)
    shelf = Shelf().take(first, before=seeds)
    assert shelf == Shelf(first, seeds)
    shelf = shelf.take(second, before=first)
    assert shelf == Shelf(second, first)
    back = shelf.roll_back(second)
    assert back == Shelf(first, second)
    assert back.roll_back(first) == shelf


def test_taking_what_runs_already_keeps_the_way_back():
    shelf = Shelf(drawn(seed=1), of_seed())
    assert shelf.take(drawn(seed=1), before=drawn(seed=1)) is shelf


def test_the_control_forward_is_run_again_on_the_way_back(monkeypatch):
    first = drawn(seed=1)
    broken = replace(first, leaves=drawn(seed=2).leaves)
    shelf = Shelf(drawn(seed=2), broken)
    with pytest.raises(WeightsRefused) as caught:
        shelf.roll_back(drawn(seed=2))
    assert caught.value.stage is Stage.CONTROL


def test_there_is_no_way_back_from_nothing():
    with pytest.raises(WeightsRefused):
        Shelf().roll_back(of_seed())


def test_back_to_the_seed_can_itself_be_rolled_back():
    first = drawn(seed=1)
    shelf = Shelf(first, of_seed()).to_seed(first)
    assert shelf.running is None
    assert shelf.roll_back(of_seed()).running == first


def test_a_set_is_found_by_the_hash_of_a_link():
    first, seeds = drawn(seed=1), of_seed()
    shelf = Shelf(first, seeds)
    assert shelf.find(first.in_link) is first
    assert shelf.find(seeds.in_link) is seeds
    assert shelf.find("") is None
    assert shelf.find("0" * 16) is None
