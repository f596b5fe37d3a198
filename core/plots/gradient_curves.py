"""How much of each input a state remembers: one row of every cell's map as curves on a log axis.

A derivative that is exactly 0 has no place on a log axis: it is drawn as a hollow mark at the lower edge, and said.
Figures are plain dicts without page colours, as in `core.plots.trajectory`: the theme gives the colour way, by the order
of the traces (`COLOURS` are the same for what stands beside the plot).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.base.gradients import MemoryMap
from core.base.text import fill
from core.inputs.gradient_fields import CELL_NAMES
from core.inputs.gradient_measure import below, decay_of, power_text

type Array = np.ndarray[Any, Any]

#: By cell: the colour of its curve in light and in dark (the theme's first three), its symbol and its sign in text.
COLOURS: Final[Mapping[str, tuple[str, str]]] = {
    "LSTMCell": ("#0072B2", "#56B4E9"),
    "GRUCell": ("#D55E00", "#E69F00"),
    "SimpleCell": ("#009E73", "#45C9A1"),
}
SYMBOLS: Final[Mapping[str, str]] = {"LSTMCell": "circle", "GRUCell": "square", "SimpleCell": "diamond"}
SIGNS: Final[Mapping[str, str]] = {"LSTMCell": "●", "GRUCell": "■", "SimpleCell": "◆"}
_DASHES: Final[Mapping[str, str]] = {"LSTMCell": "solid", "GRUCell": "dash", "SimpleCell": "dashdot"}
_CELL_STATE: Final = {"symbol": "triangle-up", "dash": "dot"}
_CALM: Final = "#7F8794"
_HEIGHT: Final = 330
#: Markers of one curve: more touch each other.
_MARKERS: Final = 50

NAME = "{cell} {part}"
TIME = "t"
HOVER = "{name}: ‖∂{part}{s}/∂x<sub>%{{x}}</sub>‖ = %{{customdata}}<extra></extra>"
HOVER_ZERO = "{name}: exactly 0 at t = %{{x}}<extra></extra>"
ZERO_NAME = "exactly 0"
ALT = "How much of each input x at t = 0 to {last} the state after step {s} remembers, on a log axis. {curves}"
ALT_CURVE = "{name}: {first} at t = 0, {end} at t = {last}; it {words}."
NOTE_ZERO = "{name}: {count} of {of} values are exactly 0. A log axis has no place for 0: they are the hollow marks at the lower edge."
NOTE_WILD = "{name}: {count} of {of} values are not finite; they are gaps."


@dataclass(frozen=True, slots=True, eq=False)
class Curve:
    """One curve: of which cell, which part of the state, and its values (s,) for t = 0 … s − 1."""

    kind: str
    part: str
    values: Array

    @property
    def name(self) -> str:
        """``LSTM h``."""
        return fill(NAME, cell=CELL_NAMES[self.kind], part=self.part)


@dataclass(frozen=True, slots=True, eq=False)
class Picture:
    """A figure (plotly, as a dict), its alternative text, its numbers as columns of a table, and notes beneath it."""

    figure: dict[str, Any]
    alt: str
    table: dict[str, list[Any]]
    notes: tuple[str, ...] = ()


def curves_of(maps: Sequence[MemoryMap], s: int) -> tuple[Curve, ...]:
    """The curves of the state after step `s` (1 to T): h of every cell in order, then c where there is one."""
    rows = [Curve(one.kind, "h", one.h[s - 1, :s]) for one in maps]
    return (*rows, *(Curve(one.kind, "c", one.c[s - 1, :s]) for one in maps if one.c is not None))


def memory_curves(maps: Sequence[MemoryMap], s: int) -> Picture:
    """Row `s` of every map.

    Args:
        maps: of the cells over the same T steps.
        s: 1 to T: which state is asked what it remembers.
    """
    curves = curves_of(maps, s)
    steps = len(maps[0].h)
    low, high = log_range([curve.values for curve in curves])
    zeros = any((curve.values == 0).any() for curve in curves)
    floor = low - 0.06 * (high - low) if zeros else low
    data = [_trace(curve, s) for curve in curves]
    data += [_zeros(curve, floor) for curve in curves if (curve.values == 0).any()]
    figure = {"data": data, "layout": _layout(steps, s, floor - 0.03 * (high - low), high)}
    words = " ".join(_described(curve) for curve in curves)
    table: dict[str, list[Any]] = {"t": list(range(s)), **{c.name: c.values.tolist() for c in curves}}
    return Picture(figure, fill(ALT, last=s - 1, s=s, curves=words), table, tuple(_notes(curves)))


def log_range(rows: Sequence[Array]) -> tuple[float, float]:
    """The decades (log10) that hold every positive finite value, at least one."""
    values = np.concatenate([row[np.isfinite(row) & (row > 0)] for row in rows])
    if not values.size:
        return -1.0, 1.0
    low, high = math.log10(float(values.min())), math.log10(float(values.max()))
    room = max(0.04 * (high - low), 0.15)
    return low - room, max(high + room, low + 1.0)


def _trace(curve: Curve, s: int) -> dict[str, Any]:
    cell = curve.part == "c"
    symbol, dash = (_CELL_STATE["symbol"], _CELL_STATE["dash"]) if cell else (SYMBOLS[curve.kind], _DASHES[curve.kind])
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": curve.name,
        "x": list(range(len(curve.values))),
        "y": [positive(v) for v in curve.values],
        "customdata": [power_text(float(v), 3) for v in curve.values],
        "line": {"width": 1.6 if cell else 2.2, "dash": dash},
        "marker": {"size": 6 if cell else 7, "symbol": symbol, "maxdisplayed": _MARKERS},
        "hovertemplate": fill(HOVER, name=curve.name, part=curve.part, s=below(s)),
        **untouched(),
    }


def untouched() -> dict[str, Any]:
    """A click chooses a t; it must not fade what was not clicked."""
    return {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}


def positive(value: float) -> float | None:
    """A number that a log axis can hold, of the least text that still plots right; None for a gap."""
    return float(f"{value:.5g}") if math.isfinite(value) and value > 0 else None


def _zeros(curve: Curve, floor: float) -> dict[str, Any]:
    at = np.flatnonzero(curve.values == 0)
    symbol = _CELL_STATE["symbol"] if curve.part == "c" else SYMBOLS[curve.kind]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": fill(ZERO_NAME),
        "x": at.tolist(),
        "y": [10.0**floor] * len(at),
        "marker": {"size": 6, "symbol": f"{symbol}-open", "color": _CALM},
        "showlegend": False,
        "hovertemplate": fill(HOVER_ZERO, name=curve.name),
        **untouched(),
    }


def _layout(steps: int, s: int, low: float, high: float) -> dict[str, Any]:
    pad = max((steps - 1) * 0.015, 0.3)
    layout: dict[str, Any] = {
        "height": _HEIGHT,
        "margin": {"l": 8, "r": 8, "t": 34, "b": 4},
        "hovermode": "closest",
        "clickmode": "event+select",
        "dragmode": False,
        "showlegend": True,
        # At the right end is the button that saves the picture.
        "legend": {"orientation": "h", "x": 0.96, "xanchor": "right", "y": 1.0, "yanchor": "bottom"},
        "xaxis": {
            "title": {"text": fill(TIME), "standoff": 4},
            "range": [-pad, max(steps - 1, 1) + pad],
            "fixedrange": True,
            "zeroline": False,
            "automargin": True,
            **({"dtick": 1} if steps <= 16 else {"nticks": 12}),
        },
        "yaxis": log_axis(low, high),
        "annotations": [],
        "shapes": [],
    }
    if s < steps:
        line = {"type": "line", "x0": s - 0.5, "x1": s - 0.5, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
        layout["shapes"].append({**line, "line": {"width": 1.5, "dash": "dot", "color": _CALM}})
    return layout


def log_axis(low: float, high: float) -> dict[str, Any]:
    """A log axis over these decades, with whole powers of ten on it."""
    return {
        "type": "log",
        "range": [low, high],
        "dtick": max(math.ceil((high - low) / 7), 1),
        "exponentformat": "power",
        "fixedrange": True,
        "zeroline": False,
        "automargin": True,
    }


def _described(curve: Curve) -> str:
    values = curve.values
    return fill(
        ALT_CURVE,
        name=curve.name,
        first=power_text(float(values[0])),
        end=power_text(float(values[-1])),
        last=len(values) - 1,
        words=decay_of(values).words,
    )


def _notes(curves: Sequence[Curve]) -> list[str]:
    out = []
    for curve in curves:
        zeros, wild = int((curve.values == 0).sum()), int((~np.isfinite(curve.values)).sum())
        if zeros:
            out.append(fill(NOTE_ZERO, name=curve.name, count=zeros, of=len(curve.values)))
        if wild:
            out.append(fill(NOTE_WILD, name=curve.name, count=wild, of=len(curve.values)))
    return out
