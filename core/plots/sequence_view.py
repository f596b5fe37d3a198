"""A layer over time as one figure: c and h of every unit, the gates of the chosen one, all on the batch's time axis.

As in `core.plots.trajectory` the figure is a plain dict without the page's colours: it names places of the theme's colour
list (`core.plots.sequence_traces`), which Streamlit's front end fills in light and in dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.base.sequences import Direction, SequenceResult
from core.base.text import fill
from core.plots.sequence_axis import edges
from core.plots.sequence_traces import (
    ALARM,
    MAX_UNITS,
    TEXT_COLOR,
    Drawn,
    Panel,
    carry_heat,
    carry_lines,
    gate_lines,
    gate_names,
    gate_range,
    padding,
)
from core.runners.cell_formulas import KINDS, CellKind

WORDS: Final = {"c": "cell state", "h": "hidden state"}
GATE_WORDS: Final = {
    "i": "input",
    "f": "forget",
    "g": "cand.",
    "o": "output",
    "r": "reset",
    "z": "update",
    "n": "cand.",
}

#: Pixels left and right of the time axis, the same in the grid above: columns stand over their interval.
LEFT, RIGHT = 62, 66
_TOP, _BOTTOM, _GAP = 22, 40, 34
_LINES_HEIGHT, _GATES_HEIGHT, _ROW, _LEAST_HEIGHT, _MOST_HEIGHT = 132, 118, 13, 84, 230
#: Columns of the table of numbers.
MAX_COLUMNS: Final = 64

AXIS: Final = "t (0 is the initial carry)"
AXIS_REVERSED: Final = "t (read from the right; the initial carry is the hollow one)"
AXIS_MISREAD: Final = "what the layer takes for t: the examples of the batch"
PANEL: Final = "<b>{part}</b> {word}, {type}"
GATES: Final = "gates of unit {unit}"
UNIT: Final = "unit"
BORN: Final = "not finite from here"
ALT: Final = "{kind}, example {example}, {direction}, t = 0 to {length}. {parts} {gates}"
ALT_PART: Final = "{part} of unit {unit} goes from {first} to {last}; all {units} units lie between {low} and {high}."
ALT_NONE: Final = "{part} has no finite value."
ALT_GATES: Final = "The gates of unit {unit}: {ranges}."
ALT_GATE: Final = "{gate} from {low} to {high}"
FORWARD: Final = "forward"
BACKWARD: Final = "reversed"
NOTE_UNITS: Final = "{shown} of {count} units are drawn."
READS: Final = "reads x at"
VALID: Final = "part of it"
TIME: Final = "t"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is looked at: example, position in visiting order (0 is the initial carry), unit, and the direction (0 or 1)."""

    example: int = 0
    position: int = 0
    unit: int = 0
    side: int = 0

    def within(self, result: SequenceResult) -> Chosen:
        """The same, brought into what the result has."""
        side = min(self.side, len(result.directions) - 1)
        direction = result.directions[side]
        length, batch, units = direction.outputs.shape
        return Chosen(
            min(max(self.example, 0), max(batch - 1, 0)),
            min(max(self.position, 0), length),
            min(max(self.unit, 0), max(units - 1, 0)),
            side,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SequenceView:
    """The figure (plotly, as a dict), its alternative text, its numbers as columns of a table, and what is not drawn.

    `positions`: for each edge of the time axis the position in visiting order that stands on it; a click needs it.
    """

    figure: dict[str, Any]
    alt: str
    table: dict[str, list[Any]]
    positions: tuple[int, ...]
    notes: tuple[str, ...] = ()


def sequence_view(
    result: SequenceResult,
    chosen: Chosen,
    *,
    heatmap: bool = False,
    second: SequenceResult | None = None,
    misread: bool = False,
) -> SequenceView:
    """Everything of one example over time.

    Args:
        result: a run.
        chosen: example, t, unit and direction; brought into range.
        heatmap: units as rows of colour instead of lines.
        second: another run to lay over it, dashed; of it the same example and unit, where it has them.
        misread: the layer takes the batch for time, so what counts along the axis is no t.
    """
    chosen = chosen.within(result)
    direction = result.directions[chosen.side]
    run = _run(result.kind, direction, chosen)
    other = None
    if second is not None:
        there = chosen.within(second)
        other = _run(second.kind, second.directions[there.side], there)
    length = result.length
    panels = _panels(run, heatmap=heatmap)
    layout = _layout(length, panels, _axis_title(result, chosen, misread=misread))
    data: list[dict[str, Any]] = []
    data += padding(direction, chosen.example)
    for panel, part in zip(panels, run.kind.parts, strict=False):
        _title(layout, panel, fill(PANEL, part=part, word=fill(WORDS[part]), type=_type(direction, run.kind, part)))
        data += carry_heat(run, part, panel) if heatmap else carry_lines(run, part, panel, other)
        _mark(layout, run, part, panel, chosen, heatmap=heatmap)
        _mark_not_finite(layout, run, part, panel)
    if run.gates:
        _title(layout, panels[-1], fill(GATES, unit=run.unit))
        data += gate_lines(run, panels[-1], other)
        layout["annotations"] += gate_names(run, panels[-1], GATE_WORDS)
        layout["yaxis" + panels[-1].axis[1:]]["range"] = list(gate_range(run))
    _cursor(layout, int(run.at[chosen.position]))
    notes = (fill(NOTE_UNITS, shown=MAX_UNITS, count=run.units),) if run.units > MAX_UNITS else ()
    return SequenceView(
        {"data": data, "layout": layout},
        _described(result, run, chosen),
        _table(direction, run, chosen.example),
        tuple(np.argsort(run.at, kind="stable").tolist()),
        notes,
    )


def _run(kind: str, direction: Direction, chosen: Chosen) -> Drawn:
    spec = KINDS[kind]
    carries = {p: c[:, chosen.example] for p, c in zip(spec.parts, direction.carries, strict=True)}
    named = [gate.name for gate in spec.gates if gate.name not in ("h′", "c′") and gate.name in direction.gates]
    gates = {name: direction.gates[name][:, chosen.example] for name in named}
    real = np.concatenate([[True], direction.valid[:, chosen.example]])
    return Drawn(spec, carries, gates, edges(direction, chosen.example), real, chosen.unit)


# --- layout ---------------------------------------------------------------------------------------------------------


def _panels(run: Drawn, *, heatmap: bool) -> list[Panel]:
    shown = min(run.units, MAX_UNITS)
    tall = min(max(shown * _ROW, _LEAST_HEIGHT), _MOST_HEIGHT) if heatmap else _LINES_HEIGHT
    heights = [tall] * len(run.carries) + ([_GATES_HEIGHT] if run.gates else [])
    whole = sum(heights) + _GAP * (len(heights) - 1)
    out, top = [], whole
    for number, height in enumerate(heights):
        # The first axis is the background with the padding: what is drawn on the others lies over it.
        out.append(Panel(f"y{number + 2}", (top - height) / whole, top / whole, height))
        top -= height + _GAP
    return out


def _layout(length: int, panels: Sequence[Panel], title: str) -> dict[str, Any]:
    inside = sum(p.height for p in panels) + _GAP * (len(panels) - 1)
    layout: dict[str, Any] = {
        "height": inside + _TOP + _BOTTOM,
        "margin": {"l": LEFT, "r": RIGHT, "t": _TOP, "b": _BOTTOM, "pad": 0},
        "hovermode": "closest",
        "dragmode": False,
        "showlegend": False,
        # Else each panel's background would cover the padding, which is drawn on the first axis.
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "annotations": [],
        "shapes": [],
        "xaxis": {
            "title": {"text": title, "standoff": 4, "font": {"size": 12}},
            "range": [-0.5, length + 0.5],
            "fixedrange": True,
            "zeroline": False,
            "automargin": False,
            "anchor": panels[-1].axis,
            "showgrid": False,
            **({"dtick": 1} if length <= 24 else {"nticks": 14}),
        },
        "yaxis": {"domain": [0, 1], "range": [0, 1], "visible": False, "fixedrange": True},
    }
    for panel in panels:
        layout["yaxis" + panel.axis[1:]] = {
            "domain": [max(panel.low, 0.0), min(panel.high, 1.0)],
            "fixedrange": True,
            "zeroline": True,
            "zerolinewidth": 1,
            "automargin": False,
            "nticks": 5,
        }
    return layout


def _axis_title(result: SequenceResult, chosen: Chosen, *, misread: bool) -> str:
    if misread:
        return fill(AXIS_MISREAD)
    backward = result.reverse if result.backward is None else chosen.side == 1
    return fill(AXIS_REVERSED if backward else AXIS)


def _title(layout: dict[str, Any], panel: Panel, text: str) -> None:
    layout["annotations"].append(
        {
            "text": text,
            "xref": "paper",
            "yref": "paper",
            "x": 0,
            "y": panel.high,
            "yshift": 2,
            "xanchor": "left",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"size": 12},
        }
    )


