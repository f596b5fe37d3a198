"""A figure as a projector shows it: everything that plotly counts in pixels, larger by one factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: What is counted in pixels, by its name in a figure's layout.
_PIXELS: Final = frozenset(
    {"height", "xshift", "yshift", "ax", "ay", "standoff", "l", "r", "t", "b", "pad", "size", "thickness", "itemwidth"}
)
#: Pixels of words where a figure does not say.
_TEXT: Final = 12


def enlarged(figure: Mapping[str, Any], by: float) -> dict[str, Any]:
    """The same figure with a layout that is `by` times as large: height, margins, fonts, shifts of annotations.

    Its width is the page's. Lines and markers stay as they are: they are read by their place.
    """
    # Sizes are said here, and not left to the page's theme: plotly makes room for words of the size that it knows.
    size = {"size": _TEXT * by}
    layout = _grown(figure["layout"], by)
    for name, axis in layout.items():
        if name.startswith(("xaxis", "yaxis")):
            axis["tickfont"] = {**size, **axis.get("tickfont", {})}
            if axis.get("exponentformat") == "power":
                axis["exponentformat"] = "e"  # 1e−6 is as large as its label; the raised −6 of a power is not
    legend = layout.get("legend", {})
    layout["legend"] = {**legend, "font": {**size, **legend.get("font", {})}}
    return {**figure, "data": [_with_bar(trace, size, by) for trace in figure["data"]], "layout": layout}


def _with_bar(trace: Mapping[str, Any], size: Mapping[str, float], by: float) -> Mapping[str, Any]:
    """The trace; with words as large beside its bar of colours, where it has one."""
    if "colorbar" not in trace:
        return trace
    bar = _grown(trace["colorbar"], by)
    return {**trace, "colorbar": {**bar, "tickfont": {**size, **bar.get("tickfont", {})}}}


def _grown(part: Any, by: float) -> Any:
    if isinstance(part, Mapping):
        return {name: _scaled(name, value, by) for name, value in part.items()}
    if isinstance(part, list | tuple):
        return [_grown(one, by) for one in part]
    return part


def _scaled(name: str, value: Any, by: float) -> Any:
    pixels = name in _PIXELS and isinstance(value, int | float) and not isinstance(value, bool)
    return value * by if pixels else _grown(value, by)
