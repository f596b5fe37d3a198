"""The whole map ‖∂h_s/∂x_t‖ of one cell as a heatmap of log10: blue has shrunk below 1, orange has grown above it.

The triangle above the diagonal is empty: those inputs were not read yet. A map with more than `MAX_CELLS` rows is drawn
in blocks, each with the largest of its values, and the note says so. Heatmaps take no clicks in Streamlit, so unseen
points lie on the cells: they carry the hover text, and a click on one chooses its row.
"""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from core.base.gradients import MemoryMap
from core.base.text import fill
from core.inputs.gradient_fields import CELL_NAMES
from core.inputs.gradient_measure import SUPERSCRIPTS, power_text
from core.plots.gradient_curves import Array, Picture

#: Rows and columns that are drawn.
MAX_CELLS: Final = 64
#: Decades of the colours on either side of 1.
MOST_DECADES: Final = 16
_HEIGHT: Final = 420
_ZERO: Final = "#9AA7B8"
_LINE: Final = "#7F8794"

HOVER = "‖∂{part}<sub>%{{y}}</sub>/∂x<sub>%{{x}}</sub>‖ = %{{customdata:.3~g}}<extra></extra>"
HOVER_BLOCK = "‖∂{part}<sub>s</sub>/∂x<sub>t</sub>‖ ≤ %{{customdata:.3~g}} for %{{text}}<extra></extra>"
BLOCK = "s = {s}, t = {t}"
SPAN = "{first}–{last}"
ROWS, COLUMNS = "s: the state after step s", "t: the input that step t reads"
ALT = (
    "Map of ‖∂{part}_s/∂x_t‖ of the {cell} for s = 1 to {steps} and t below s, as log10. Largest {high}, smallest {low}. "
    "The row after step {row} is marked."
)
ALT_NONE = "Map of ‖∂{part}_s/∂x_t‖ of the {cell}: it holds no positive finite value."
ROW_HEAD, BLOCK_HEAD, COLUMN_HEAD = "{part} after step", "{part} after steps up to", "t = {t}"
NOTE_BLOCKS = (
    "{steps} × {steps} values are too many to draw: each square holds the largest of {block} × {block}. The downloads "
    "have them all."
)
NOTE_ZERO = "Grey: exactly 0, which has no logarithm."
NOTE_WILD = "White gaps below the diagonal: not finite."
NOTE_CLIPPED = "Below 10{power} the colour does not change any more; the number under the pointer does."


