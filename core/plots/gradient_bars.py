"""The gradient of a scan with respect to xs as bars over t, one panel a leaf; what is not finite stands as a mark.

Numbers of init have no t: they are rows of the table (`gradient_table`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.base.scan_gradients import LeafGradient, ScanGradient, Target
from core.base.text import fill
from core.plots.gradient_curves import Array, Picture
from core.plots.player_values import leaf_texts, short_number

#: Columns of x (features, examples) that are drawn side by side; more are summed up as a norm.
MAX_BARS: Final = 8
_PANEL: Final = 210
_ALARM: Final = "#D55E00"
#: The colour of x, here as on every page; the theme gives the first bars its blue, which is that of c.
X_COLOUR: Final = "#CC79A7"
_PATTERNS: Final = ("", "/", "\\", "x", "-", "|", "+", ".")

TIME = "t: the step that reads it"
PANEL_NAMED = "∂{number}/∂{path}  {type}"
NORM = "norm over {count} numbers"
HOVER = "∂{number}/∂{name} = %{{customdata}}<extra></extra>"
ALT = "Gradient of {number} with respect to xs for t = 0 to {last}. {leaves}"
ALT_LEAF = "{path}: between {low} and {high}; {wild} of {total} numbers are not finite."
ALT_WILD = "{path}: none of {total} numbers is finite."
NOT_FINITE = "not finite"
NOTE_NONE = "{path} has no gradient: whole numbers, bools and keys are no floating-point numbers."
NOTE_WILD = "Each ✕ is a number that is not finite: it has no place on a number axis."
NUMBER: Final = {Target.FINAL: "Σc", Target.YS: "Σy"}
SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class LeafRow:
    """A row of the table: role, path, type, the gradient written out, how many of its numbers are not finite."""

    role: str
    path: str
    type: str
    value: str
    wild: int


def drawn_leaves(gradient: ScanGradient) -> tuple[LeafGradient, ...]:
    """The leaves of xs that have a gradient with a number in it."""
    return tuple(leaf for leaf in gradient.leaves if leaf.role == "xs" and leaf.values is not None and leaf.values.size)


def gradient_bars(gradient: ScanGradient) -> Picture | None:
    """Bars over t for every leaf of xs; None where xs have no gradient."""
    leaves = drawn_leaves(gradient)
    if not leaves:
        return None
    number = NUMBER[gradient.target]
    data: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    layout = _layout(len(leaves), gradient.length, several=any(_columns(leaf)[0].shape[1] > 1 for leaf in leaves))
    table: dict[str, list[Any]] = {"t": list(range(gradient.length))}
    for panel, leaf in enumerate(leaves):
        axis = "y" if panel == 0 else f"y{panel + 1}"
        domain = _domain(panel, len(leaves))
        layout["yaxis" + axis[1:]] = {
            "domain": list(domain),
            "fixedrange": True,
            "zeroline": True,
            "automargin": True,
            "nticks": 6,
        }
        layout["annotations"].append(_title(leaf, number, domain))
        values, names = _columns(leaf)
        for column, name in enumerate(names):
            bar, *mark = _bars(values[:, column], name, (axis, number, column))
            data.append(bar)
            marks += mark
            table[name] = values[:, column].tolist()
    # Marks come last: the theme colours traces by their order.
    words = " ".join(_described(leaf) for leaf in leaves)
    alt = fill(ALT, number=number, last=gradient.length - 1, leaves=words)
    notes = [fill(NOTE_NONE, path=path) for path in gradient.without]
    notes += [fill(NOTE_WILD)] if any(leaf.wild for leaf in leaves) else []
    return Picture({"data": [*data, *marks], "layout": layout}, alt, table, tuple(notes))


def _columns(leaf: LeafGradient) -> tuple[Array, list[str]]:
    """(T, columns) in float64 with the name of each column; more than `MAX_BARS` become one column of norms."""
    if leaf.values is None:
        raise TypeError(leaf)
    shape = leaf.values.shape[1:]
    flat = leaf.values.astype(np.float64).reshape(len(leaf.values), -1)
    path = leaf.type.path
    if not shape:
        return flat, [f"{path}[t]"]
    if flat.shape[1] > MAX_BARS:
        return np.linalg.norm(flat, axis=1, keepdims=True), [fill(NORM, count=flat.shape[1])]
    return flat, [f"{path}[t, {', '.join(map(str, index))}]" for index in np.ndindex(*shape)]


def _bars(values: Array, name: str, about: tuple[str, str, int]) -> list[dict[str, Any]]:
    axis, number, column = about
    finite = np.isfinite(values)
    bar: dict[str, Any] = {
        "type": "bar",
        "name": name,
        "x": np.flatnonzero(finite).tolist(),
        "y": [float(f"{v:.6g}") for v in values[finite]],
        "customdata": [short_number(v) for v in values[finite].astype(np.float32)],
        "yaxis": axis,
        "marker": {"color": X_COLOUR, "pattern": {"shape": _PATTERNS[column % len(_PATTERNS)], "fillmode": "replace"}},
        "hovertemplate": fill(HOVER, number=number, name=name.replace("[t", "[%{x}")),
    }
    if finite.all():
        return [bar]
    wild = np.flatnonzero(~finite)
    mark = {
        "type": "scatter",
        "mode": "markers+text" if len(wild) <= SHOWN else "markers",
        "name": fill(NOT_FINITE),
        "x": wild.tolist(),
        "y": [0.0] * len(wild),
        "yaxis": axis,
        "text": [short_number(v) for v in values[wild]],
        "customdata": [short_number(v) for v in values[wild]],
        "textposition": "top center",
        "textfont": {"color": _ALARM},
        "marker": {"symbol": "x", "size": 11, "color": _ALARM},
        "cliponaxis": False,
        "showlegend": False,
        "hovertemplate": bar["hovertemplate"],
    }
    return [bar, mark]


def _domain(panel: int, count: int) -> tuple[float, float]:
    height, gap = 1 / count, 0.12 / count
    top = 1 - panel * height
    return max(top - height + (gap if panel < count - 1 else 0.0), 0.0), top - (gap if panel else 0.0)


def _layout(panels: int, length: int, *, several: bool) -> dict[str, Any]:
    return {
        "height": _PANEL * panels + (85 if several else 50),
        "margin": {"l": 8, "r": 8, "t": 30, "b": 4},
        "hovermode": "closest",
        "dragmode": False,
        "barmode": "group",
        "bargap": 0.25,
        "showlegend": several,
        # Below the axis: above it, a narrow plot has no room for it beside the titles.
        "legend": {"orientation": "h", "x": 0, "xanchor": "left", "y": -0.25 / panels, "yanchor": "top"},
        "xaxis": {
            "title": {"text": fill(TIME), "standoff": 4},
            "range": [-0.6, max(length, 1) - 0.4],
            "fixedrange": True,
            "zeroline": False,
            "automargin": True,
            "anchor": "y" if panels == 1 else f"y{panels}",
            **({"dtick": 1} if length <= 16 else {"nticks": 12}),
        },
        "annotations": [],
        "shapes": [],
    }


def _title(leaf: LeafGradient, number: str, domain: tuple[float, float]) -> dict[str, Any]:
    return {
        "text": fill(PANEL_NAMED, number=number, path=leaf.type.path, type=leaf.type),
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": domain[1],
        "xanchor": "left",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "family": "monospace"},
    }


def _described(leaf: LeafGradient) -> str:
    values, _ = _columns(leaf)
    finite = values[np.isfinite(values)]
    total = 0 if leaf.values is None else leaf.values.size
    if not finite.size:
        return fill(ALT_WILD, path=leaf.type.path, total=total)
    return fill(
        ALT_LEAF,
        path=leaf.type.path,
        low=f"{finite.min():.4g}",
        high=f"{finite.max():.4g}",
        wild=leaf.wild,
        total=total,
    )


def gradient_table(gradient: ScanGradient) -> tuple[LeafRow, ...]:
    """Every leaf of init and xs with its gradient written out."""
    return tuple(_row(leaf) for leaf in gradient.leaves)


def _row(leaf: LeafGradient) -> LeafRow:
    if leaf.values is None:
        return LeafRow(leaf.role, leaf.type.path, str(leaf.type), "", 0)
    value = leaf_texts(leaf.values[None], SHOWN).values(SHOWN)[0]
    return LeafRow(leaf.role, leaf.type.path, str(leaf.type), value, leaf.wild)
