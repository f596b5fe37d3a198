"""Where everything stands in the drawing of a cell: boxes, operators and wires, as data that the browser draws.

Two pictures of each kind: `wide` for a desktop, `narrow` for a phone; both are scaled to the room there is. c runs along
the top, h below it; a GRU and a simple cell have no c, so h takes the top. The units are those of the SVG's view box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

type Point = tuple[float, float]

_BOX_WIDE: Final = (112.0, 66.0)
_BOX_NARROW: Final = (72.0, 58.0)


@dataclass(frozen=True, slots=True)
class Box:
    """A small bar chart: one bar for each unit (each feature for x).

    Attributes:
        slot: what it shows: ``c``, ``h``, ``x``, ``c′``, ``h′``, ``y``, or a gate's letter.
        role: its colour: ``c``, ``h``, ``x``, ``y`` or ``gate``.
        x, y, width, height: its frame.
    """

    slot: str
    role: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Operator:
    """A circle with a sign, or a pill with a function's name, at its middle; `slot` is a number written beside it.

    Attributes:
        at: where the number is written.
        anchor: its SVG text-anchor.
    """

    sign: str
    x: float
    y: float
    slot: str = ""
    at: Point = (0.0, 0.0)
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Wire:
    """A line through points, an arrow head at its end unless `open`. `dot` marks a branch at its start."""

    role: str
    points: tuple[Point, ...]
    open: bool = False
    dot: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """One drawing: its view box and what stands in it."""

    width: float
    height: float
    boxes: tuple[Box, ...]
    operators: tuple[Operator, ...]
    wires: tuple[Wire, ...]

    def payload(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def _box(slot: str, role: str, middle: Point, size: tuple[float, float]) -> Box:
    width, height = size
    return Box(slot, role, middle[0] - width / 2, middle[1] - height / 2, width, height)


def _feeds(columns: tuple[float, ...], y_h: float, y_x: float, gate_bottom: float) -> tuple[Wire, ...]:
    """The risers from the two buses into each gate: h to the left of its middle, x to the right."""
    rises = []
    for column in columns:
        rises.append(Wire("h", ((column - 6, y_h), (column - 6, gate_bottom)), dot=True))
        rises.append(Wire("x", ((column + 6, y_x), (column + 6, gate_bottom)), dot=True))
    return tuple(rises)


# --- LSTM -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Lstm:
    """The few numbers in which the two pictures of an LSTM differ."""

    width: float
    height: float
    box: tuple[float, float]
    gate: tuple[float, float]
    left: float
    right: float
    columns: tuple[float, float, float, float]
    top: float
    join: float
    squash: tuple[float, float, float]
    gates: float
    bus: float
    bottom: float
    output: float
    input_x: float
    input_y: float


_LSTM_WIDE = _Lstm(
    width=800,
    height=414,
    box=(112, 66),
    gate=_BOX_WIDE,
    left=64,
    right=736,
    columns=(196, 316, 436, 556),
    top=45,
    join=112,
    squash=(644, 96, 136),
    gates=196,
    bus=290,
    bottom=290,
    output=204,
    input_x=64,
    input_y=374,
)
_LSTM_NARROW = _Lstm(
    width=344,
    height=426,
    box=(72, 58),
    gate=_BOX_NARROW,
    left=42,
    right=302,
    columns=(42, 126, 210, 302),
    top=37,
    join=126,
    squash=(256, 82, 118),
    gates=188,
    bus=282,
    bottom=306,
    output=0,
    input_x=42,
    input_y=388,
)


def _lstm_wide(g: _Lstm) -> Picture:
    f, i, gg, o = g.columns
    add = (i + gg) / 2
    squash_x, tanh_y, times_y = g.squash
    half_w, half_h = g.box[0] / 2, g.gate[1] / 2
    roof, floor = g.gates - half_h, g.gates + half_h
    boxes = (
        _box("c", "c", (g.left, g.top), g.box),
        _box("c′", "c", (g.right, g.top), g.box),
        *(_box(name, "gate", (x, g.gates), g.gate) for name, x in zip("figo", g.columns, strict=True)),
        _box("h", "h", (g.left, g.bottom), g.box),
        _box("h′", "h", (g.right, g.bottom), g.box),
        _box("y", "y", (g.right, g.output), g.box),
        _box("x", "x", (g.input_x, g.input_y), g.box),
    )
    operators = (
        Operator("×", f, g.top, "f·c", (f + 16, g.top - 12)),
        Operator("+", add, g.top),
        Operator("×", add, g.join, "i·g", (add, g.join + 30), "middle"),
        Operator("tanh", squash_x, tanh_y, "tanh(c′)", (squash_x + 28, tanh_y + 4)),
        Operator("×", squash_x, times_y),
    )
    wires = (
        Wire("c", ((g.left + half_w, g.top), (f - 12, g.top))),
        Wire("c", ((f + 12, g.top), (add - 12, g.top))),
        Wire("c", ((add + 12, g.top), (g.right - half_w, g.top))),
        Wire("gate", ((f, roof), (f, g.top + 12))),
        Wire("gate", ((i, roof), (i, g.join), (add - 12, g.join))),
        Wire("gate", ((gg, roof), (gg, g.join), (add + 12, g.join))),
        Wire("gate", ((add, g.join - 12), (add, g.top + 12))),
        Wire("gate", ((o, roof), (o, times_y), (squash_x - 12, times_y))),
        Wire("c", ((squash_x, g.top), (squash_x, tanh_y - 11)), dot=True),
        Wire("c", ((squash_x, tanh_y + 11), (squash_x, times_y - 12))),
        Wire("h", ((squash_x, times_y + 12), (squash_x, g.bottom), (g.right - half_w, g.bottom))),
        Wire("y", ((squash_x, g.output), (g.right - half_w, g.output)), dot=True),
        Wire("h", ((g.left + half_w, g.bus), (o - 6, g.bus)), open=True),
        Wire(
            "x",
            (
                (g.input_x + half_w, g.input_y),
                (g.input_x + half_w + 10, g.input_y),
                (g.input_x + half_w + 10, g.bus + 14),
                (o + 6, g.bus + 14),
            ),
            open=True,
        ),
        *_feeds(g.columns, g.bus, g.bus + 14, floor),
    )
    return Picture(g.width, g.height, boxes, operators, wires)


def _lstm_narrow(g: _Lstm) -> Picture:
    f, i, gg, o = g.columns
    add, forget = (i + gg) / 2, 108.0
    squash_x, tanh_y, times_y = g.squash
    half_w, half_h = g.box[0] / 2, g.gate[1] / 2
    roof, floor = g.gates - half_h, g.gates + half_h
    turn = g.top + half_h + 14
    boxes = (
        _box("c", "c", (g.left, g.top), g.box),
        _box("c′", "c", (g.right, g.top), g.box),
        *(_box(name, "gate", (x, g.gates), g.gate) for name, x in zip("figo", g.columns, strict=True)),
        _box("h", "h", (g.left, g.bottom), g.box),
        _box("h′", "h", (g.right, g.bottom), g.box),
        _box("x", "x", (g.input_x, g.input_y), g.box),
        _box("y", "y", (g.right, g.input_y), g.box),
    )
    operators = (
        Operator("×", forget, g.top),
        Operator("+", add, g.top),
        Operator("×", add, g.join),
        Operator("tanh", squash_x - 4, tanh_y),
        Operator("×", squash_x, times_y),
    )
    wires = (
        Wire("c", ((g.left + half_w, g.top), (forget - 12, g.top))),
        Wire("c", ((forget + 12, g.top), (add - 12, g.top))),
        Wire("c", ((add + 12, g.top), (g.right - half_w, g.top))),
        Wire("gate", ((f, roof), (f, turn), (forget, turn), (forget, g.top + 12))),
        Wire("gate", ((i, roof), (i, g.join), (add - 12, g.join))),
        Wire("gate", ((gg, roof), (gg, g.join), (add + 12, g.join))),
        Wire("gate", ((add, g.join - 12), (add, g.top + 12))),
        Wire("gate", ((o, roof), (o, times_y), (squash_x + 12, times_y))),
        Wire("c", ((squash_x - 4, g.top), (squash_x - 4, tanh_y - 11)), dot=True),
        Wire("c", ((squash_x - 4, tanh_y + 11), (squash_x - 4, times_y - 11))),
        Wire("h", ((squash_x, times_y + 12), (squash_x, g.bottom), (g.right - half_w, g.bottom))),
        Wire("y", ((squash_x, g.bottom), (squash_x, g.input_y), (g.right - half_w, g.input_y)), dot=True),
        Wire("h", ((g.left + half_w, g.bottom), (90, g.bottom), (90, g.bus - 42)), open=True),
        Wire("h", ((f - 6, g.bus - 42), (o - 6, g.bus - 42)), open=True),
        Wire(
            "x",
            ((g.input_x + half_w, g.input_y), (100, g.input_y), (100, g.bus - 28)),
            open=True,
        ),
        Wire("x", ((f + 6, g.bus - 28), (o + 6, g.bus - 28)), open=True),
        *_feeds(g.columns, g.bus - 42, g.bus - 28, floor),
    )
    return Picture(g.width, g.height, boxes, operators, wires)


# --- GRU ------------------------------------------------------------------------------------------------------------


def _gru_wide() -> Picture:
    """z, r, n from left to right, so that r can hand its value to n beside it."""
    z, r, n = 240.0, 392.0, 544.0
    left, right, top, gates, bus, low = 64.0, 736.0, 45.0, 196.0, 290.0, 354.0
    complement, add, branch, mix = 296.0, 392.0, 140.0, 110.0
    half_w, half_h = _BOX_WIDE[0] / 2, _BOX_WIDE[1] / 2
    roof, floor = gates - half_h, gates + half_h
    operators = (
        Operator("×", z, top, "z·h", (z + 16, top - 12)),
        Operator("1−", complement, mix),
        Operator("×", add, mix, "(1−z)·n", (add, mix + 28), "middle"),
        Operator("+", add, top),
    )
    wires = (
        Wire("h", ((left + half_w, top), (z - 12, top))),
        Wire("h", ((z + 12, top), (add - 12, top))),
        Wire("h", ((add + 12, top), (right - half_w, top))),
        Wire("gate", ((z, roof), (z, top + 12))),
        Wire("gate", ((z, mix), (complement - 15, mix)), dot=True),
        Wire("gate", ((complement + 15, mix), (add - 12, mix))),
        Wire("gate", ((n, roof), (n, mix), (add + 12, mix))),
        Wire("gate", ((add, mix - 12), (add, top + 12))),
        Wire("gate", ((r + half_w, gates), (n - half_w, gates))),
        Wire("y", ((right, top + half_h), (right, gates - half_h))),
        Wire("h", ((branch, top), (branch, bus), (n - 6, bus)), open=True, dot=True),
        Wire("x", ((left + half_w, low), (branch, low), (branch, bus + 14), (n + 6, bus + 14)), open=True),
        *_feeds((z, r, n), bus, bus + 14, floor),
    )
    boxes = _gru_boxes(_BOX_WIDE, (left, right), (z, r, n), (top, gates, low, gates))
    return Picture(800, 394, boxes, operators, wires)


def _gru_narrow() -> Picture:
    z, r, n = 76.0, 160.0, 244.0
    left, right, top, gates, bus, low = 42.0, 302.0, 37.0, 184.0, 240.0, 306.0
    forget, add, mix, turn, side = 112.0, 160.0, 122.0, 92.0, 20.0
    half_w, half_h = _BOX_NARROW[0] / 2, _BOX_NARROW[1] / 2
    roof, floor = gates - half_h, gates + half_h
    operators = (
        Operator("×", forget, top),
        Operator("1−", 118, mix),
        Operator("×", add, mix, "(1−z)·n", (178, mix - 10), "start"),
        Operator("+", add, top),
    )
    wires = (
        Wire("h", ((left + half_w, top), (forget - 12, top))),
        Wire("h", ((forget + 12, top), (add - 12, top))),
        Wire("h", ((add + 12, top), (right - half_w, top))),
        Wire("gate", ((z, roof), (z, turn), (forget, turn), (forget, top + 12))),
        Wire("gate", ((z, mix), (118 - 15, mix)), dot=True),
        Wire("gate", ((118 + 15, mix), (add - 12, mix))),
        Wire("gate", ((n, roof), (n, mix), (add + 12, mix))),
        Wire("gate", ((add, mix - 12), (add, top + 12))),
        Wire("gate", ((r + half_w, gates), (n - half_w, gates))),
        Wire("y", ((right + 18, top + half_h), (right + 18, low - half_h))),
        Wire("h", ((side, top + half_h), (side, bus), (n - 6, bus)), open=True),
        Wire("x", ((left + half_w, low), (96, low), (96, bus + 14), (n + 6, bus + 14)), open=True),
        *_feeds((z, r, n), bus, bus + 14, floor),
    )
    boxes = _gru_boxes(_BOX_NARROW, (left, right), (z, r, n), (top, gates, low, low))
    return Picture(344, 342, boxes, operators, wires)


def _gru_boxes(
    box: tuple[float, float],
    sides: tuple[float, float],
    columns: tuple[float, float, float],
    rows: tuple[float, float, float, float],
) -> tuple[Box, ...]:
    (left, right), (top, gates, low, output) = sides, rows
    return (
        _box("h", "h", (left, top), box),
        _box("h′", "h", (right, top), box),
        *(_box(name, "gate", (x, gates), box) for name, x in zip("zrn", columns, strict=True)),
        _box("x", "x", (left, low), box),
        _box("y", "y", (right, output), box),
    )


# --- simple ---------------------------------------------------------------------------------------------------------


def _simple(
    size: tuple[float, float],
    box: tuple[float, float],
    left: float,
    right: float,
    rows: tuple[float, float],
    spots: tuple[float, float],
) -> Picture:
    top, low = rows
    add, squash = spots
    half_w, half_h = box[0] / 2, box[1] / 2
    boxes = (
        _box("h", "h", (left, top), box),
        _box("h′", "h", (right, top), box),
        _box("x", "x", (left, low), box),
        _box("y", "y", (right, low), box),
    )
    operators = (
        Operator("+", add, top, "a", (add, top - 20), "middle"),
        Operator("tanh", squash, top),
        Operator("·W", add - (add - left - half_w) / 2, top),
        Operator("·W", add - (add - left - half_w) / 2, low),
    )
    product = add - (add - left - half_w) / 2
    wires = (
        Wire("h", ((left + half_w, top), (product - 17, top))),
        Wire("h", ((product + 17, top), (add - 12, top))),
        Wire("gate", ((add + 12, top), (squash - 24, top))),
        Wire("h", ((squash + 24, top), (right - half_w, top))),
        Wire("x", ((left + half_w, low), (product - 17, low))),
        Wire("x", ((product + 17, low), (add, low), (add, top + 12))),
        Wire("y", ((right, top + half_h), (right, low - half_h))),
    )
    return Picture(*size, boxes, operators, wires)


# --- all of them ----------------------------------------------------------------------------------------------------

_LSTM: Final = {"wide": _lstm_wide(_LSTM_WIDE), "narrow": _lstm_narrow(_LSTM_NARROW)}

PICTURES: Final[Mapping[str, Mapping[str, Picture]]] = {
    "LSTMCell": _LSTM,
    "OptimizedLSTMCell": _LSTM,
    "GRUCell": {"wide": _gru_wide(), "narrow": _gru_narrow()},
    "SimpleCell": {
        "wide": _simple((800, 240), _BOX_WIDE, 64, 736, (70, 190), (330, 500)),
        "narrow": _simple((344, 220), _BOX_NARROW, 42, 302, (52, 170), (154, 220)),
    },
}
