"""What can be typed or pasted, and where what cannot is at fault."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.base.limits import LIMITS
from core.inputs.parse import (
    DTYPES,
    UnreadableError,
    format_leaf,
    format_number,
    format_sequence,
    numpy_dtype,
    parse_leaf,
    parse_sequence,
    to_array,
)


def refusal(text: str, read=parse_sequence) -> str:
    with pytest.raises(UnreadableError) as caught:
        read(text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1, 2, 3", [1, 2, 3]),
        ("1\t2\t3", [1, 2, 3]),
        ("1 2 3", [1, 2, 3]),
        ("1;2;3", [1, 2, 3]),
        ("1\n2\n3\n", [1, 2, 3]),
        ("1,2\n3,4", [[1, 2], [3, 4]]),
        ("[1., 2]", [1.0, 2]),
        ("[[1], [2]]", [[1], [2]]),
        ("((1, 2), (3, 4))", [[1, 2], [3, 4]]),
        ("[[[1, 2]], [[3, 4]]]", [[[1, 2]], [[3, 4]]]),
        ("−1, +2, .5, 1e-3", [-1, 2, 0.5, 0.001]),
        ("true, False, 1", [True, False, 1]),
        ("1, 2,", [1, 2]),
        ("", []),
        ("  \n ", []),
        ("[]", []),
    ],
)
def test_reads(text, expected):
    numbers = parse_sequence(text)
    assert numbers.nested == expected
    assert numbers.shape == np.shape(expected)


def test_not_finite_numbers_are_numbers():
    array = to_array(parse_sequence("nan, inf, -Infinity, 1"), "float32")
    assert math.isnan(array[0])
    assert array[1:].tolist() == [math.inf, -math.inf, 1.0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1, x, 3", ("Row 1, column 2, character 4", "“x” is no number")),
        ("1, 2\n3, 4o", ("Row 2, column 2, character 4", "“4o” is no number")),
        ("1, 🙂", ("Row 1, column 2, character 4", "“🙂” is no number")),
        ("1,,3", ("Row 1, column 2, character 3", "no number here")),
        ("1, 2\n3", ("Row 2", "has 1 number, but the first one has 2")),
        ("[[1, 2], [3]]", ("Row 2", "has 1 number, but the first one has 2")),
        ("[1, [2]]", ("Row 2", "side by side")),
        ("[[1], [[1]]]", ("Row 2: has shape (1, 1), but the first one has (1,).",)),
        ("[[[1]], [[1, 2]]]", ("Row 2: has shape (1, 2), but the first one has (1, 1).",)),
        ("[[1], [2, 3]]", ("Row 2: has 2 numbers, but the first one has 1.",)),
        ('1, "', ('column 2, character 4: “"” is no number',)),
        ("[[[1], [2]], [[3], 4]]", ("index 1, 1", "side by side")),
        ("[1, 2", ("character 6", "never closed")),
        ("[1 2]", ("character 4", "comma")),
        ("[1,,2]", ("character 4", "comma")),
        ("[1, 2] 3", ("character 8", "“3”")),
        ("(1, 2]", ("character 6", "closes no bracket")),
        ("[[[[[1]]]]]", ("character 5", "more than 4")),
        ("__import__('os')", ("Row 1", "is no number")),
        ("0x10", ("is no number",)),
        ("1_000", ("is no number",)),
        ("١", ("is no number",)),
        ("9" * 5000, ("is no number", "…")),
        ("zeros(2, -1)", ("whole numbers", "-1")),
    ],
)
def test_refuses_with_the_place(text, said):
    message = refusal(text)
    for part in said:
        assert part in message
    assert len(message) < 200


def test_a_five_megabyte_paste_is_refused_at_once():
    message = refusal("1," * 2_500_000)
    assert "5000000" in message
    assert str(LIMITS["typed_text"].value) in message


@pytest.mark.parametrize("form", ["{}", "[{}]"])
def test_too_many_numbers_are_counted_not_read(form):
    limit = LIMITS["typed_numbers"].value
    assert parse_sequence(form.format(", ".join(["1"] * limit))).shape == (limit,)
    message = refusal(form.format(", ".join(["1"] * (limit + 1))))
    assert str(limit + 1) in message
    assert str(limit) in message


@pytest.mark.parametrize(
    ("text", "shape", "nested"),
    [
        ("0.", (), 0.0),
        ("0", (), 0),
        (" 3 ", (), 3),
        ("0, 0", (2,), [0, 0]),
        ("[0]", (1,), [0]),
        ("[[1, 2]]", (1, 2), [[1, 2]]),
        ("zeros(2, 4)", (2, 4), 0.0),
        ("ones((3,))", (3,), 1.0),
        ("zeros()", (), 0.0),
    ],
)
def test_leaf(text, shape, nested):
    numbers = parse_leaf(text)
    assert (numbers.shape, numbers.nested) == (shape, nested)
    assert type(numbers.nested) is type(nested)


@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0), (3, 0, 2), (1, 0)])
def test_an_array_without_elements_reads_back_in_its_shape(shape):
    assert parse_sequence(format_sequence(np.zeros(shape))).shape == shape


def test_a_byte_order_mark_is_no_part_of_the_first_number():
    assert parse_sequence("\ufeff1, 2\n3, 4").shape == (2, 2)


def test_a_leaf_must_be_typed():
    assert "Nothing is typed" in refusal("  ", parse_leaf)


def test_zeros_of_any_size_allocates_nothing():
    assert parse_leaf("zeros(1000000000)").size == 10**9


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(dtype):
    array = to_array(parse_sequence("0, 1, 1"), dtype)
    assert array.dtype == numpy_dtype(dtype)
    assert array.astype(float).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "dtype", "said"),
    [
        ("1, 2.5", "int32", ("At index 1", "2.5 is no whole number", "int32")),
        ("[[1, 2], [3, 300]]", "int8", ("index 1, 1", "300 does not fit int8 (-128 to 127)")),
        ("1, 2", "bool", ("At index 1", "2 is neither")),
        ("nan", "int32", ("nan has no value in int32",)),
        ("inf", "int8", ("inf has no value in int8",)),
        ("nan", "bool", ("nan is neither",)),
    ],
)
def test_what_a_dtype_cannot_hold_is_refused(text, dtype, said):
    with pytest.raises(UnreadableError) as caught:
        to_array(parse_sequence(text), dtype)
    for part in said:
        assert part in str(caught.value)


def test_a_whole_number_over_int32_stays_on_the_host_for_n504_to_speak_of():
    assert to_array(parse_sequence("3000000000"), "int32").dtype == np.int64
    assert to_array(parse_sequence("2147483647"), "int32").dtype == np.int32


def test_overflow_to_inf_is_what_jax_would_do():
    assert to_array(parse_sequence("1e39"), "float32")[0] == math.inf


@given(
    hnp.arrays(
        np.float32, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4), elements=st.floats(width=32)
    )
)
def test_formatted_numbers_read_back_the_same(array):
    again = to_array(parse_sequence(format_sequence(array)), "float32")
    if 0 in array.shape:
        assert again.size == 0
    else:
        np.testing.assert_array_equal(again, array)


@given(hnp.arrays(np.int32, hnp.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=3)))
def test_formatted_leaves_read_back_the_same(array):
    again = to_array(parse_leaf(format_leaf(array)), "int32")
    assert again.shape == array.shape
    np.testing.assert_array_equal(again, array)


@given(st.text(max_size=60))
def test_no_text_is_more_than_refused(text):
    for read in (parse_sequence, parse_leaf):
        try:
            numbers = read(text)
        except UnreadableError:
            continue
        assert numbers.filled or np.shape(numbers.nested) == numbers.shape


@pytest.mark.parametrize(("value", "text"), [(3.0, "3"), (np.float32(0.1), "0.1"), (True, "true"), (-7, "-7")])
def test_numbers_are_written_short(value, text):
    assert format_number(value) == text
