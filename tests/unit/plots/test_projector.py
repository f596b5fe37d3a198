"""What grows on a projector, and what does not."""

from core.plots.projector import enlarged

FIGURE = {
    "data": [{"x": [0, 1], "line": {"width": 2}, "marker": {"size": 6}}],
    "layout": {
        "height": 200,
        "margin": {"l": 40, "r": 10, "t": 20, "b": 30},
        "showlegend": True,
        "xaxis": {"domain": [0, 1], "tickfont": {"size": 12}, "range": [0, 8]},
        "annotations": [{"x": 0, "y": 1, "xshift": -40, "font": {"size": 13, "family": "mono"}}],
        "template": "streamlit",
    },
}


def test_all_that_is_counted_in_pixels_grows_and_nothing_else():
    layout = enlarged(FIGURE, 2)["layout"]
    assert layout["height"] == 400
    assert layout["margin"] == {"l": 80, "r": 20, "t": 40, "b": 60}
    assert layout["xaxis"] == {"domain": [0, 1], "tickfont": {"size": 24}, "range": [0, 8]}
    assert layout["annotations"] == [{"x": 0, "y": 1, "xshift": -80, "font": {"size": 26, "family": "mono"}}]
    assert (layout["showlegend"], layout["template"]) == (True, "streamlit")


def test_words_have_a_size_that_plotly_makes_room_for():
    layout = enlarged({"data": [], "layout": {"yaxis2": {"automargin": True}}}, 1.5)["layout"]
    assert layout["yaxis2"] == {"automargin": True, "tickfont": {"size": 18}}
    assert layout["legend"] == {"font": {"size": 18}}
    (trace,) = enlarged({"data": [{"z": [[1]], "colorbar": {"thickness": 8}}], "layout": {}}, 1.5)["data"]
    assert trace == {"z": [[1]], "colorbar": {"thickness": 12, "tickfont": {"size": 18}}}


def test_no_exponent_is_smaller_than_its_label():
    layout = enlarged({"data": [], "layout": {"yaxis": {"type": "log", "exponentformat": "power"}}}, 2)["layout"]
    assert layout["yaxis"]["exponentformat"] == "e"


def test_the_data_stay_and_so_does_the_figure_that_was_given():
    before = repr(FIGURE)
    assert enlarged(FIGURE, 1.7)["data"] == FIGURE["data"]
    assert repr(FIGURE) == before
