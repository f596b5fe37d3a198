"""The figures of the Gradients page: what is drawn, what cannot be and is said, and the numbers behind it."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.avals import Aval, LeafType
from core.base.gradients import MemoryMap
from core.base.scan_gradients import LeafGradient, ScanGradient, Target, WildGradient
from core.plots.gradient_bars import MAX_BARS, X_COLOUR, gradient_bars, gradient_table
from core.plots.gradient_curves import COLOURS, curves_of, memory_curves
from core.plots.gradient_loss import loss_curve
from core.plots.gradient_map import MAX_CELLS, MOST_DECADES, blocks_of, memory_heatmap


def a_map(kind: str = "LSTMCell", steps: int = 6, factor: float = 0.5, **changes) -> MemoryMap:
    apart = np.arange(steps)[:, None] - np.arange(steps)[None, :]
    values = np.where(apart >= 0, factor ** np.maximum(apart, 0), 0.0)
    return MemoryMap(kind, values, 2 * values if kind == "LSTMCell" else None, False, **changes)


def three(steps: int = 6) -> tuple[MemoryMap, ...]:
    return tuple(a_map(kind, steps, factor) for kind, factor in zip(COLOURS, (0.9, 0.5, 2.0), strict=True))


# --- curves -----------------------------------------------------------------------------------------------------------


def test_a_curve_for_each_cell_and_the_cell_state_of_the_lstm():
    picture = memory_curves(three(), 6)
    traces = picture.figure["data"]
    assert [t["name"] for t in traces] == ["LSTM h", "GRU h", "Simple h", "LSTM c"]
    assert len({(t["line"]["dash"], t["marker"]["symbol"]) for t in traces}) == 4
    assert traces[1]["y"] == pytest.approx([0.5**5, 0.5**4, 0.5**3, 0.5**2, 0.5, 1])
    assert picture.table["t"] == list(range(6))
    assert picture.table["LSTM c"] == pytest.approx([2 * 0.9**k for k in (5, 4, 3, 2, 1, 0)])
    assert "GRU h: 0.031 at t = 0, 1 at t = 5; it vanishes: halves every step." in picture.alt
    assert "Simple h: 32 at t = 0" in picture.alt
    assert "explodes" in picture.alt
    assert not picture.notes


def test_an_earlier_row_stops_where_it_had_read_no_more():
    picture = memory_curves(three(), 4)
    assert all(t["x"] == [0, 1, 2, 3] for t in picture.figure["data"])
    assert picture.figure["layout"]["xaxis"]["range"][1] > 5
    assert picture.figure["layout"]["shapes"][0]["x0"] == 3.5


def test_zeros_are_gaps_with_a_mark_at_the_lower_edge_and_nan_are_gaps_alone():
    one = a_map("SimpleCell")
    one.h[-1, :3] = 0.0
    one.h[-1, 4] = np.nan
    picture = memory_curves((one,), 6)
    line, zeros = picture.figure["data"]
    assert line["y"] == [None, None, None, 0.25, None, 1.0]
    assert zeros["x"] == [0, 1, 2]
    low, high = picture.figure["layout"]["yaxis"]["range"]
    assert low <= math.log10(zeros["y"][0]) < math.log10(0.25)
    assert math.log10(1.0) <= high
    assert picture.notes[0].startswith("Simple h: 3 of 6 values are exactly 0.")
    assert picture.notes[1] == "Simple h: 1 of 6 values are not finite; they are gaps."


@pytest.mark.parametrize("value", [0.0, np.nan, np.inf])
def test_nothing_that_a_log_axis_can_hold_is_still_a_figure(value):
    one = a_map("SimpleCell")
    one.h[:] = value
    picture = memory_curves((one,), 6)
    json.dumps(picture.figure, allow_nan=False)
    assert all(y is None for y in picture.figure["data"][0]["y"])
    assert picture.notes


def test_one_step():
    picture = memory_curves(three(1), 1)
    assert all(t["x"] == [0] for t in picture.figure["data"])
    assert len(curves_of(three(1), 1)) == 4


# --- map --------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(1, 12))
def test_blocks_keep_the_largest(steps, most):
    values = np.tril(np.random.default_rng(steps).random((steps, steps)))
    reduced, side = blocks_of(values, most)
    assert len(reduced) <= most
    assert side * len(reduced) >= steps > side * (len(reduced) - 1)
    for s in range(len(reduced)):
        for t in range(len(reduced)):
            assert reduced[s, t] == values[s * side : (s + 1) * side, t * side : (t + 1) * side].max()


def test_a_block_is_nan_only_where_all_of_it_is():
    values = np.tril(np.ones((4, 4)))
    values[2, 0] = np.nan
    assert blocks_of(values, 2)[0][1, 0] == 1
    values[2:, :2] = np.nan
    assert math.isnan(blocks_of(values, 2)[0][1, 0])


def test_the_triangle_above_is_empty_and_colours_lie_around_one():
    picture = memory_heatmap(a_map("GRUCell", 5, 0.1), "h", 5)
    heat, points = picture.figure["data"]
    assert heat["z"][0] == [0.0, None, None, None, None]
    assert heat["z"][4] == pytest.approx([-4, -3, -2, -1, 0])
    assert (heat["zmin"], heat["zmax"]) == (-4, 4)
    assert len(points["x"]) == 15
    assert points["marker"]["opacity"] == 0
    assert (min(points["y"]), max(points["y"])) == (1, 5)
    assert (min(points["x"]), max(points["x"])) == (0, 4)
    assert not picture.notes
    assert picture.table["t = 1"][:2] == [None, 1.0]
    assert "Largest 1, smallest 1.0·10⁻⁴" in picture.alt


def test_a_large_map_is_drawn_in_blocks_and_says_so():
    picture = memory_heatmap(a_map("GRUCell", 3 * MAX_CELLS - 2, 0.9), "h", 2)
    assert len(picture.figure["data"][0]["z"]) == MAX_CELLS
    assert "each square holds the largest of 3 × 3" in picture.notes[0]
    assert picture.figure["data"][-1]["text"][0] == "s = 1–3, t = 0–2"
    shape = picture.figure["layout"]["shapes"][0]
    assert (shape["y0"], shape["y1"]) == (0.5, 3.5)


def test_zeros_and_gaps_and_what_is_out_of_the_colours_are_said():
    one = a_map("SimpleCell", 30, 0.1)
    one.h[10, 2], one.h[11, 3] = 0.0, np.nan
    picture = memory_heatmap(one, "h", 30)
    assert picture.figure["data"][0]["zmin"] == -MOST_DECADES
    assert picture.figure["data"][0]["colorbar"]["ticktext"][0] == "≤ 10⁻¹⁶"
    assert [row.index(1) for row in picture.figure["data"][1]["z"] if 1 in row] == [2]
    assert len(picture.notes) == 3
    json.dumps(picture.figure, allow_nan=False)


def test_c_is_drawn_where_there_is_one():
    lstm = a_map("LSTMCell")
    assert memory_heatmap(lstm, "c", 6).figure["data"][0]["z"] != memory_heatmap(lstm, "h", 6).figure["data"][0]["z"]
    assert memory_heatmap(a_map("GRUCell"), "c", 6).alt.startswith("Map of ‖∂h_s/∂x_t‖ of the GRU")


# --- scans ------------------------------------------------------------------------------------------------------------


def a_gradient(*leaves: tuple[str, np.ndarray | None], wild: WildGradient | None = None) -> ScanGradient:
    made = tuple(
        LeafGradient(
            "init" if path.startswith("init") else "xs",
            LeafType(path, Aval(() if v is None else v.shape, "float32")),
            v,
        )
        for path, v in leaves
    )
    return ScanGradient(Target.FINAL, 3.0, made, wild, 3, False)


def test_bars_for_each_leaf_and_marks_for_what_is_not_finite():
    xs = np.array([1.0, np.nan, -2.0], np.float32)
    gradient = a_gradient(("init", np.float32(4.0).reshape(())), ("xs", xs), wild=WildGradient("xs", 1, (), math.nan))
    picture = gradient_bars(gradient)
    bar, mark = picture.figure["data"]
    assert (bar["x"], bar["y"]) == ([0, 2], [1.0, -2.0])
    assert (mark["x"], mark["text"]) == ([1], ["NaN"])
    assert "1 of 3 numbers are not finite" in picture.alt
    rows = gradient_table(gradient)
    assert [(row.path, row.value, row.wild) for row in rows] == [("init", "4", 0), ("xs", "[1, NaN, −2]", 1)]


def test_columns_stand_beside_each_other_and_many_become_a_norm():
    few = gradient_bars(a_gradient(("xs", np.ones((3, 2), np.float32))))
    assert [t["name"] for t in few.figure["data"]] == ["xs[t, 0]", "xs[t, 1]"]
    assert {t["marker"]["color"] for t in few.figure["data"]} == {X_COLOUR}, "x is purple; columns differ by pattern"
    assert len({t["marker"]["pattern"]["shape"] for t in few.figure["data"]}) == 2
    many = gradient_bars(a_gradient(("xs", np.ones((3, MAX_BARS + 1), np.float32))))
    assert [t["y"] for t in many.figure["data"]] == [[3.0, 3.0, 3.0]]


def test_xs_without_a_gradient_have_no_bars():
    assert gradient_bars(a_gradient(("init", np.ones(2, np.float32)), ("xs", None))) is None
    assert (
        gradient_bars(a_gradient(("xs[0]", np.ones(3, np.float32)), ("xs[1]", None)))
        .notes[0]
        .startswith("xs[1] has no")
    )


# --- loss -------------------------------------------------------------------------------------------------------------


def test_the_loss_is_on_a_plain_axis_unless_it_spans_decades():
    plain = loss_curve(np.array([1.0, 0.8, 0.5]), drops=False)
    assert plain.figure["layout"]["yaxis"].get("type") != "log"
    assert plain.table == {"updates done": [0, 1, 2], "loss": [1.0, 0.8, 0.5]}
    assert "1 before the first, 0.5 after the last" in plain.alt
    wide = loss_curve(np.array([1.0, 1e-3, 0.0]), drops=True)
    assert wide.figure["layout"]["yaxis"]["type"] == "log"
    assert wide.figure["data"][0]["y"] == [1.0, 1e-3, None]
    assert len(wide.notes) == 2


def test_a_loss_that_leaves_the_numbers_is_said():
    picture = loss_curve(np.array([1.0, np.inf, np.nan]), drops=False)
    assert picture.notes == ("From 1 updates on the loss is not finite: the steps are too large.",)
    json.dumps(picture.figure, allow_nan=False)
