"""The loss over several updates, and how large the gradient of each parameter is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.base.text import fill
from core.base.training import TrainingStep
from core.inputs.gradient_measure import power_text
from core.plots.gradient_curves import Array, Picture, log_axis, log_range, positive

_HEIGHT: Final = 250
#: A loss that spans more decades than this is drawn on a log axis.
DECADES: Final = 1.5

TIME = "updates done"
LOSS = "loss"
HOVER = "after %{{x}} updates: loss %{{customdata}}<extra></extra>"
ALT = "Loss over {count} updates: {first} before the first, {last} after the last, lowest {low}."
NOTE_DROPS = "Each update drops other numbers, so the loss in training mode jumps a little."
NOTE_WILD = "From {at} updates on the loss is not finite: the steps are too large."
NOTE_ZERO = "A loss of exactly 0 has no place on a log axis."


@dataclass(frozen=True, slots=True)
class NormRow:
    """A row of the table of gradients: path, type, norm in words, its share of the largest (0 to 1), whether finite."""

    path: str
    type: str
    norm: str
    share: float
    finite: bool


def loss_curve(losses: Array, *, drops: bool) -> Picture:
    """The loss before each update and after the last.

    Args:
        losses: (updates + 1,).
        drops: whether every update drops other numbers.
    """
    low, high = log_range([losses])
    finite = losses[np.isfinite(losses)]
    count = len(losses) - 1
    wide = np.log10(finite[finite > 0])
    logs = bool(wide.size) and float(wide.max() - wide.min()) > DECADES
    axis = log_axis(low, high) if logs else {"rangemode": "tozero", "fixedrange": True, "automargin": True, "nticks": 6}
    axis["title"] = {"text": fill(LOSS), "standoff": 4}
    trace = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": fill(LOSS),
        "x": list(range(len(losses))),
        "y": [positive(v) if logs else _finite(v) for v in losses],
        "customdata": [power_text(float(v), 3) for v in losses],
        "line": {"width": 2.2},
        # Before the first update: hollow, as init is everywhere.
        "marker": {"size": [9] + [6] * count, "symbol": ["circle-open"] + ["circle"] * count},
        "hovertemplate": fill(HOVER),
    }
    pad = max(count * 0.015, 0.1)
    layout: dict[str, Any] = {
        "height": _HEIGHT,
        "margin": {"l": 8, "r": 8, "t": 10, "b": 4},
        "hovermode": "closest",
        "dragmode": False,
        "showlegend": False,
        "xaxis": {
            "title": {"text": fill(TIME), "standoff": 4},
            "range": [-pad, count + pad],
            "fixedrange": True,
            "zeroline": False,
            "automargin": True,
            **({"dtick": 1} if count <= 16 else {"nticks": 12}),
        },
        "yaxis": axis,
    }
    texts = [power_text(float(v), 3) for v in (losses[0], losses[-1], finite.min() if finite.size else np.nan)]
    alt = fill(ALT, count=count, first=texts[0], last=texts[1], low=texts[2])
    notes = [fill(NOTE_DROPS)] if drops else []
    if finite.size < losses.size:
        notes.append(fill(NOTE_WILD, at=int(np.flatnonzero(~np.isfinite(losses))[0])))
    notes += [fill(NOTE_ZERO)] if logs and (losses == 0).any() else []
    table: dict[str, list[Any]] = {fill(TIME): list(range(len(losses))), fill(LOSS): losses.tolist()}
    return Picture({"data": [trace], "layout": layout}, alt, table, tuple(notes))


def _finite(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def norm_rows(step: TrainingStep) -> tuple[NormRow, ...]:
    """Every parameter with the norm of its gradient, beside the largest one."""
    finite = [leaf.norm for leaf in step.gradients if np.isfinite(leaf.norm)]
    most = max(finite, default=0.0)
    return tuple(
        NormRow(
            leaf.path,
            str(leaf.type),
            power_text(leaf.norm, 3),
            leaf.norm / most if most and np.isfinite(leaf.norm) else 0.0,
            leaf.finite,
        )
        for leaf in step.gradients
    )