def _type(direction: Direction, kind: CellKind, part: str) -> str:
    values = direction.carries[kind.parts.index(part)]
    length, batch, units = values.shape
    return f"{values.dtype}[{length}, {batch}, {units}] (T + 1, B, H)"


def _cursor(layout: dict[str, Any], edge: int) -> None:
    layout["shapes"].append(
        {
            "type": "line",
            "xref": "x",
            "yref": "paper",
            "x0": edge,
            "x1": edge,
            "y0": 0,
            "y1": 1,
            "line": {"width": 1, "dash": "dot", "color": TEXT_COLOR},
        }
    )


def _mark(layout: dict[str, Any], run: Drawn, part: str, panel: Panel, chosen: Chosen, *, heatmap: bool) -> None:
    """A ring around the chosen point; in a heatmap a frame around its cell."""
    edge, value = int(run.at[chosen.position]), run.carries[part][chosen.position, run.unit]
    if heatmap:
        row = run.shown.index(run.unit)
        place = {"x0": edge - 0.5, "x1": edge + 0.5, "y0": row - 0.5, "y1": row + 0.5}
        frame = {"type": "rect", "xref": "x", "yref": panel.axis, "line": {"width": 2, "color": TEXT_COLOR}}
        layout["shapes"].append({**frame, **place})
        layout["yaxis" + panel.axis[1:]] |= _unit_axis(run)
    elif np.isfinite(value):
        ring = {"type": "circle", "xref": "x", "yref": panel.axis, "xsizemode": "pixel", "ysizemode": "pixel"}
        place = {"xanchor": edge, "yanchor": float(value), "x0": -7, "x1": 7, "y0": -7, "y1": 7}
        layout["shapes"].append({**ring, **place, "line": {"width": 2, "color": TEXT_COLOR}})


