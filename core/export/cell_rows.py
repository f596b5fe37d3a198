"""One step of a cell as files of numbers: carry, gates with their parts, new carry, output, weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from core.export.rows import csv_bytes, npz_bytes, number
from core.inputs.cell_page import CellLook
from core.runners.cells import CellStep

CSV_NAME, NPZ_NAME = "carry-lab-lstm.csv", "carry-lab-lstm.npz"
#: The first columns; then the carry's parts, of each gate what went in and what came out, the new parts, the output.
COLUMNS: Final = ("example", "unit")


def cell_csv(step: CellStep) -> bytes:
    """A line for each example and hidden unit."""
    return csv_bytes([*COLUMNS, *(name for name, _ in _columns(step))], _rows(step))


def _columns(step: CellStep) -> list[tuple[str, Any]]:
    """(name, values (…, H)) in the order in which they come about."""
    parts = step.kind.parts
    out = list(zip(parts, step.before, strict=True))
    for gate in step.gates:
        name = plain(gate.name)
        out += [(f"{name}_from_x", gate.from_x), (f"{name}_from_h", gate.from_h), (f"{name}_bias", gate.bias)]
        out += [(f"{name}_pre", gate.pre), (name, gate.value)]
    out += [(f"new_{part}", values) for part, values in zip(parts, step.after, strict=True)]
    return [*out, ("output", step.output)]


def _rows(step: CellStep) -> Iterator[list[str]]:
    hidden = step.output.shape[-1]
    columns = [np.broadcast_to(values, step.output.shape).reshape(-1, hidden) for _, values in _columns(step)]
    for example in range(len(columns[0])):
        for unit in range(hidden):
            yield [str(example), str(unit), *(number(values[example, unit]) for values in columns)]


def cell_npz(look: CellLook, step: CellStep) -> bytes:
    """Everything of a step as one npz.

    ``x`` (B, F), ``c`` and ``h`` (B, H), of each gate ``i_from_x``, ``i_from_h``, ``i_bias``, ``i_pre``, ``i``, then
    ``new_c``, ``new_h``, ``output``; ``weights_i_x`` and ``weights_i_h``, the kernels. ``info``: JSON with versions and
    the page's inputs.
    """
    arrays: dict[str, Any] = {"x": step.inputs, **dict(_columns(step))}
    for name, weights in (look.weights or {}).items():
        arrays |= {f"weights_{plain(name)}_x": weights.kernel_x, f"weights_{plain(name)}_h": weights.kernel_h}
    return npz_bytes(arrays, {"inputs": look.inputs.values})


def plain(gate: str) -> str:
    """A gate's name as a key: ``h′`` is ``h_new``."""
    return gate.replace("′", "_new")
