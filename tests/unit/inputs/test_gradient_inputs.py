"""The Gradients page's inputs: what they mean, what they refuse, and what of them compiles."""

from __future__ import annotations

import io

import numpy as np
import pytest

from core.inputs.gradient_fields import CELL_NAMES, FIELDS, TRICKS, TYPED
from core.inputs.gradient_inputs import GradientInputs, build, typed_steps
from core.inputs.gradient_measure import Trend, decay_of, power_text
from core.inputs.gradient_page import check_cells, look_at, settled
from core.inputs.gradient_rows import map_npz, row_csv
from core.inputs.gradient_source import cells_source
from core.inputs.parse import UnreadableError
from core.runners.cache import count_compiles

SMALL = {"length": 12, "hidden_features": 5, "in_features": 2}


def inputs(**changes) -> GradientInputs:
    return GradientInputs(**{**SMALL, **changes})


def test_inputs_and_fields_are_the_same_names_with_the_same_defaults():
    assert GradientInputs.of_values(FIELDS.defaults()) == GradientInputs()


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"length": 0}, "length", "nothing to differentiate"),
        ({"length": -3}, "length", "T is -3"),
        ({"hidden_features": 0}, "hidden_features", "hidden_features must be 1 or more; 0 is no size"),
        ({"in_features": -1}, "in_features", "in_features must be 1 or more"),
        ({"source": TYPED, "numbers": ""}, "numbers", "no numbers"),
        ({"source": TYPED, "numbers": "1, 2\n3"}, "numbers", "Row 2"),
        ({"source": TYPED, "numbers": "1, x"}, "numbers", "“x” is no number"),
        ({"source": TYPED, "numbers": "zeros(2, 3, 4)"}, "numbers", "3 axes"),
        ({"length": 10**9}, "length", "limit of 512"),
        ({"hidden_features": 10**9}, "hidden_features", "limit of 256"),
        ({"in_features": 129}, "in_features", "limit of 128"),
        ({"source": TYPED, "numbers": "zeros(600, 1)"}, "numbers", "limit of 512"),
        ({"length": 512, "hidden_features": 256, "in_features": 128}, "length", "billion multiplications"),
    ],
)
def test_what_cannot_be_is_said_at_its_field(changes, field, said):
    look = look_at(inputs(**changes))
    assert not look.ran
    found = [problem.text for problem in look.problems if problem.field == field]
    assert len(found) == 1
    assert said in found[0]


def test_nan_in_the_data_runs_and_is_said():
    look = look_at(inputs(source=TYPED, numbers="1 2\nnan 0\n1 1"))
    assert look.ran
    (hint,) = look.hints
    assert hint.field == "numbers"
    assert "first at t = 1" in hint.text
    assert all(np.isfinite(one.h[0, 0]) and np.isnan(one.h[2, 0]) for one in look.cells.maps)


def test_one_line_of_numbers_is_one_feature_over_time():
    assert typed_steps("1, 2, 3").shape == (3, 1)
    assert typed_steps("1 2\n3 4\n5 6").shape == (3, 2)
    with pytest.raises(UnreadableError):
        typed_steps("[]")


def test_sliders_seeds_and_data_compile_nothing():
    look_at(inputs())
    check_cells(look_at(inputs()).cells)
    with count_compiles() as compiles:
        for changes in (
            {"forget_bias": 6.0},
            {"recurrent_scale": 0.0},
            {"forget_bias": -4.0, "recurrent_scale": 4.0},
            {"data_seed": 5},
            {"source": "ones"},
            {"row": 3},
        ):
            look = look_at(inputs(**changes))
            assert not look.cells.compiled
            check_cells(look.cells)
    assert compiles.count == 0


def test_another_row_is_the_same_map():
    assert settled(inputs(row=4, map_cell="GRUCell", map_part="c")) == settled(inputs())


def test_forget_bias_moves_the_lstm_alone_and_upwards():
    plain, open_gate = look_at(inputs()).cells, look_at(inputs(forget_bias=3.0)).cells
    assert open_gate.map_of("LSTMCell").last_h[0] > 10 * plain.map_of("LSTMCell").last_h[0]
    for kind in ("GRUCell", "SimpleCell"):
        np.testing.assert_array_equal(open_gate.map_of(kind).h, plain.map_of(kind).h)


