"""The traces of a layer over time: units as lines or as rows of colour, the chosen one bold, gates with their names.

Lines of other units are one trace with gaps between them: eight scatter traces take twice the time to paint (FACTS.md).
Each point carries its position and its unit, so that a click on it says what was meant.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from core.base.sequences import Direction
from core.base.text import fill
from core.plots.sequence_axis import pieces, runs, skipped
from core.runners.cell_formulas import CellKind

type Array = np.ndarray[Any, Any]

#: Places of the theme's colour list, as Streamlit's own plotly template names them: blue, orange, the text's colour.
C_COLOR, H_COLOR, TEXT_COLOR = "#000001", "#000002", "#000010"
GATE_COLORS: Final = ("#000005", "#000004", "#000006", "#000008")
GATE_DASHES: Final = ("solid", "dash", "dot", "dashdot")
#: The colour of what is wrong: readable on white and on the dark page.
ALARM: Final = "#d64a3f"
COLORS: Final = {"c": C_COLOR, "h": H_COLOR}

#: Units that are drawn; a note says what is left out.
MAX_UNITS: Final = 64
#: Up to this T there is a marker at each t of the chosen unit.
_MAX_MARKERS: Final = 64
#: Opacity of padding in a heatmap.
_PALE: Final = 0.45
#: The least distance of two gates' names at the right end, as a part of their axis.
_NAME_STEP: Final = 0.16

HOVER_CARRY: Final = "{part} of unit %{{customdata[1]}} at t = %{{x}}: %{{y}}<extra>{run}</extra>"
HOVER_HEAT: Final = "{part} of unit %{{customdata[1]}} at t = %{{x}}: %{{z}}<extra></extra>"
HOVER_GATE: Final = "{gate} = %{{y}}, in the step that made t = %{{x}}<extra>{run}</extra>"
SECOND: Final = "second run"


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """One direction of one run, of one example: carries (T + 1, H) and gates (T, H) by name.

    `at` is the edge of each position, `real` whether its step is part of the sequence (the initial carry is); `unit` the
    chosen one.
    """

    kind: CellKind
    carries: dict[str, Array]
    gates: dict[str, Array]
    at: Array
    real: Array
    unit: int

    @property
    def units(self) -> int:
        """H."""
        return int(next(iter(self.carries.values())).shape[1])

    @property
    def shown(self) -> list[int]:
        """The units that are drawn: the first ones, and the chosen one in the last place where it is none of them."""
        first = list(range(min(self.units, MAX_UNITS)))
        return first if self.unit in first else [*first[:-1], self.unit]


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its axis's name, its place in the figure from 0 at the bottom to 1, and its pixels."""

    axis: str
    low: float
    high: float
    height: int


def padding(direction: Direction, example: int) -> list[dict[str, Any]]:
    """Hatched rectangles behind everything, over the columns that are no part of this example's sequence."""
    x: list[float | None] = []
    y: list[float | None] = []
    for first, after in runs(skipped(direction, example)):
        x += [first, after, after, first, first, None]
        y += [0, 0, 1, 1, 0, None]
    if not x:
        return []
    return [
        {
            "type": "scatter",
            "x": x,
            "y": y,
            "mode": "lines",
            "line": {"width": 0},
            "fill": "toself",
            "fillpattern": {
                "shape": "/",
                "size": 7,
                "solidity": 0.14,
                "fgcolor": "rgba(127, 135, 148, 0.5)",
                "bgcolor": "rgba(127, 135, 148, 0.10)",
            },
            "hoverinfo": "skip",
            "showlegend": False,
        }
    ]


def carry_lines(run: Drawn, part: str, panel: Panel, other: Drawn | None) -> list[dict[str, Any]]:
    """Other units, the second run, and over both the chosen unit."""
    out = [_thin(run, part, panel)] if run.units > 1 else []
    if other is not None and part in other.carries:
        out.append(_bold(other, part, panel, second=True))
    return [*out, _bold(run, part, panel)]


def _points(run: Drawn, values: Array, positions: Sequence[Sequence[int]]) -> dict[str, list[Any]]:
    """x, y and customdata (position, unit) of values (T + 1,), with a gap after each piece."""
    x: list[Any] = []
    y: list[Any] = []
    points: list[Any] = []
    for piece in positions:
        x += [*run.at[piece].tolist(), None]
        y += [*jsonable(values[piece]), None]
        points += [*([p, run.unit] for p in piece), None]
    return {"x": x[:-1], "y": y[:-1], "customdata": points[:-1]}


def _thin(run: Drawn, part: str, panel: Panel) -> dict[str, Any]:
    positions = pieces(run.at)
    lines: dict[str, list[Any]] = {"x": [], "y": [], "customdata": []}
    for unit in run.shown:
        if unit != run.unit:
            one = _points(replace(run, unit=unit), run.carries[part][:, unit], positions)
            for name, values in one.items():
                lines[name] += [*values, None]
    return {
        "type": "scatter",
        "mode": "lines",
        **lines,
        "yaxis": panel.axis,
        "line": {"width": 1.2, "color": COLORS[part]},
        "opacity": 0.4,
        "hovertemplate": fill(HOVER_CARRY, part=part, run=""),
        "showlegend": False,
    }


