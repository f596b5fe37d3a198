"""The batch as a grid, B rows by T columns: a click turns a step into padding, a row's label chooses the example.

A components.v2 widget of small ES modules, joined as the drawn cell's are. It also listens to the chart below it: a
click on a point there chooses t and unit, which Streamlit itself offers for no heatmap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
#: In the order of their imports: each file uses only files before it.
_MODULES = ("../player/dom.js", "cells.js", "scan.js", "chart.js", "grid.js")
_IMPORT = re.compile(r'^import \{[^}]*\} from "[\w./]+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def joined_modules() -> str:
    """All files as one ES module: imports between them dropped, only the default export left."""
    sources = ((_HERE / name).read_text(encoding="utf-8") for name in _MODULES)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)


_mount = st.components.v2.component(
    "carry_lab.sequence_grid",
    html='<div class="sequence-grid"></div>',
    css=(_HERE / "grid.css").read_text(encoding="utf-8"),
    js=joined_modules(),
)


def sequence_grid(
    data: Mapping[str, Any],
    *,
    key: str,
    on_toggle: Callable[[], None],
    on_example: Callable[[], None],
    on_point: Callable[[], None],
) -> None:
    """Shows a batch.

    Args:
        data: what `core.plots.sequence_grid.grid_payload` returns.
        key: the widget's key. For the length of one callback its session state holds ``toggle``: ``{"example", "t"}``,
            ``example``: ``{"example"}``, or ``point``: ``{"t", "unit"}``, whichever was clicked.
        on_toggle: called before the rerun that a click on a cell makes.
        on_example: the same for a row's label.
        on_point: the same for a point of the chart.
    """
    _mount(data=dict(data), key=key, on_toggle_change=on_toggle, on_example_change=on_example, on_point_change=on_point)