def _unit_axis(run: Drawn) -> dict[str, Any]:
    """Rows from the top down, named by their unit."""
    step = max(1, len(run.shown) // 8)
    rows = [row for row in range(len(run.shown)) if row % step == 0 or run.shown[row] == run.unit]
    return {
        "autorange": "reversed",
        "zeroline": False,
        "showgrid": False,
        "title": {"text": fill(UNIT), "standoff": 2, "font": {"size": 11}},
        "tickvals": rows,
        "ticktext": [str(run.shown[row]) for row in rows],
    }


def _mark_not_finite(layout: dict[str, Any], run: Drawn, part: str, panel: Panel) -> None:
    bad = np.flatnonzero(~np.isfinite(run.carries[part]).all(axis=1))
    if not bad.size:
        return
    edge = int(run.at[bad[0]])
    span = {"xref": "x", "yref": f"{panel.axis} domain"}
    line = {
        "type": "line",
        "x0": edge,
        "x1": edge,
        "y0": 0,
        "y1": 1,
        "line": {"width": 2, "dash": "dot", "color": ALARM},
    }
    layout["shapes"].append({**span, **line})
    if any(said.get("text") == fill(BORN) and said.get("x") == edge for said in layout["annotations"]):
        return  # the panel above says it of the same t: the line is enough
    side = "right" if edge > 0.6 * (len(run.at) - 1) else "left"
    words = {"text": fill(BORN), "x": edge, "y": 1, "xanchor": side, "yanchor": "top", "showarrow": False}
    layout["annotations"].append({**span, **words, "font": {"color": ALARM, "size": 12}})


# --- words and numbers ----------------------------------------------------------------------------------------------


def _described(result: SequenceResult, run: Drawn, chosen: Chosen) -> str:
    backward = result.reverse if result.backward is None else chosen.side == 1
    ranges = ", ".join(
        fill(ALT_GATE, gate=name, low=_text(v[:, run.unit].min()), high=_text(v[:, run.unit].max()))
        for name, v in run.gates.items()
        if len(v)
    )
    return fill(
        ALT,
        kind=run.kind.name,
        example=chosen.example,
        direction=fill(BACKWARD if backward else FORWARD),
        length=result.length,
        parts=" ".join(_described_part(run, part) for part in run.carries),
        gates=fill(ALT_GATES, unit=run.unit, ranges=ranges) if ranges else "",
    )


def _described_part(run: Drawn, part: str) -> str:
    values = run.carries[part]
    finite = values[np.isfinite(values)]
    if not finite.size:
        return fill(ALT_NONE, part=part)
    own = values[:, run.unit]
    return fill(
        ALT_PART,
        part=part,
        unit=run.unit,
        first=_text(own[0]),
        last=_text(own[-1]),
        units=run.units,
        low=_text(finite.min()),
        high=_text(finite.max()),
    )


def _text(value: Any) -> str:
    return f"{float(value):.4g}"


def _table(direction: Direction, run: Drawn, example: int) -> dict[str, list[Any]]:
    """A row for each position in visiting order; the initial carry's row has no step and so no gates."""
    length = len(run.at) - 1
    order, valid = direction.order[:, example].tolist(), direction.valid[:, example].tolist()
    columns: dict[str, list[Any]] = {
        fill(TIME): list(range(length + 1)),
        fill(READS): [None, *order],
        fill(VALID): [None, *valid],
    }
    for name, values in run.gates.items():
        columns[f"{name}[{run.unit}]"] = [None, *values[:, run.unit].astype(np.float64).tolist()]
    for unit in [run.unit, *(u for u in run.shown if u != run.unit)]:
        for part, values in run.carries.items():
            if len(columns) < MAX_COLUMNS:
                columns[f"{part}[{unit}]"] = values[:, unit].astype(np.float64).tolist()
    return columns
