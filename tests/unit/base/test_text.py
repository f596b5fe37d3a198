"""Templates are filled by name; a field that is missing is a fault of ours and is loud."""

import pytest

from core.base.text import fill


def test_fields_are_put_in() -> None:
    assert fill("{path} is {got}", path="carry[0]", got="float32[2]") == "carry[0] is float32[2]"


def test_values_with_braces_are_left_alone() -> None:
    assert fill("{path}", path="carry['{x}']") == "carry['{x}']"


def test_a_missing_field_raises() -> None:
    with pytest.raises(KeyError):
        fill("{path} is {got}", path="carry")
