"""The carry over time as one figure: a panel per leaf, lines for narrow leaves, a heatmap for wide ones.

The figure is a plain dict and names no colour of the page: Streamlit's theme gives the colour way, the grid and the two
colour scales, so that it is right in light and in dark without a rerun. Lines differ by dash and marker as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from core.base.results import Series
from core.base.text import fill

type Array = np.ndarray[Any, Any]

#: A leaf with more elements than this is a heatmap: more lines cannot be told apart.
MAX_LINES = 8
#: Units of a heatmap that are drawn, and panels of the figure; the note says what is left out.
MAX_UNITS = 64
MAX_PANELS = 6
#: Columns of the table of numbers.
MAX_COLUMNS = 64
#: Markers stand at every t up to this T; beyond, lines alone.
_MAX_MARKERS = 64

_DASHES = ("solid", "dot", "dash", "dashdot", "longdash", "longdashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "pentagon")
_PANEL_HEIGHT, _FIRST_HEIGHT, _GAP = 150, 210, 0.13

TIME_AXIS = "t"
#: Where the scan runs in reverse, t is the index of xs alone: the carry is counted in steps.
DONE_AXIS = "steps done"
PANEL, PANEL_NAMED = "{path}  {type}", "{path} {name}  {type}"
UNIT = "unit"
HOVER_LINE = "{axis} = %{{x}}<br>{name} = %{{y}}<extra></extra>"
HOVER_HEAT = "{axis} = %{{x}}<br>{path}[%{{y}}] = %{{z}}<extra></extra>"
BORN = "not finite from {axis} = {t}"
BORN_AMID = "first not finite at {axis} = {t}"
BORN_ONLY = "not finite at {axis} = {t} only"
ALT = "Carry over time, {axis} = 0 (init) to {length}. {leaves}"
ALT_LINES = "{name} goes from {first} to {last}, between {low} and {high}."
ALT_HEAT = "{name}: heatmap of {units} units, values between {low} and {high}."
ALT_NONE = "{name} has no finite value."
NOTE_UNITS = "{path}: the first {shown} of {count} units are drawn."
NOTE_PANELS = "{count} more leaves are in the table only."
NOTE_KEYS = "{path} holds keys: they have no place on a number axis."
#: The colour of a mark where a step made the first value that is not finite, and where it came in with init.
_ALARM, _CALM = "#D55E00", "#7F8794"


@dataclass(frozen=True, slots=True, eq=False)
class Trajectory:
    """The figure (plotly, as a dict), its alternative text, its numbers as columns of a table, and what is not drawn.

    Attributes:
        figure: None when no leaf can be drawn.
        table: column name -> T + 1 values, the first column is t.
    """

    figure: dict[str, Any] | None
    alt: str
    table: dict[str, list[Any]]
    notes: tuple[str, ...] = ()


def trajectory(
    carries: Sequence[Series], names: Mapping[str, str] = MappingProxyType({}), *, reverse: bool = False
) -> Trajectory:
    """The carry at t = 0 (init) to T in visiting order, per leaf.

    Args:
        carries: `ScanResult.carries`: each with T + 1 values.
        names: short names of leaves by path, beside the path where there are several.
        reverse: the scan ran from the end of xs, so that what is counted is no t.
    """
    word = fill(DONE_AXIS if reverse else TIME_AXIS)
    notes = [fill(NOTE_KEYS, path=s.path) for s in carries if _is_key(s)]
    leaves = [s for s in carries if not _is_key(s) and s.values[0].size]
    drawn = leaves[:MAX_PANELS]
    if len(leaves) > len(drawn):
        notes.append(fill(NOTE_PANELS, count=len(leaves) - len(drawn)))
    notes += [
        fill(NOTE_UNITS, path=s.path, shown=MAX_UNITS, count=s.values[0].size)
        for s in drawn
        if s.values[0].size > MAX_UNITS
    ]
    length = len(carries[0].values) - 1 if carries else 0
    alt = fill(ALT, axis=word, length=length, leaves=" ".join(_described(s) for s in drawn))
    figure = _figure(drawn, length, names, word) if drawn else None
    return Trajectory(figure, alt, _table(leaves, length, word), tuple(notes))


def _is_key(series: Series) -> bool:
    return series.type.aval is not None and series.type.aval.dtype.startswith("key<")


def _is_wide(series: Series) -> bool:
    return bool(series.values[0].size > MAX_LINES)


def _flat(series: Series) -> Array:
    """(T + 1, elements) in float64; whole numbers and booleans are exact in it up to 2**53."""
    return series.values.reshape(len(series.values), -1).astype(np.float64)


def element_names(path: str, shape: tuple[int, ...]) -> list[str]:
    """The path of each element in C order: ``carry[0]``, ``carry['m'][1, 2]``; the path alone for a scalar."""
    if not shape:
        return [path]
    return [f"{path}[{', '.join(map(str, index))}]" for index in np.ndindex(*shape)]


# --- figure ---------------------------------------------------------------------------------------------------------


def _figure(leaves: Sequence[Series], length: int, names: Mapping[str, str], word: str) -> dict[str, Any]:
    heights = [_FIRST_HEIGHT] if len(leaves) == 1 else [_PANEL_HEIGHT] * len(leaves)
    layout: dict[str, Any] = {
        "height": sum(heights),
        "margin": {"l": 8, "r": 8, "t": 24, "b": 4},
        "hovermode": "closest",
        "dragmode": False,
        "showlegend": any(1 < s.values[0].size <= MAX_LINES for s in leaves),
        # At the right end is the button that saves the picture.
        "legend": {"orientation": "h", "x": 0.96, "xanchor": "right", "y": 1, "yanchor": "bottom"},
        "xaxis": _time_axis(word, length, len(leaves), 0.5 if any(_is_wide(s) for s in leaves) else 0.0),
        "annotations": [],
        "shapes": [],
    }
    data: list[dict[str, Any]] = []
    for panel, (leaf, domain) in enumerate(zip(leaves, _domains(heights), strict=True)):
        axis = "y" if panel == 0 else f"y{panel + 1}"
        wide = _is_wide(leaf)
        layout["yaxis" + axis[1:]] = _value_axis(domain, wide)
        name = names.get(leaf.path, "") if len(leaves) > 1 else ""
        layout["annotations"].append(_panel_title(leaf, name, domain))
        data += [_heatmap(leaf, axis, domain, word)] if wide else _lines(leaf, axis, len(data), word)
        _mark_not_finite(layout, leaf, axis, word)
    return {"data": data, "layout": layout}


def _domains(heights: list[int]) -> Iterator[tuple[float, float]]:
    """From the top down, with a gap for the next panel's title."""
    gap = _GAP * _PANEL_HEIGHT / sum(heights) * 2
    free, top = 1 - gap * (len(heights) - 1), 1.0
    for height in heights:
        bottom = top - free * height / sum(heights)
        yield (max(bottom, 0.0), top)
        top = bottom - gap


