"""One table of limits; the environment overrides it, and a wrong override is refused without repeating its value."""

import pytest

from core.base.limits import read_limits, unknown_variables


def test_defaults_are_the_contract() -> None:
    limits = read_limits({})
    names = ("length", "hidden", "batch", "features", "elements", "typed_numbers")
    assert [limits[n].value for n in names] == [512, 256, 64, 128, 262_144, 20_000]


def test_every_limit_says_its_unit_and_why() -> None:
    assert all(limit.unit and limit.why for limit in read_limits({}).values())


def test_the_environment_overrides_one_limit_and_leaves_the_rest() -> None:
    limits = read_limits({"CARRY_LAB_LENGTH": "64"})
    assert (limits["length"].value, limits["hidden"].value) == (64, 256)


@pytest.mark.parametrize("text", ["0", "000", "-3", "many", "1e3", "", "٣", "²"])
def test_a_wrong_override_is_named_but_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="CARRY_LAB_LENGTH must be a positive whole number") as caught:
        read_limits({"CARRY_LAB_LENGTH": text})
    assert not text or text not in str(caught.value)


def test_an_overridden_limit_remembers_what_it_would_be() -> None:
    limits = read_limits({"CARRY_LAB_LENGTH": " 64 "})
    assert (limits["length"].value, limits["length"].default, limits["hidden"].default) == (64, 512, None)


@pytest.mark.parametrize("text", ["1" * 16, "9" * 5_000])
def test_a_number_beyond_anything_is_named_but_not_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="CARRY_LAB_LENGTH must be a positive whole number of at most 15 digits"):
        read_limits({"CARRY_LAB_LENGTH": text})


def test_every_limit_can_be_overridden_by_its_own_variable() -> None:
    names = list(read_limits({}))
    variables = [limit.variable for limit in read_limits({}).values()]
    assert len(set(variables)) == len(names)
    changed = read_limits(dict.fromkeys(variables, "7"))
    assert {changed[name].value for name in names} == {7}


def test_a_misspelt_variable_is_found_with_the_one_that_was_meant() -> None:
    environ = {"CARRY_LAB_LENGHT": "1", "CARRY_LAB_LENGTH": "1", "CARRY_LAB_METRICS_PORT": "1", "OTHER": "1"}
    assert unknown_variables(environ, ("CARRY_LAB_METRICS_PORT",)) == (("CARRY_LAB_LENGHT", "CARRY_LAB_LENGTH"),)
    assert unknown_variables({"CARRY_LAB_ZZZZZZ": "1"}) == (("CARRY_LAB_ZZZZZZ", ""),)
