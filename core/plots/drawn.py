"""A figure that is sent as it is: a plain dict in the clothes of a plotly figure.

Plotly builds an object of every part of a dict and checks each of its values before it is sent, 20 ms of a page's 40
(measured); ours are made by `core.plots` alone, and the tests have plotly check each of them.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

import plotly.io as pio
from plotly.basedatatypes import BaseFigure


class Drawn(BaseFigure):  # type: ignore[misc]  # untyped in plotly
    """What plotly's and Streamlit's functions take for a figure, and ask for its dict."""

    def __init__(self, figure: dict[str, Any]) -> None:
        self._given = figure

    def to_dict(self) -> dict[str, Any]:
        """The dict itself."""
        return self._given


def drawn(figure: Mapping[str, Any], template: str = "streamlit") -> Drawn:
    """The figure with a template of plotly's put in where its name would stand.

    Args:
        figure: ``{"data": […], "layout": {…}}``, valid; it is not changed.
        template: by default the one whose colours Streamlit's front end replaces by the theme's, in light and in dark.
    """
    return Drawn({**figure, "layout": {**figure["layout"], "template": _template(template)}})


def _template(name: str) -> dict[str, Any]:
    return copy.copy(_of_plotly(name))


@functools.cache
def _of_plotly(name: str) -> dict[str, Any]:
    found: dict[str, Any] = pio.templates[name].to_plotly_json()
    return found
