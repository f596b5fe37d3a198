"""A cell's equations with the numbers of each unit put in, written so that they recompute to the value shown.

Numbers are written as the shortest text that reads back to the very float32 (or bfloat16) that was computed; no rounding
hides between the lines. The lines are templates with one column of texts per field and one text per unit, so that the
browser can change the unit without asking.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from core.plots.player_values import MINUS
from core.runners.cell_formulas import CellKind, GateSpec
from core.runners.cells import StepNumbers

type Array = np.ndarray[Any, Any]
type Columns = dict[str, list[str]]

#: Units and features up to which the products x·W are also written out term by term.
SPELLED: Final = 8


@dataclass(frozen=True, slots=True)
class Equation:
    """One equation.

    Attributes:
        slot: what it gives: a gate's letter, ``c′``, ``h′``.
        symbols: with letters; ``_{ii}`` is an index.
        numbers: the same with ``{column}`` fields.
    """

    slot: str
    symbols: str
    numbers: str


LSTM_GATE: Final = "{name} = {curve}(x·W_{{i{name}}} + h·W_{{h{name}}} + b_{{h{name}}})"
GRU_GATE: Final = "{name} = {curve}(x·W_{{i{name}}} + b_{{i{name}}} + h·W_{{h{name}}})"
NUMBERS_HX: Final = "= {curve}({{{name}.x}} {{{name}.+h}} {{{name}.+b}}) = {curve}({{{name}.pre}}) = {{{name}}}"
NUMBERS_XB: Final = "= {curve}({{{name}.x}} {{{name}.+b}} {{{name}.+h}}) = {curve}({{{name}.pre}}) = {{{name}}}"

_LSTM_TAIL: Final = (
    Equation("c′", "c′ = f·c + i·g", "= {f}·{(c)} + {i}·{(g)} = {fc} {+ig} = {c′}"),
    Equation("h′", "h′ = o·tanh(c′)", "= {o}·tanh({c′}) = {o}·{(tc)} = {h′}"),
)
_GRU_TAIL: Final = (
    Equation(
        "n",
        "n = tanh(x·W_{in} + b_{in} + r·(h·W_{hn}))",
        "= tanh({n.x} {n.+b} + {r}·{(n.h)}) = tanh({n.pre}) = {n}",
    ),
    Equation("h′", "h′ = (1 − z)·n + z·h", "= (1 − {z})·{(n)} + {z}·{(h)} = {zn} {+zh} = {h′}"),
)
_SIMPLE: Final = (
    Equation("h′", "h′ = tanh(x·W_{i} + b_{i} + h·W_{h})", "= tanh({a.x} {a.+b} {a.+h}) = tanh({a.pre}) = {h′}"),
)
_CURVES: Final = {"sigmoid": "σ", "tanh": "tanh"}


def equations(kind: CellKind) -> tuple[Equation, ...]:
    """The cell's equations in the order in which it works them out."""
    match kind.name:
        case "LSTMCell" | "OptimizedLSTMCell":
            return (*(_gate(g, LSTM_GATE, NUMBERS_HX) for g in kind.gates), *_LSTM_TAIL)
        case "GRUCell":
            return (*(_gate(g, GRU_GATE, NUMBERS_XB) for g in kind.gates if g.name != "n"), *_GRU_TAIL)
        case _:
            return _SIMPLE


def _gate(gate: GateSpec, symbols: str, numbers: str) -> Equation:
    names = {"name": gate.name, "curve": _CURVES[gate.curve]}
    return Equation(gate.name, symbols.format(**names), numbers.format(**names))


def columns(step: StepNumbers, example: tuple[int, ...]) -> Columns:
    """The text of each field for each unit, of one example (an index into the output's leading axes)."""
    at = _values(step, example)
    out: Columns = {}
    for name, values in at.items():
        out[name] = [exact(v) for v in values]
        out[f"({name})"] = [bracketed(v) for v in values]
        stem, _, last = name.rpartition(".")
        out[f"{stem}.+{last}" if stem else f"+{last}"] = [signed(v) for v in values]
    used = {field for e in equations(step.kind) for field in fields_of(e.numbers)}
    return {name: texts for name, texts in out.items() if name in used}


def fields_of(numbers: str) -> list[str]:
    """The names between the braces of a template, in order."""
    return [part.partition("}")[0] for part in numbers.split("{")[1:]]


