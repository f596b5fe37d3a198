"""The equations of a point recompute, from the numbers as they are written, to the value that is plotted."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from core.base.sequences import Masking
from core.contract.subject import SequenceTrial
from core.plots.sequence_point import PointWords, point_words
from core.plots.sequence_tables import check_rows, mask_table, tolerance_text
from core.plots.sequence_view import Chosen
from core.runners.layers import parameters
from core.runners.sequence import run_sequence
from core.runners.sequence_point import point
from core.runners.sequence_reference import sequence_checks


def trial(kind: str = "LSTMCell", **changes) -> SequenceTrial:
    data = np.random.default_rng(0).standard_normal((2, 5, 3)).astype(np.float32)
    return replace(SequenceTrial(kind, data, "BTF", 4, masking=Masking.LENGTHS, lengths=(5, 3)), **changes)


def words(one: SequenceTrial, chosen: Chosen) -> PointWords:
    result = run_sequence(one)
    step = point(one, result, chosen.example, chosen.position, chosen.side) if chosen.position else None
    return point_words(one, result, chosen, step, parameters(one)[chosen.side])


def computed(text: str) -> float:
    """A side of an equation, worked out by Python from what is written."""
    code = text.replace("·", "*").replace("−", "-").replace("σ", "sigma")
    return float(eval(code, {"tanh": math.tanh, "sigma": lambda z: 1 / (1 + math.exp(-z))}))


@pytest.mark.parametrize("kind", ["LSTMCell", "OptimizedLSTMCell", "GRUCell", "SimpleCell"])
@pytest.mark.parametrize("side", [0, 1])
def test_every_side_of_every_equation_is_the_plotted_value(kind: str, side: int) -> None:
    one = trial(kind, bidirectional=True)
    result = run_sequence(one)
    chosen = Chosen(1, 3, 2, side)
    said = words(one, chosen)
    assert said.lines
    parts = [part for part in said.agreements if part.agrees]
    assert len(parts) == len(result.forward.carries)
    direction = result.directions[side]
    plotted = dict(zip(("c′", "h′")[-len(direction.carries) :], direction.carries, strict=True))
    for line in said.lines:
        sides = [computed(text) for text in re.split(r"\s*=\s*", line.numbers) if text]
        assert len(sides) > 1
        assert sides == pytest.approx([sides[-1]] * len(sides), rel=2e-5, abs=2e-6)
        if line.slot in plotted:
            assert sides[-1] == pytest.approx(float(plotted[line.slot][3, 1, 2]), rel=1e-5, abs=1e-6)


def test_products_are_spelled_where_they_are_short() -> None:
    said = words(trial(), Chosen(0, 2, 1))
    assert len(said.spelled) == 8
    assert said.spelled[0][1].count("·") == 3
    assert not words(trial(hidden_features=20), Chosen(0, 2, 1)).spelled


def test_the_initial_carry_has_no_step() -> None:
    said = words(trial(), Chosen(0, 0, 0))
    assert not said.lines
    assert said.opening == "t = 0 is the initial carry: no step made it. c = 0, h = 0"


def test_a_step_that_the_mask_leaves_out_says_so() -> None:
    mask = np.array([[1, 0, 1, 1, 1], [1, 1, 1, 0, 0]], bool)
    said = words(trial(lengths=None, mask=mask, masking=Masking.MASK), Chosen(0, 2, 0))
    assert "keeps the carry" in said.opening
    assert not said.agreements


def test_padding_that_is_not_told_moves_the_final_carry() -> None:
    table = mask_table(trial(), run_sequence(trial()), Chosen(1, 1, 0))
    assert table is not None
    full, short = table.rows
    assert (full.steps, short.steps) == (5, 3)
    assert full.untold_moves is None
    assert short.told_moves is None
    assert short.untold_moves is not None
    assert short.untold_moves > 1e-3
    assert short.told == short.end != short.untold


def test_told_nothing_the_table_still_shows_what_lengths_would_give() -> None:
    one = trial(masking=Masking.NONE)
    table = mask_table(one, run_sequence(one), Chosen(1, 1, 0))
    assert table is not None
    assert table.by is Masking.LENGTHS
    assert table.rows[1].told == table.rows[1].end


def test_without_padding_there_is_no_table() -> None:
    assert mask_table(trial(lengths=(5, 5)), run_sequence(trial(lengths=(5, 5))), Chosen()) is None
    wrong = trial(time_major=True, masking=Masking.NONE, lengths=None)
    assert mask_table(wrong, run_sequence(wrong), Chosen()) is None


def test_checks_in_words() -> None:
    one = trial(masking=Masking.NONE)
    checks = sequence_checks(one, run_sequence(one))
    numbers = check_rows(checks, padding=False)
    assert [row.name for row in numbers] == [
        "the layer of Flax itself, no jit",
        "Python loop over the cell",
        "NumPy formulas",
    ]
    assert all(row.agrees for row in numbers)
    assert tolerance_text(checks) == "rtol 1e-5, atol 1e-6"
    moved = check_rows(checks, padding=True)
    assert moved[0].agrees is False
    assert "example 1, unit 0" in moved[0].more