def _time_axis(word: str, length: int, panels: int, half_cell: float) -> dict[str, Any]:
    pad = max(length * 0.015, 0.08, half_cell)
    axis: dict[str, Any] = {
        "title": {"text": word, "standoff": 4},
        "range": [-pad, max(length, 1) + pad],
        "fixedrange": True,
        "zeroline": False,
        "automargin": True,
        "anchor": "y" if panels == 1 else f"y{panels}",
    }
    return axis | ({"dtick": 1} if length <= 16 else {"nticks": 12})


def _value_axis(domain: tuple[float, float], wide: bool) -> dict[str, Any]:
    axis: dict[str, Any] = {
        "domain": list(domain),
        "fixedrange": True,
        "zeroline": False,
        "automargin": True,
        "nticks": 6,
    }
    return axis | ({"title": {"text": fill(UNIT)}, "autorange": "reversed"} if wide else {})


def _panel_title(leaf: Series, name: str, domain: tuple[float, float]) -> dict[str, Any]:
    return {
        "text": fill(PANEL_NAMED if name else PANEL, name=name, path=leaf.path, type=leaf.type),
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": domain[1],
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "family": "monospace"},
    }


def _lines(leaf: Series, axis: str, offset: int, word: str) -> list[dict[str, Any]]:
    flat = _flat(leaf)
    t = list(range(len(flat)))
    marked = len(flat) - 1 <= _MAX_MARKERS
    out = []
    for column, name in enumerate(element_names(leaf.path, leaf.values.shape[1:])):
        symbol = _SYMBOLS[column % len(_SYMBOLS)]
        trace: dict[str, Any] = {
            "type": "scatter",
            "mode": "lines+markers" if marked else "lines",
            "name": name,
            "x": t,
            "y": _jsonable(flat[:, column]),
            "yaxis": axis,
            "line": {"width": 2, "dash": _DASHES[(offset + column) % len(_DASHES)]},
            "hovertemplate": fill(HOVER_LINE, axis=word, name=name),
            "showlegend": flat.shape[1] > 1,
        }
        if marked:
            # t = 0 is hollow: it is init, no step returned it.
            trace["marker"] = {"size": [9] + [7] * (len(t) - 1), "symbol": [symbol + "-open"] + [symbol] * (len(t) - 1)}
        out.append(trace)
    return out


