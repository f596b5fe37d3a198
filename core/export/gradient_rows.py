"""The gradient of a scan, and one update of a model, as files of numbers. (What cells remember: `inputs.gradient_rows`.)"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

import numpy as np

from core.export.rows import csv_bytes, npz_bytes, number
from core.inputs.gradient_page import GradientLook
from core.inputs.gradient_rows import map_npz, row_csv

GRADIENT_COLUMNS: Final = ("leaf", "index", "gradient")
LOSS_COLUMNS: Final = ("updates", "loss")


def gradient_csv(look: GradientLook, s: int) -> bytes:
    """What the view shows as CSV.

    Cells: row `s` (1 to T) of every map. A scan: a line for each number of init and of xs, by leaf and index. A model:
    the loss before each update, and after the last. Empty where nothing ran.
    """
    if look.cells is not None:
        return row_csv(look.cells, s)
    if look.scan is not None:
        rows = [
            [leaf.type.path, " ".join(map(str, index)), number(leaf.values[index])]
            for leaf in look.scan.gradient.leaves
            if leaf.values is not None
            for index in np.ndindex(np.shape(leaf.values))
        ]
        return csv_bytes(GRADIENT_COLUMNS, rows)
    if look.training is not None:
        return csv_bytes(LOSS_COLUMNS, [[str(n), number(loss)] for n, loss in enumerate(look.training.losses)])
    return b""


def gradient_npz(look: GradientLook) -> bytes:
    """The same as npz; of a scan ``value`` and the gradient by each leaf's path, of a model ``losses`` with its data."""
    if look.cells is not None:
        return map_npz(look.cells)
    arrays: dict[str, Any] = {}
    if look.scan is not None:
        gradient = look.scan.gradient
        arrays["value"] = np.asarray(gradient.value)
        arrays |= {leaf.type.path: leaf.values for leaf in gradient.leaves if leaf.values is not None}
    elif look.training is not None:
        spec = look.training.spec
        arrays = {"losses": look.training.losses, "inputs": spec.inputs, "targets": spec.targets}
    return npz_bytes(arrays, {"inputs": asdict(look.inputs)})
