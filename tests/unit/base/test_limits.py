"""One table of limits; the environment overrides it, and a wrong override is refused without repeating its value."""

import pytest

from core.base.limits import read_limits


def test_defaults_are_the_contract() -> None:
    limits = read_limits({})
    names = ("length", "hidden", "batch", "features", "elements", "typed_numbers")
    assert [limits[n].value for n in names] == [512, 256, 64, 128, 262_144, 20_000]


def test_every_limit_says_its_unit_and_why() -> None:
    assert all(limit.unit and limit.why for limit in read_limits({}).values())


def test_the_environment_overrides_one_limit_and_leaves_the_rest() -> None:
    limits = read_limits({"CARRY_LAB_LENGTH": "64"})
    assert (limits["length"].value, limits["hidden"].value) == (64, 256)


@pytest.mark.parametrize("text", ["0", "-3", "many", "1e3", ""])
def test_a_wrong_override_is_named_but_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="CARRY_LAB_LENGTH must be a positive whole number") as caught:
        read_limits({"CARRY_LAB_LENGTH": text})
    assert not text or text not in str(caught.value)
