"""A cell's step as the one JSON value that the drawing in the browser shows.

A click on a unit must answer at once, so the texts of all units of one example are sent together; another example is
another rerun. The size stays bounded by the limit on hidden units: about 150 kB at 256.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from core.base.avals import LeafType
from core.base.text import fill
from core.plots.cell_equations import brief, columns, equations, exact, intermediate, spelled
from core.plots.cell_svg import PICTURES
from core.runners.cell_formulas import KINDS, GateWeights
from core.runners.cells import CellStep

type Array = np.ndarray[Any, Any]

VERSION: Final = 1

#: What the drawing says. Fields are filled in the browser: they change with the unit.
TEXT: Final[Mapping[str, str]] = {
    "title": "One step of {cell}",
    "description": "{carry} and x enter at the left; the gates {gates} stand between; {new} leave at the right. "
    "Each box is a bar chart with one bar for each hidden unit.",
    "slider": "hidden unit",
    "unit": "unit {unit} (0 to {last})",
    "hint": "Click a bar, or use ← →: the equations below take that unit's numbers.",
    "units": "units {first} to {last}",
    "all_units": "All {count} units: a column is a unit, click one.",
    "equations": "The equations with the numbers of unit {unit}, {example}",
    "letters": "The equations",
    "spelled": "The products, term by term",
    "not_run": "This step does not run, so there are no numbers to draw.",
    "broken": "Broken here",
    "flagged": "Wrong here, and JAX is silent",
    "stale": "From the last inputs that could be read.",
}
WORDS: Final[Mapping[str, str]] = {
    "i": "input",
    "f": "forget",
    "g": "candidate",
    "o": "output",
    "r": "reset",
    "z": "update",
    "n": "candidate",
    "c": "before",
    "h": "before",
    "c′": "after",
    "h′": "after",
    "x": "input",
    "y": "output",
}
EXAMPLE: Final = "example {index}"
EXAMPLE_OF_MANY: Final = "row {index} of the output {shape}"


@dataclass(frozen=True, slots=True)
class Faults:
    """What is wrong, by slot of the drawing: ``c``, ``h``, ``x`` or ``cell`` -> the code that says so.

    Attributes:
        broken: JAX raises there.
        flagged: it runs and is wrong there.
    """

    broken: Mapping[str, str]
    flagged: Mapping[str, str]


NO_FAULTS: Final = Faults({}, {})


def cell_payload(
    kind: str,
    step: CellStep | None,
    weights: Mapping[str, GateWeights] | None,
    *,
    example: int = 0,
    unit: int = 0,
    faults: Faults = NO_FAULTS,
    given: Mapping[str, LeafType] | None = None,
    stale: bool = False,
) -> dict[str, Any]:
    """What the drawing of a cell needs.

    Args:
        kind: name of the cell.
        step: the step that ran; None draws the cell without numbers.
        weights: the cell's parameters by gate, for the products written out.
        example: position in the flattened leading axes of the output.
        unit: the chosen unit. Both are brought into range.
        faults: what is drawn broken.
        given: without a step, the types that stand in the boxes instead of bars.
        stale: whether the step belongs to earlier inputs.
    """
    pictures = PICTURES[kind]
    parts = KINDS[kind].parts
    payload: dict[str, Any] = {
        "version": VERSION,
        "kind": kind,
        "text": dict(TEXT),
        "words": dict(WORDS),
        "parts": list(parts),
        "gates": [g.name for g in KINDS[kind].gates if g.name != "h′"],
        "pictures": {name: picture.payload() for name, picture in pictures.items()},
        "broken": dict(faults.broken),
        "flagged": dict(faults.flagged),
        "types": {slot: str(leaf) for slot, leaf in (given or {}).items()},
        "stale": stale,
        "units": 0,
        "unit": 0,
        "example": "",
        "series": {},
        "notes": {},
        "equations": [asdict(e) for e in equations(KINDS[kind])],
        "columns": {},
        "spelled": [],
    }
    if step is None:
        return payload
    at = example_index(step, example)
    units = step.output.shape[-1]
    payload |= {
        "units": units,
        "unit": min(max(unit, 0), units - 1),
        "example": example_name(step, at),
        "series": _series(step, at),
        "notes": {slot: _texts(values) for slot, values in intermediate(step, at).items()},
        "columns": columns(step, at),
        "spelled": spelled(step, weights, at) if weights else [],
    }
    return payload


def example_index(step: CellStep, example: int) -> tuple[int, ...]:
    """The index into the output's leading axes that a flat position means; brought into range."""
    shape = step.examples
    count = int(np.prod(shape, dtype=np.int64))
    flat = min(max(example, 0), count - 1)
    return tuple(int(i) for i in np.unravel_index(flat, shape)) if shape else ()


def example_name(step: CellStep, index: tuple[int, ...]) -> str:
    """An example for a reader; where the output has grown an axis, by its whole index."""
    if len(index) == 1:
        return fill(EXAMPLE, index=index[0])
    return fill(EXAMPLE_OF_MANY, index=list(index), shape=step.output.shape)


def _series(step: CellStep, at: tuple[int, ...]) -> dict[str, Any]:
    """Each box's bars: numbers (None where there is none to draw), texts, and the ends of its scale."""
    x = _input_row(step, at)
    out = {"x": _bars(x, _reach(x))}
    for part, before, after in zip(step.kind.parts, step.before, step.after, strict=True):
        wide = np.broadcast_to(after, step.output.shape)
        reach = _reach(before[at], wide[at])
        out[part], out[f"{part}′"] = _bars(before[at], reach), _bars(wide[at], reach)
        if part == "h":
            out["y"] = _bars(step.output[at], reach)
    for gate in step.gates:
        if gate.name != "h′":
            out[gate.name] = _bars(gate.value[at], 1.0, low=0.0 if gate.curve == "sigmoid" else -1.0)
    return out


def _input_row(step: CellStep, at: tuple[int, ...]) -> Array:
    lead = step.inputs.shape[:-1]
    index = at[len(at) - len(lead) :] if lead else ()
    return np.asarray(step.inputs[tuple(min(i, n - 1) for i, n in zip(index, lead, strict=True))])


def _reach(*arrays: Array) -> float:
    """The end of a scale from −reach to reach that holds every finite number, at least 1."""
    flat = np.concatenate([a.astype(np.float64).ravel() for a in arrays])
    finite = flat[np.isfinite(flat)]
    return max(1.0, float(np.abs(finite).max(initial=0.0)))


def _bars(values: Array, high: float, low: float | None = None) -> dict[str, Any]:
    numbers = values.astype(np.float64)
    return {
        "values": [float(f"{v:.5g}") if np.isfinite(v) else None for v in numbers],
        "texts": _texts(values),
        "low": -high if low is None else low,
        "high": high,
    }


def _texts(values: Array) -> list[str]:
    return [brief(v) for v in values]


def number_rows(step: CellStep, example: int) -> dict[str, list[Any]]:
    """The drawing's numbers as a table: a column for each quantity, a row for each unit."""
    at = example_index(step, example)
    out: dict[str, list[Any]] = {"unit": list(range(step.output.shape[-1]))}
    for part, before in zip(step.kind.parts, step.before, strict=True):
        out[part] = [exact(v) for v in before[at]]
    for gate in step.gates:
        if gate.name != "h′":
            out[gate.name] = [exact(v) for v in gate.value[at]]
    for part, after in zip(step.kind.parts, step.after, strict=True):
        out[f"{part}′"] = [exact(v) for v in np.broadcast_to(after, step.output.shape)[at]]
    out["y"] = [exact(v) for v in step.output[at]]
    return out