def blocks_of(values: Array, most: int = MAX_CELLS) -> tuple[Array, int]:
    """A square map reduced to at most `most` rows by blocks, each with the largest of its values.

    Returns:
        the reduced map and the side of a block; the last block may be cut off. NaN where a whole block is NaN.
    """
    steps = len(values)
    side = -(-steps // most)
    if side == 1:
        return values, 1
    count = -(-steps // side)
    padded = np.full((count * side, count * side), -np.inf)
    padded[:steps, :steps] = np.where(np.isnan(values), -np.inf, values)
    reduced = padded.reshape(count, side, count, side).max(axis=(1, 3))
    return np.where(np.isneginf(reduced), np.nan, reduced), side


def part_of(one: MemoryMap, part: str) -> Array:
    """(T, T): the map of h, or of c where there is one."""
    return one.c if part == "c" and one.c is not None else one.h


def memory_heatmap(one: MemoryMap, part: str, row: int) -> Picture:
    """The map of one cell.

    Args:
        one: its map.
        part: ``h``, or ``c`` of a cell that has one.
        row: 1 to T: the row that is marked.
    """
    part = part if one.c is not None else "h"
    whole = part_of(one, part)
    values, side = blocks_of(whole)
    steps, count = len(whole), len(values)
    drawn = np.tril(np.ones((count, count), bool))
    usable = drawn & np.isfinite(values) & (values > 0)
    zero = drawn & (values == 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(usable, np.log10(np.where(usable, values, 1.0)), np.nan)
    reach, clipped = _reach(logs)
    centres = [(2 * i + 1) * side / 2 - 0.5 for i in range(count)]
    rows = [c + 1 for c in centres]
    data = [_heat(logs, centres, rows, reach, clipped=clipped)]
    if zero.any():
        data.append(_grey(zero, centres, rows))
    data.append(_points(values, drawn, (centres, rows), (part, side, steps)))
    figure = {"data": data, "layout": _layout(steps, side, row)}
    notes = [fill(NOTE_BLOCKS, steps=steps, block=side)] if side > 1 else []
    notes += [fill(NOTE_ZERO)] if zero.any() else []
    notes += [fill(NOTE_WILD)] if (drawn & ~np.isfinite(values)).any() else []
    notes += [fill(NOTE_CLIPPED, power=_power(-reach))] if clipped else []
    return Picture(figure, _alt(one, part, whole, row), _table(values, side, part), tuple(notes))


def _reach(logs: Array) -> tuple[int, bool]:
    """How many decades on either side of 1 the colours span; whether there are values beyond."""
    finite = logs[np.isfinite(logs)]
    wanted = max(math.ceil(float(np.abs(finite).max())), 1) if finite.size else 1
    return min(wanted, MOST_DECADES), wanted > MOST_DECADES


def _power(exponent: float) -> str:
    return f"{exponent:g}".translate(SUPERSCRIPTS)


def _heat(logs: Array, x: list[float], y: list[float], reach: int, *, clipped: bool) -> dict[str, Any]:
    half = reach // 2
    ticks = [-reach, -half, 0, half, reach] if half else [-reach, 0, reach]
    texts = ["1" if tick == 0 else f"10{_power(tick)}" for tick in ticks]
    if clipped:
        texts[0], texts[-1] = f"≤ {texts[0]}", f"≥ {texts[-1]}"
    cells = np.round(logs, 2).astype(object)
    cells[~np.isfinite(logs)] = None
    return {
        "type": "heatmap",
        "x": x,
        "y": y,
        # Colours need no more than two decimals of a logarithm; what is not finite is a gap.
        "z": cells.tolist(),
        "zmin": -reach,
        "zmax": reach,
        "autocolorscale": True,
        "hoverinfo": "skip",
        "colorbar": {"thickness": 10, "outlinewidth": 0, "len": 1, "tickvals": ticks, "ticktext": texts},
    }


def _grey(zero: Array, x: list[float], y: list[float]) -> dict[str, Any]:
    return {
        "type": "heatmap",
        "x": x,
        "y": y,
        "z": [[1 if cell else None for cell in row] for row in zero],
        "colorscale": [[0, _ZERO], [1, _ZERO]],
        "opacity": 0.55,
        "showscale": False,
        "hoverinfo": "skip",
    }


def _points(
    values: Array, drawn: Array, at: tuple[list[float], list[float]], about: tuple[str, int, int]
) -> dict[str, Any]:
    """The unseen points that take hover and clicks."""
    part, side, steps = about
    rows, columns = np.nonzero(drawn)
    named: dict[str, Any] = {"hovertemplate": fill(HOVER if side == 1 else HOVER_BLOCK, part=part)}
    if side > 1:
        ends = [fill(SPAN, first=s * side + 1, last=min((s + 1) * side, steps)) for s in range(len(drawn))]
        starts = [fill(SPAN, first=t * side, last=min((t + 1) * side, steps) - 1) for t in range(len(drawn))]
        named["text"] = [fill(BLOCK, s=ends[s], t=starts[t]) for s, t in zip(rows, columns, strict=True)]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": np.asarray(at[0])[columns].tolist(),
        "y": np.asarray(at[1])[rows].tolist(),
        "customdata": [_short(v) for v in values[rows, columns].tolist()],
        "marker": {"size": 9, "opacity": 0, "color": _LINE},
        "showlegend": False,
        "selected": {"marker": {"opacity": 0}},
        "unselected": {"marker": {"opacity": 0}},
        **named,
    }


def _short(value: float) -> float | str:
    """A number of the least text for the pointer, which says NaN and infinity too."""
    return float(f"{value:.3g}") if math.isfinite(value) else power_text(value)


def _layout(steps: int, side: int, row: int) -> dict[str, Any]:
    top = (row - 1) // side * side + 0.5
    mark = {"type": "rect", "xref": "x", "yref": "y", "x0": -0.5, "x1": row - 0.5, "y0": top, "y1": top + side}
    ticks: dict[str, Any] = {"dtick": 1} if steps <= 16 else {"nticks": 10}
    axis = {"fixedrange": True, "zeroline": False, "showgrid": False, "automargin": True, **ticks}
    return {
        "height": _HEIGHT,
        "margin": {"l": 8, "r": 8, "t": 8, "b": 4},
        "hovermode": "closest",
        "clickmode": "event+select",
        "dragmode": False,
        "showlegend": False,
        "xaxis": {**axis, "title": {"text": fill(COLUMNS), "standoff": 4}, "range": [-0.5, steps - 0.5]},
        "yaxis": {**axis, "title": {"text": fill(ROWS), "standoff": 4}, "range": [steps + 0.5, 0.5]},
        "shapes": [{**mark, "line": {"width": 1.5, "color": _LINE}}],
        "annotations": [],
    }


def _alt(one: MemoryMap, part: str, whole: Array, row: int) -> str:
    lower = whole[np.tril_indices(len(whole))]
    lower = lower[np.isfinite(lower) & (lower > 0)]
    cell = CELL_NAMES[one.kind]
    if not lower.size:
        return fill(ALT_NONE, part=part, cell=cell)
    low, high = power_text(float(lower.min())), power_text(float(lower.max()))
    return fill(ALT, part=part, cell=cell, steps=len(whole), high=high, low=low, row=row)


def _table(values: Array, side: int, part: str) -> dict[str, list[Any]]:
    """A row for each row that is drawn; columns by t."""
    count = len(values)
    head = fill(ROW_HEAD if side == 1 else BLOCK_HEAD, part=part)
    table: dict[str, list[Any]] = {head: [(s + 1) * side for s in range(count)]}
    for t in range(count):
        table[fill(COLUMN_HEAD, t=t * side)] = [None if s < t else float(values[s, t]) for s in range(count)]
    return table
