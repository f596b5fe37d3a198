"""The drawn cell: gates as bars, a unit's numbers in the equations at a click, in the browser with no rerun.

A components.v2 widget, joined from small ES modules as the scan player is, whose helpers it shares.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import streamlit as st

_HERE = Path(__file__).parent
#: In the order of their imports: each file uses only files before it.
_MODULES = ("../player/dom.js", "geometry.js", "picture.js", "overview.js", "equations.js", "cell.js")
_IMPORT = re.compile(r'^import \{[^}]*\} from "[\w./]+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?!default)", re.MULTILINE)


def joined_modules() -> str:
    """All files as one ES module: imports between them dropped, only the default export left."""
    sources = ((_HERE / name).read_text(encoding="utf-8") for name in _MODULES)
    return "\n".join(_EXPORT.sub("", _IMPORT.sub("", source)) for source in sources)


_mount = st.components.v2.component(
    "carry_lab.cell_drawing",
    html='<div class="cell-drawing"></div>',
    css=(_HERE / "cell.css").read_text(encoding="utf-8"),
    js=joined_modules(),
)


def cell_drawing(data: Mapping[str, Any], *, key: str, on_unit: Callable[[], None]) -> None:
    """Shows one step of a cell.

    Args:
        data: what `core.plots.cell.cell_payload` returns.
        key: the widget's key. After a click its session state holds ``{"unit": n}``, a moment later: the drawing has
            already changed by then, the rerun only takes the choice into the page's state and link.
        on_unit: called before that rerun.
    """
    _mount(data={**data, "key": key}, key=key, on_unit_change=on_unit)
