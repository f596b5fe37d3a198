"""A step whose x is a row with parts of different meaning: what tells an array of rows from a list of them."""

from __future__ import annotations

from typing import Any

from core.base.avals import Aval
from core.steps.step import Step, Values, XKind, filled, float_dtype

GROUP = "Add up"


def distance(position: Any, x: Any) -> Any:
    """Drive for a while at some speed."""
    position = position + x[0] * x[1]
    return position, position


def _start(x: Aval | None, _values: Values) -> Any:
    return filled(0, None, float_dtype(x))


STEPS = (
    Step(
        id="distance",
        title="Distance travelled",
        group=GROUP,
        formula="c′ = c + x₀·x₁, y = c′",
        story="Each x is a row: how long, and how fast. The rows must be one array (T, 2). A Python list of rows runs "
        "too, and gives another number: JAX scans each row on its own, side by side.",
        carry_doc="the distance so far, one number",
        x_doc="a row (2,): duration, speed",
        y_doc="the distance up to here",
        fn=distance,
        init=_start,
        xs=((1, 10), (2, 20), (1, 30), (3, 5)),
        length=4,
        x=XKind.VECTOR,
        x_width=2,
        leaves={"carry": "distance"},
    ),
)
