"""A place is looked up by role, first with its path, then without, then by the next role."""

from core.base.places import Field, Places

INIT, MEAN, STEP = Field("scan_init", "init"), Field("scan_init_mean", "mean"), Field("scan_step", "step")
PLACES = Places({"init": INIT, "init:carry['mean']": MEAN, "step": STEP})


def test_the_narrow_place_wins() -> None:
    assert PLACES.find("init:carry['mean']") == MEAN


def test_an_unknown_path_falls_back_to_its_role() -> None:
    assert PLACES.find("init:carry['n']") == INIT


def test_the_next_role_is_tried() -> None:
    assert PLACES.find("return:carry", "step") == STEP


def test_nothing_known_is_none() -> None:
    assert PLACES.find("xs", "length") is None