def _values(step: StepNumbers, example: tuple[int, ...]) -> dict[str, Array]:
    """Every number the equations name, by its field, each (H,), in the cell's own dtype."""
    at: dict[str, Array] = {}
    simple = step.kind.name == "SimpleCell"
    for gate in step.gates:
        name = "a" if simple else gate.name
        at[f"{name}.x"], at[f"{name}.h"] = gate.from_x[example], gate.from_h[example]
        at[f"{name}.b"], at[f"{name}.pre"] = gate.bias, gate.pre[example]
        at[name] = gate.value[example]
    for part, before, after in zip(step.kind.parts, step.before, step.after, strict=True):
        at[part], at[f"{part}′"] = before[example], np.broadcast_to(after, step.output.shape)[example]
    with np.errstate(all="ignore"):
        if step.kind.pair:
            at["fc"], at["ig"] = at["f"] * at["c"].astype(np.float32), at["i"] * at["g"]
            at["tc"] = np.tanh(at["c′"])
        elif step.kind.name == "GRUCell":
            at["zn"] = (np.float32(1) - at["z"]) * at["n"]
            at["zh"] = at["z"] * at["h"].astype(np.float32)
    return at


def intermediate(step: StepNumbers, example: tuple[int, ...]) -> dict[str, Array]:
    """The numbers beside the operators of the drawing, by their slot, each (H,)."""
    at = _values(step, example)
    names = {"fc": "f·c", "ig": "i·g", "tc": "tanh(c′)", "zh": "z·h", "zn": "(1−z)·n", "a.pre": "a"}
    if step.kind.name != "SimpleCell":
        names.pop("a.pre")
    return {slot: at[name] for name, slot in names.items() if name in at}


# --- products written out -------------------------------------------------------------------------------------------


def spelled(step: StepNumbers, cell_weights: Mapping[str, Any], example: tuple[int, ...]) -> list[dict[str, Any]]:
    """Each product x·W and h·W term by term: ``{"symbols": "x·W_{ii}", "texts": one per unit}``.

    Empty where there are too many terms to read (`SPELLED`), or the example's input or hidden state is not one row.
    """
    x, h = _row(step.inputs, example), step.before[-1][example]
    if x is None or max(x.shape[0], h.shape[0]) > SPELLED:
        return []
    out = []
    for gate in step.gates:
        w = cell_weights[gate.name]
        letter = "" if step.kind.name == "SimpleCell" else gate.name
        for row, kernel, symbol in ((x, w.kernel_x, f"x·W_{{i{letter}}}"), (h, w.kernel_h, f"h·W_{{h{letter}}}")):
            out.append({"symbols": symbol, "texts": [terms(row, np.asarray(kernel)[:, u]) for u in range(h.shape[0])]})
    return out


def _row(inputs: Array, example: tuple[int, ...]) -> Array | None:
    """The input row of an example: its last axes count, the others were broadcast."""
    lead = inputs.ndim - 1
    if lead > len(example):
        return None
    index = example[len(example) - lead :]
    return np.asarray(inputs[tuple(min(i, n - 1) for i, n in zip(index, inputs.shape, strict=False))])


def terms(row: Array, column: Array) -> str:
    """``1·0.5 + 2·(−0.25)``"""
    return " + ".join(f"{bracketed(a)}·{bracketed(b)}" for a, b in zip(row, column, strict=True))


# --- numbers --------------------------------------------------------------------------------------------------------


def exact(value: Any) -> str:
    """The shortest text that reads back to the same number in its own dtype, with a true minus sign."""
    number = np.float32(value)
    if np.isnan(number):
        return "NaN"
    if np.isinf(number):
        return "∞" if number > 0 else f"{MINUS}∞"
    size = abs(float(number))
    if size == 0 or 1e-4 <= size < 1e7:
        text = np.format_float_positional(number, unique=True, trim="-")
    else:
        text = np.format_float_scientific(number, unique=True, trim="-", exp_digits=1)
    return text.replace("-", MINUS)


def bracketed(value: Any) -> str:
    """The number, in brackets when it begins with a minus: for use as a factor."""
    text = exact(value)
    return f"({text})" if text.startswith(MINUS) else text


def signed(value: Any) -> str:
    """The number as a further term of a sum: ``+ 0.5``, ``− 0.5``."""
    text = exact(value)
    return f"{MINUS} {text[1:]}" if text.startswith(MINUS) else f"+ {text}"


def brief(value: Any) -> str:
    """A number for the drawing, where four digits have no room: ``−0.0527``, ``1.2e−7``, ``NaN``."""
    number = float(value)
    if not np.isfinite(number):
        return exact(value)
    digits, mark, power = f"{number:.3g}".partition("e")
    return (digits + (f"e{int(power)}" if mark else "")).replace("-", MINUS)
