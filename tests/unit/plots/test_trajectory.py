"""The trajectory figure: its numbers, its panels, its words."""

import itertools
import json

import numpy as np
import plotly.graph_objects as go
import pytest

from core.base.avals import Aval, LeafType
from core.base.results import Series
from core.plots.trajectory import _CALM, MAX_COLUMNS, MAX_LINES, MAX_PANELS, MAX_UNITS, element_names, trajectory


def leaf(values, path="carry", dtype="float32"):
    array = np.asarray(values, dtype)
    return Series(path, LeafType(path, Aval(array.shape[1:], dtype)), array)


def test_one_line_from_init_to_the_end():
    plot = trajectory([leaf([0, 1, 3, 6])])
    (trace,) = plot.figure["data"]
    assert trace["x"] == [0, 1, 2, 3]
    assert trace["y"] == [0, 1, 3, 6]
    assert trace["marker"]["symbol"] == ["circle-open", "circle", "circle", "circle"]
    assert plot.figure["layout"]["xaxis"]["range"][0] <= 0
    assert plot.figure["layout"]["showlegend"] is False
    assert plot.table == {"t": [0, 1, 2, 3], "carry": [0, 1, 3, 6]}
    assert plot.alt == "Carry over time, t = 0 (init) to 3. carry goes from 0 to 6, between 0 and 6."


def test_lines_of_a_leaf_differ_by_dash_and_marker_not_by_colour_alone():
    plot = trajectory([leaf(np.arange(12).reshape(3, 4))])
    looks = {(t["line"]["dash"], t["marker"]["symbol"][0]) for t in plot.figure["data"]}
    assert len(looks) == 4
    assert [t["name"] for t in plot.figure["data"]] == ["carry[0]", "carry[1]", "carry[2]", "carry[3]"]
    assert plot.figure["layout"]["showlegend"] is True


def test_no_colour_of_the_page_is_named_so_that_the_theme_decides():
    plot = trajectory([leaf([0, 1]), leaf(np.ones((2, 40)), "carry['w']")])
    text = json.dumps(plot.figure)
    assert '"color"' not in text
    assert "bgcolor" not in text
    assert "colorscale" not in text.replace("autocolorscale", "")


def test_a_wide_leaf_is_a_heatmap_with_t_along_x():
    values = np.arange(3 * (MAX_LINES + 1), dtype=np.float32).reshape(3, -1)
    (trace,) = trajectory([leaf(values)]).figure["data"]
    assert trace["type"] == "heatmap"
    assert trace["z"][1] == values[:, 1].tolist()
    assert (trace["zmin"], trace["zmax"]) == (0.0, float(values.max()))


def test_a_heatmap_with_negative_values_is_centred_on_zero():
    (trace,) = trajectory([leaf(np.linspace(-1, 3, 40).reshape(2, 20))]).figure["data"]
    assert trace["zmin"] == -trace["zmax"]


def test_panels_share_the_time_axis_and_do_not_overlap():
    plot = trajectory([leaf([0, 1], f"carry[{i}]") for i in range(3)])
    layout = plot.figure["layout"]
    domains = [layout[axis]["domain"] for axis in ("yaxis", "yaxis2", "yaxis3")]
    for upper, lower in itertools.pairwise(domains):
        assert lower[0] < lower[1] < upper[0] < upper[1]
    assert domains[-1][0] >= 0
    assert layout["xaxis"]["anchor"] == "y3"
    assert [t["yaxis"] for t in plot.figure["data"]] == ["y", "y2", "y3"]


def test_values_that_are_not_finite_are_gaps_and_said():
    plot = trajectory([leaf([0, 1, np.nan, np.inf])])
    assert plot.figure["data"][0]["y"] == [0, 1, None, None]
    assert plot.figure["layout"]["shapes"][0]["x0"] == 2
    assert any("not finite from t = 2" in a["text"] for a in plot.figure["layout"]["annotations"])
    assert "Infinity" not in json.dumps(plot.figure)
    assert "NaN" not in json.dumps(plot.figure)
    assert np.isnan(plot.table["carry"][2])
    assert trajectory([leaf([np.nan])]).alt.endswith("no finite value.")


def test_keys_and_empty_leaves_have_no_panel():
    keys = Series("carry['key']", LeafType("carry['key']", Aval((), "key<fry>")), np.zeros((3, 2), np.uint32))
    plot = trajectory([keys])
    assert plot.figure is None
    assert "carry['key']" in plot.notes[0]
    assert trajectory([leaf(np.zeros((3, 0)))]).figure is None
    assert trajectory([]).figure is None


def test_empty_sequence_shows_init_alone():
    plot = trajectory([leaf([5])])
    assert plot.figure["data"][0]["y"] == [5]
    low, high = plot.figure["layout"]["xaxis"]["range"]
    assert low < 0 < high


def test_what_is_left_out_is_said():
    plot = trajectory([leaf(np.ones((2, MAX_UNITS + 1)))])
    assert len(plot.figure["data"][0]["z"]) == MAX_UNITS
    assert str(MAX_UNITS + 1) in plot.notes[0]
    many = trajectory([leaf([0, 1], f"carry[{i}]") for i in range(MAX_PANELS + 2)])
    assert len(many.figure["data"]) == MAX_PANELS
    assert "2 more leaves" in many.notes[0]
    assert len(many.table) == MAX_PANELS + 3
    assert len(trajectory([leaf(np.ones((2, 300)))]).table) == MAX_COLUMNS + 1


@pytest.mark.parametrize("dtype", ["int32", "bool", "int8", "float16"])
def test_every_dtype_plots(dtype):
    plot = trajectory([leaf([0, 1, 1], dtype=dtype)])
    assert plot.figure["data"][0]["y"] == [0, 1, 1]


@pytest.mark.parametrize("shape", [(1,), (4,), (4, 3), (4, 30), (600,)])
def test_plotly_takes_the_figure(shape):
    go.Figure(trajectory([leaf(np.ones(shape))]).figure)


def test_element_names():
    assert element_names("carry", ()) == ["carry"]
    assert element_names("carry['m']", (1, 2)) == ["carry['m'][0, 0]", "carry['m'][0, 1]"]


@pytest.mark.parametrize(
    ("values", "words", "calm"),
    [
        ([-np.inf, 1, 2], "not finite at t = 0 only", True),
        ([-np.inf, -np.inf, 2], "first not finite at t = 0", True),
        ([np.nan, np.nan, np.nan], "not finite from t = 0", True),
        ([0, np.inf, np.inf], "not finite from t = 1", False),
        ([0, 1, np.nan], "not finite from t = 2", False),
        ([0, np.nan, 1], "not finite at t = 1 only", False),
    ],
)
def test_what_is_not_finite_is_said_as_it_is(values, words, calm):
    layout = trajectory([leaf(values)]).figure["layout"]
    (note,) = [a for a in layout["annotations"] if "finite" in a["text"]]
    assert note["text"] == words
    assert (note["font"]["color"] == layout["shapes"][0]["line"]["color"] == _CALM) == calm


def test_a_reversed_scan_counts_steps():
    plot = trajectory([leaf([0, 1, 3])], reverse=True)
    assert plot.figure["layout"]["xaxis"]["title"]["text"] == "steps done"
    assert list(plot.table) == ["steps done", "carry"]
    assert "steps done = 0 (init)" in plot.alt
    assert plot.figure["data"][0]["hovertemplate"].startswith("steps done = ")