def test_the_buttons_do_what_they_say():
    by_id = {trick.id: trick.values for trick in TRICKS}

    def trend(trick: str, kind: str) -> Trend:
        return decay_of(look_at(GradientInputs(**by_id[trick])).cells.map_of(kind).last_h).trend

    assert all(trend("vanish", kind) is Trend.VANISHES for kind in CELL_NAMES)
    assert trend("explode", "SimpleCell") is Trend.EXPLODES
    first = {t: look_at(GradientInputs(**by_id[t])).cells.map_of("LSTMCell").last_h[0] for t in by_id}
    assert first["remember"] > 0.1 > 1e-9 > first["plain"] > first["vanish"]


def test_the_last_row_agrees_with_reverse_mode_and_finite_differences():
    checks = check_cells(look_at(inputs(forget_bias=1.0)).cells)
    assert len(checks) == 3
    assert all(c.grad.within and c.finite.within and c.trajectory.within for c in checks)


# --- measure --------------------------------------------------------------------------------------------------------


def test_halving_and_doubling_are_measured():
    apart = np.arange(40)[::-1]
    half = decay_of(3 * 0.5 ** (apart / 4))
    assert (half.trend, round(half.steps, 6)) == (Trend.VANISHES, 4.0)
    assert half.misses == pytest.approx(1.0)
    assert half.words == "vanishes: halves every 4 steps"
    double = decay_of(1e-3 * 2.0 ** (apart / 1))
    assert double.words == "explodes: doubles every step"
    assert decay_of(np.full(20, 0.3)).words == "holds: within a factor of 2 over 20 steps"


def test_zeros_and_nan_are_counted_and_not_part_of_the_line():
    row = np.array([0.0, 0.0, np.nan, 0.125, 0.25, 0.5, 1.0])
    found = decay_of(row)
    assert (found.trend, found.zeros, found.not_finite) == (Trend.VANISHES, 2, 1)
    assert found.steps == pytest.approx(1.0)
    assert decay_of(np.zeros(4)).trend is Trend.ZERO
    assert decay_of(np.array([0.0, 0.0, 2.0])).words == "is exactly 0 but for the last step"
    assert decay_of(np.array([0.0, 3.0, 2.0])).words == "is exactly 0 but for the last 2 steps"
    assert decay_of(np.array([1.0, 0.0, 2.0])).trend is Trend.NONE
    assert decay_of(np.array([1.0])).trend is Trend.NONE
    assert decay_of(np.full(3, np.nan)).trend is Trend.NOT_FINITE


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (8.23e-11, "8.2·10⁻¹¹"),
        (0.177, "0.18"),
        (13.4, "13"),
        (232.0, "232"),
        (5.5e7, "5.5·10⁷"),
        (9.96e-3, "1.0·10⁻²"),
        (float("nan"), "NaN"),
        (float("inf"), "∞"),
        (99.7, "100"),
    ],
)
def test_norms_are_written_to_be_read(value, text):
    assert power_text(value) == text


# --- program and files ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"forget_bias": 2.5, "recurrent_scale": 1.5, "seed": 3},
        {"source": "sine"},
        {"source": "impulse"},
        {"source": "alternating", "recurrent_scale": 0.5},
        {"source": "ones", "in_features": 1},
        {"source": TYPED, "numbers": "1, 2.5\n-3, 0\n0.1, 1e-3"},
        {"source": TYPED, "numbers": "1, 2, 3, 4"},
    ],
)
def test_the_program_computes_the_same_numbers(changes):
    given = inputs(**changes)
    look = look_at(given)
    space: dict = {}
    exec(compile(cells_source(given, look.cells.data), "program", "exec"), space)
    for kind, name in CELL_NAMES.items():
        np.testing.assert_allclose(space["maps"][name], look.cells.map_of(kind).h, rtol=2e-4, atol=1e-6)


def test_files_hold_the_numbers():
    result = look_at(inputs()).cells
    lines = row_csv(result, 7).decode().splitlines()
    assert lines[0] == "t,LSTM_h,GRU_h,Simple_h,LSTM_c"
    assert len(lines) == 8
    assert [float(v) for v in lines[3].split(",")] == [
        2.0,
        result.map_of("LSTMCell").h[6, 2],
        result.map_of("GRUCell").h[6, 2],
        result.map_of("SimpleCell").h[6, 2],
        result.map_of("LSTMCell").c[6, 2],
    ]
    kept = np.load(io.BytesIO(map_npz(result)))
    np.testing.assert_array_equal(kept["LSTM_c"], result.map_of("LSTMCell").c)
    np.testing.assert_array_equal(kept["xs"], build(inputs()).data)