def _bold(run: Drawn, part: str, panel: Panel, *, second: bool = False) -> dict[str, Any]:
    points = _points(run, run.carries[part][:, run.unit], pieces(run.at))
    marked = len(run.at) - 1 <= _MAX_MARKERS and not second
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers" if marked else "lines",
        **points,
        "yaxis": panel.axis,
        "line": {"width": 2.4, "color": COLORS[part], "dash": "dash" if second else "solid"},
        "hovertemplate": fill(HOVER_CARRY, part=part, run=fill(SECOND) if second else ""),
        "showlegend": False,
    }
    if marked:
        # The initial carry is hollow: no step returned it.
        first = [point is not None and point[0] == 0 for point in points["customdata"]]
        trace["marker"] = {
            "size": [9 if hollow else 6 for hollow in first],
            "symbol": ["circle-open" if hollow else "circle" for hollow in first],
            "color": COLORS[part],
        }
    return trace


def carry_heat(run: Drawn, part: str, panel: Panel) -> list[dict[str, Any]]:
    """A row for each unit, a column for each t: blue below zero, orange above. Padding is pale, so its hatching shows."""
    order = np.argsort(run.at)
    values = run.carries[part][order][:, run.shown].astype(np.float64)
    finite = values[np.isfinite(values)]
    reach = float(np.abs(finite).max(initial=0.0)) or 1.0
    real = run.real[order][:, None]
    out = [_cells(run, part, panel, np.where(real, values, np.nan), reach)]
    out[0]["colorbar"] = {
        "len": panel.high - panel.low,
        "y": panel.high,
        "yanchor": "top",
        "x": 1,
        "xpad": 8,
        "ypad": 0,
        "thickness": 9,
        "outlinewidth": 0,
        "nticks": 3,
    }
    if not real.all():
        pale = _cells(run, part, panel, np.where(real, np.nan, values), reach)
        out.append({**pale, "opacity": _PALE, "showscale": False})
    return out


def _cells(run: Drawn, part: str, panel: Panel, values: Array, reach: float) -> dict[str, Any]:
    order = np.argsort(run.at)
    return {
        "type": "heatmap",
        "name": part,
        "x": run.at[order].tolist(),
        "y": list(range(len(run.shown))),
        "z": [jsonable(row) for row in values.T],
        "customdata": [[[p, unit] for p in order.tolist()] for unit in run.shown],
        "yaxis": panel.axis,
        "zmin": -reach,
        "zmax": reach,
        "autocolorscale": True,
        "xgap": 1 if len(order) <= MAX_UNITS else 0,
        "ygap": 1 if len(run.shown) <= MAX_UNITS // 2 else 0,
        "hovertemplate": fill(HOVER_HEAT, part=part),
        "hoverongaps": False,
    }


def gate_lines(run: Drawn, panel: Panel, other: Drawn | None) -> list[dict[str, Any]]:
    """Each gate of the chosen unit, at the t of the carry that its step made; the second run's thin and pale."""
    out = []
    for drawn, second in ((other, True), (run, False)):
        if drawn is None:
            continue
        positions = [[p for p in piece if p] for piece in pieces(drawn.at)]
        for number, (name, values) in enumerate(drawn.gates.items()):
            out.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    **_points(drawn, np.concatenate([[np.nan], values[:, drawn.unit]]), positions),
                    "yaxis": panel.axis,
                    "line": {
                        "width": 1.1 if second else 2,
                        "dash": GATE_DASHES[number % len(GATE_DASHES)],
                        "color": GATE_COLORS[number % len(GATE_COLORS)],
                    },
                    "opacity": 0.5 if second else 1,
                    "hovertemplate": fill(HOVER_GATE, gate=name, run=fill(SECOND) if second else ""),
                    "showlegend": False,
                }
            )
    return out


def gate_names(run: Drawn, panel: Panel, words: dict[str, str]) -> list[dict[str, Any]]:
    """Each gate's letter at the right end of its line, moved apart where they would lie on each other."""
    if len(run.at) < 2:
        return []
    last = int(np.argmax(run.at[1:]))
    low, high = gate_range(run)
    ends = []
    for number, (name, values) in enumerate(run.gates.items()):
        value = float(values[last, run.unit])
        ends.append(((value - low) / (high - low) if math.isfinite(value) else 0.5, number, name))
    places = spread([place for place, _, _ in ends], _NAME_STEP)
    return [
        {
            "text": f"<b>{name}</b> {words.get(name, '')}",
            "xref": "paper",
            "yref": f"{panel.axis} domain",
            "x": 1,
            "y": place,
            "xanchor": "left",
            "yanchor": "middle",
            "showarrow": False,
            "font": {"size": 11, "color": GATE_COLORS[number % len(GATE_COLORS)]},
        }
        for place, (_, number, name) in zip(places, ends, strict=True)
    ]


def gate_range(run: Drawn) -> tuple[float, float]:
    """The axis of the gates: 0 to 1, from −1 where one of them is a tanh."""
    signed = any(g.curve == "tanh" for g in run.kind.gates if g.name in run.gates)
    return (-1.05, 1.05) if signed else (-0.03, 1.05)


def spread(places: Sequence[float], step: float) -> list[float]:
    """Places of labels from 0 to 1, at least `step` apart where there is room, in the same order."""
    if not places:
        return []
    step = min(step, 1.0 / max(len(places) - 1, 1))
    order = sorted(range(len(places)), key=lambda i: places[i])
    out, floor = [0.0] * len(places), 0.0
    for i in order:
        out[i] = floor = max(min(places[i], 1.0), floor)
        floor += step
    ceiling = 1.0
    for i in reversed(order):
        out[i] = min(out[i], ceiling)
        ceiling = out[i] - step
    return out


def jsonable(values: Array) -> list[float | int | None]:
    """Numbers of the least text that still plots right; what is not finite is a gap."""
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values.tolist()]
