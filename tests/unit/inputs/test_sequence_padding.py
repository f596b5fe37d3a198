"""Lengths and masks as text: read, written, toggled, and what becomes of them when B or T is moved."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.limits import LIMITS
from core.inputs.parse import UnreadableError
from core.inputs.sequence_padding import (
    default_lengths,
    fitted_lengths,
    fitted_mask,
    is_given,
    read_lengths,
    read_mask,
    toggle,
    valid_steps,
    written_lengths,
    written_mask,
)

SIZES = st.tuples(st.integers(1, 6), st.integers(1, 12))
MASKS = SIZES.flatmap(
    lambda size: st.lists(
        st.lists(st.booleans(), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)

# --- lengths ----------------------------------------------------------------------------------------------------------


def test_the_opening_is_a_ragged_batch():
    assert default_lengths(3, 8) == "8, 5, 3"


@given(st.integers(1, LIMITS["batch"].value), st.integers(1, LIMITS["length"].value))
def test_default_lengths_are_one_each_from_one_to_t_and_never_rise(batch, length):
    lengths = read_lengths(default_lengths(batch, length))
    assert len(lengths) == batch
    assert lengths[0] == length
    assert all(1 <= n <= length for n in lengths)
    assert sorted(lengths, reverse=True) == list(lengths)


@pytest.mark.parametrize(("batch", "length"), [(3, 0), (0, 8), (-1, 8), (10**12, 8), (3, 10**12)])
def test_there_are_no_default_lengths_where_nothing_is_made(batch, length):
    assert default_lengths(batch, length) == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("8, 5, 3", (8, 5, 3)),
        ("8 5\n3", (8, 5, 3)),
        ("[8; 5; 3]", (8, 5, 3)),
        ("−1, 0, 99", (-1, 0, 99)),
        ("2.5", (2.5,)),
        ("", None),
        (" , ", None),
    ],
)
def test_lengths_are_read_as_they_are(text, want):
    got = read_lengths(text)
    assert got == want
    assert got is None or [type(n) for n in got] == [type(n) for n in want]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("8, five", "Example 1: the length “five”"),
        ("nan", "Example 0"),
        ("true, 1", "Example 0"),
        ("1, 1e99", "Example 1: the length 1e99"),
    ],
)
def test_what_is_no_length_is_said_with_its_place(text, place):
    with pytest.raises(UnreadableError, match=place):
        read_lengths(text)


@given(st.lists(st.integers(-5, 600), min_size=1, max_size=9))
def test_written_lengths_are_read_back(lengths):
    assert read_lengths(written_lengths(lengths)) == tuple(lengths)


# --- masks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    ["11100, 10110", "11100\n10110\n", "111 00; 1011 0", "1*3 0*2, 1 0 1*2 0", "[[1, 1, 1, 0, 0], [1, 0, 1, 1, 0]]"],
)
def test_a_mask_is_read_in_each_of_its_spellings(text):
    want = [[True, True, True, False, False], [True, False, True, True, False]]
    assert read_mask(text, 2, 5).tolist() == want


@pytest.mark.parametrize("text", ["", " ", ",", "\n;"])
def test_no_rows_are_no_mask(text):
    assert read_mask(text, 2, 5) is None
    assert not is_given(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("11100, 1011", "The mask of example 1 has 4 steps, and the sequence has 5"),
        ("1, 10110", "The mask of example 0 has 1 step, and"),
        ("11100", "1 row, and the batch has 2"),
        ("11100, 11100, 11100", "3 rows, and the batch has 2"),
        ("11100, 10210", "The mask of example 1, character 4: “210”"),
        ("1*600, 1*5", "The mask of example 0 has more than 512 steps"),
        ("1*99999999999, 1*5", "The mask of example 0 has more than 512 steps"),
    ],
)
def test_a_wrong_mask_is_said_with_its_row(text, said):
    with pytest.raises(UnreadableError) as caught:
        read_mask(text, 2, 5)
    assert said in str(caught.value)


@given(MASKS)
def test_a_written_mask_is_read_back(rows):
    assert read_mask(written_mask(rows), len(rows), len(rows[0])).tolist() == rows


def test_a_long_mask_is_written_as_runs():
    mask = np.ones((2, 500), bool)
    mask[1, 40:] = False
    assert written_mask(mask) == "1*500, 1*40 0*460"
    assert np.array_equal(read_mask(written_mask(mask), 2, 500), mask)


def test_valid_steps_stand_before_each_length():
    assert valid_steps((3, 0, 9), 3, 4).astype(int).tolist() == [[1, 1, 1, 0], [0, 0, 0, 0], [1, 1, 1, 1]]
    assert valid_steps(None, 2, 3).all()
    assert valid_steps((1,), 2, 3).astype(int).tolist() == [[1, 0, 0], [1, 1, 1]], "an example without one is full"


@given(MASKS, st.data())
def test_a_click_turns_over_one_step_and_a_second_one_turns_it_back(rows, data):
    batch, length = len(rows), len(rows[0])
    example, t = data.draw(st.integers(0, batch - 1)), data.draw(st.integers(0, length - 1))
    text = written_mask(rows)
    once = toggle(text, "", batch, length, example, t)
    changed = read_mask(once, batch, length) != np.array(rows)
    assert np.argwhere(changed).tolist() == [[example, t]]
    assert toggle(once, "", batch, length, example, t) == text


def test_the_first_click_starts_from_the_lengths():
    assert toggle("", "4, 2", 2, 4, 1, 2) == "1111, 1110"
    assert toggle("", "", 2, 4, 0, 1) == "1011, 1111"
    assert toggle("", "x", 2, 4, 0, 1) == "1011, 1111", "lengths that cannot be read say nothing"
    assert toggle("111, 1", "4, 2", 2, 4, 0, 0) == "0111, 1100", "nor does a mask of another shape"


def test_a_click_beside_the_grid_changes_nothing_and_a_huge_one_makes_nothing():
    assert toggle("1111, 1111", "", 2, 4, 5, 0) == "1111, 1111"
    assert toggle("", "", 10**9, 10**9, 0, 0) == ""


# --- what follows B and T ---------------------------------------------------------------------------------------------


@given(SIZES, SIZES)
def test_lengths_that_nobody_typed_are_made_anew(before, after):
    text, typed = fitted_lengths(default_lengths(*before), "", before, after, untouched=True)
    assert (text, typed) == (default_lengths(*after), "")


@given(SIZES, st.lists(SIZES, min_size=1, max_size=5), st.data())
def test_no_slider_makes_a_length_too_long_and_going_back_brings_all_back(start, moves, data):
    lengths = data.draw(st.lists(st.integers(1, start[1]), min_size=start[0], max_size=start[0]))
    text, typed, now = written_lengths(lengths), "", start
    for size in [*moves, start]:
        text, typed = fitted_lengths(text, typed, now, size, untouched=False)
        got = read_lengths(text)
        assert len(got) == size[0]
        assert all(1 <= n <= size[1] for n in got)
        now = size
    assert (text, typed) == (written_lengths(lengths), "")


def test_through_no_steps_at_all_nothing_is_lost():
    assert fitted_lengths("4, 2", "", (2, 4), (2, 0), untouched=False) == ("", "4, 2")
    assert fitted_lengths("", "4, 2", (2, 0), (2, 3), untouched=False) == ("3, 2", "4, 2")
    assert fitted_lengths("3, 2", "4, 2", (2, 3), (2, 4), untouched=False) == ("4, 2", "")


def test_a_length_that_was_too_long_already_stays_as_it_was_meant():
    assert fitted_lengths("9, 2", "", (2, 8), (2, 4), untouched=False) == ("9, 2", "")


def test_a_wrong_count_stays_a_wrong_count():
    assert fitted_lengths("8, 2", "", (3, 8), (3, 4), untouched=False) == ("4, 2", "8, 2")


@pytest.mark.parametrize("text", ["", "x, 2"])
def test_none_given_and_what_cannot_be_read_stay(text):
    assert fitted_lengths(text, "", (2, 4), (3, 5), untouched=False) == (text, "")


@given(MASKS, st.lists(SIZES, min_size=1, max_size=5))
def test_a_mask_has_the_new_shape_and_comes_back(rows, moves):
    start = (len(rows), len(rows[0]))
    text, typed = written_mask(rows), ""
    for size in [*moves, start]:
        text, typed = fitted_mask(text, typed, size)
        mask = read_mask(text, *size)
        same = min(start[0], size[0]), min(start[1], size[1])
        assert np.array_equal(mask[: same[0], : same[1]], np.array(rows)[: same[0], : same[1]])
    assert (text, typed) == (written_mask(rows), "")


def test_new_steps_go_on_as_the_row_ends_and_new_examples_are_full():
    assert fitted_mask("110, 111", "", (3, 5)) == ("11000, 11111, 11111", "110, 111")
    assert fitted_mask("", "", (3, 5)) == ("", "")
    assert fitted_mask("12", "", (3, 5)) == ("12", "")
