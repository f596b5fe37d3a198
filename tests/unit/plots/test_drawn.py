"""A figure that is sent unchecked is the very figure that plotly would have sent."""

from __future__ import annotations

import json

import numpy as np
import plotly.io as pio
import plotly.tools

from core.base.avals import Aval, LeafType
from core.base.results import Series
from core.plots.drawn import drawn
from core.plots.trajectory import trajectory


def sent(figure):
    """As Streamlit sends it. Plotly leaves out what is an empty list."""
    checked = plotly.tools.return_figure_from_figure_or_data(figure, validate_figure=True)
    found = json.loads(pio.to_json(checked, validate=False))
    return {**found, "layout": {name: value for name, value in found["layout"].items() if value != []}}


def test_it_is_what_plotly_makes_of_the_dict_with_its_template():
    array = np.linspace(0, 1, 12, dtype=np.float32).reshape(3, 4)
    figure = trajectory([Series("carry", LeafType("carry", Aval((4,), "float32")), array)]).figure
    by_plotly = sent({**figure, "layout": {**figure["layout"], "template": "plotly_white"}})
    assert sent(drawn(figure, "plotly_white")) == by_plotly
    assert "template" not in figure["layout"]
