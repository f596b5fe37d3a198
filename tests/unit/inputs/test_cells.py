"""Typed numbers as cells of a table, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.inputs.cells import MAX_STEPS, MAX_WIDTH, cell_problem, edited, join_cells, split_cells
from core.inputs.parse import UnreadableError, parse_sequence


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("1, 2, 3", [["1"], ["2"], ["3"]]),
        ("1, 2\n3, 4", [["1", "2"], ["3", "4"]]),
        ("[[1, 2, 3]]", [["1", "2", "3"]]),
        ("0.5, nan", [["0.5"], ["nan"]]),
        ("1, x, 3", [["1"], ["x"], ["3"]]),
        ('1, "", 3', [["1"], [""], ["3"]]),
        ("", []),
    ],
)
def test_split(text, cells):
    assert split_cells(text) == cells


@pytest.mark.parametrize("text", ["[[[1, 2]]]", "zeros(3)", "1, 2\nx", "[1, x]", ", ".join(["1"] * (MAX_STEPS + 1))])
def test_what_makes_no_table(text):
    assert split_cells(text) is None


def test_a_wide_row_makes_no_table():
    assert split_cells("\n".join([", ".join(["1"] * (MAX_WIDTH + 1))] * 2)) is None


@given(
    st.integers(1, 4).flatmap(
        lambda width: st.lists(
            st.lists(st.floats(width=32, allow_nan=False).map(repr), min_size=width, max_size=width),
            min_size=1,
            max_size=5,
        )
    )
)
def test_readable_cells_come_back_the_same(cells):
    text = join_cells(cells)
    numbers = parse_sequence(text)
    assert numbers.shape == ((len(cells),) if len(cells[0]) == 1 else (len(cells), len(cells[0])))
    again = split_cells(text)
    assert [[float(c) for c in row] for row in again] == [[float(c) for c in row] for row in cells]


@given(st.lists(st.text(alphabet='1x ,;"()[]🙂\n', max_size=5), min_size=2, max_size=5))
def test_whatever_is_typed_stays_one_cell(typed):
    cells = [[cell] for cell in typed]
    text = join_cells(cells)
    found = cell_problem(cells)
    if found:
        with pytest.raises(UnreadableError):
            parse_sequence(text)
    else:
        assert parse_sequence(text).shape == (len(cells),)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([["1"], ["nope"]], "At t = 1: “nope” is no number."),
        ([["1", ""], ["2", "3"]], "At t = 0, feature 1: there is no number here."),
        ([["1"], ["−2"]], ""),
        ([["inf"]], ""),
    ],
)
def test_a_problem_is_named_by_t(cells, said):
    assert cell_problem(cells) == said


def test_edits_are_put_in_and_leave_the_original():
    cells = [["1"], ["2"]]
    assert edited(cells, [(1, 0, "7"), (0, 0, 3), (5, 0, "9"), (0, 4, "9")]) == [["3"], ["7"]]
    assert edited(cells, [(0, 0, None)]) == [[""], ["2"]]
    assert cells == [["1"], ["2"]]