def _heatmap(leaf: Series, axis: str, domain: tuple[float, float], word: str) -> dict[str, Any]:
    flat = _flat(leaf)[:, :MAX_UNITS]
    finite = flat[np.isfinite(flat)]
    reach = float(np.abs(finite).max()) if finite.size else 1.0
    signed = bool(finite.size) and float(finite.min()) < 0
    return {
        "type": "heatmap",
        "name": leaf.path,
        "z": [_jsonable(row) for row in flat.T],
        "yaxis": axis,
        # Around zero when there are negative values: the theme's diverging scale, else its sequential one.
        "zmin": -reach if signed else 0.0,
        "zmax": reach or 1.0,
        "autocolorscale": True,
        "colorbar": {
            "len": domain[1] - domain[0],
            "y": domain[1],
            "yanchor": "top",
            "thickness": 10,
            "outlinewidth": 0,
        },
        "hovertemplate": fill(HOVER_HEAT, axis=word, path=leaf.path),
        "hoverongaps": False,
    }


def _mark_not_finite(layout: dict[str, Any], leaf: Series, axis: str, word: str) -> None:
    """A line where a leaf is first not finite; calm where that came in with init (a running maximum from -inf)."""
    bad = np.flatnonzero(~np.isfinite(_flat(leaf)).all(axis=1))
    if not bad.size:
        return
    t, span = int(bad[0]), f"{axis} domain"
    color = _ALARM if t else _CALM
    to_the_end = len(bad) == len(leaf.values) - t
    words = BORN if to_the_end and (len(bad) > 1 or t) else BORN_ONLY if len(bad) == 1 else BORN_AMID
    line = {"type": "line", "x0": t, "x1": t, "xref": "x", "y0": 0, "y1": 1, "yref": span}
    layout["shapes"].append({**line, "line": {"width": 1.5, "dash": "dot", "color": color}})
    note = {"x": t, "xref": "x", "y": 1, "yref": span, "showarrow": False, "yanchor": "top"}
    side = "right" if t > 0.6 * (len(leaf.values) - 1) else "left"
    text = fill(words, axis=word, t=t)
    layout["annotations"].append({**note, "text": text, "xanchor": side, "font": {"color": color}})


def _jsonable(values: Array) -> list[float | int | None]:
    """Numbers of the least text that still plots right; what is not finite is a gap."""
    return [_least(float(v)) if math.isfinite(v) else None for v in values]


def _least(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.7g}")


# --- words and numbers ----------------------------------------------------------------------------------------------


def _described(leaf: Series) -> str:
    flat = _flat(leaf)
    finite = flat[np.isfinite(flat)]
    if not finite.size:
        return fill(ALT_NONE, name=leaf.path)
    bounds = {"low": f"{finite.min():.4g}", "high": f"{finite.max():.4g}"}
    if flat.shape[1] > MAX_LINES:
        return fill(ALT_HEAT, name=leaf.path, units=flat.shape[1], **bounds)
    names = element_names(leaf.path, leaf.values.shape[1:])
    return " ".join(
        fill(ALT_LINES, name=name, first=f"{column[0]:.4g}", last=f"{column[-1]:.4g}", **bounds)
        for name, column in zip(names, flat.T, strict=True)
    )


def _table(leaves: Sequence[Series], length: int, word: str) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {word: list(range(length + 1))}
    for leaf in leaves:
        exact = leaf.values.reshape(len(leaf.values), -1)
        for name, column in zip(element_names(leaf.path, leaf.values.shape[1:]), exact.T, strict=True):
            if len(columns) > MAX_COLUMNS:
                return columns
            columns[name] = column.tolist() if column.dtype.kind in "biu" else column.astype(np.float64).tolist()
    return columns
