"""The history of a layer over sequences as files: a CSV of the carries, and an npz of everything, without pickles.

The initial carry is in both: position 0. Positions count in the order of visits, so a reversed layer has its last step
at position 1; which step of the data was read stands beside it.
"""

from __future__ import annotations

import io
import json
import platform
from collections.abc import Iterator
from typing import Any, Final

import flax
import jax
import numpy as np

from core.base.sequences import Direction, SequenceResult
from core.contract.subject import SequenceTrial
from core.inputs.sequence_inputs import SequenceInputs
from core.runners.cell_formulas import KINDS

type Array = np.ndarray[Any, Any]

#: The first columns of the CSV; then a column for each unit of each part: ``c_0``, …, ``h_0``, …
COLUMNS: Final = ("direction", "example", "position", "t", "valid")
FORWARD, BACKWARD = "forward", "backward"
#: Nine digits read back to the same float32.
_NUMBER: Final = "%.9g"
_SCHEMA: Final = 1

CSV_NAME: Final = "carries.csv"
NPZ_NAME: Final = "sequence.npz"


def header(result: SequenceResult) -> tuple[str, ...]:
    """The CSV's column names."""
    units = range(result.forward.carries[0].shape[-1])
    return (*COLUMNS, *(f"{part}_{unit}" for part in KINDS[result.kind].parts for unit in units))


def carry_csv(result: SequenceResult) -> bytes:
    """The carries as CSV, UTF-8: a line for each direction, example and position 0 … T.

    ``position`` 0 is the initial carry: ``t`` and ``valid`` are empty there. ``t`` is the step of the data that was read
    to get there; ``valid`` is 1 where that step is no padding. Numbers have nine digits, as many as a float32 needs;
    ``nan``, ``inf`` and ``-inf`` are written as such.
    """
    lines = [",".join(header(result))]
    for name, direction in zip((FORWARD, BACKWARD), result.directions, strict=False):
        lines += _lines(name, direction)
    return ("\n".join(lines) + "\n").encode()


def _lines(name: str, direction: Direction) -> Iterator[str]:
    steps, batch, _ = direction.carries[0].shape
    for example in range(batch):
        values = np.concatenate([part[:, example] for part in direction.carries], axis=-1)
        row = ",".join([_NUMBER] * values.shape[-1])
        for position in range(steps):
            t, valid = "", ""
            if position:
                t = str(int(direction.order[position - 1, example]))
                valid = str(int(direction.valid[position - 1, example]))
            yield f"{name},{example},{position},{t},{valid}," + row % tuple(values[position].tolist())


def history_npz(inputs: SequenceInputs, trial: SequenceTrial, result: SequenceResult) -> bytes:
    """Everything of a run as one compressed ``.npz``; ``np.load`` reads it without pickles.

    Keys: ``carry_c``, ``carry_h`` (T + 1, B, H), position 0 is init; ``final_c``, ``final_h`` (B, H); ``gates_i``, …
    (T, B, H); ``order`` (T, B), the t read at a position, and ``valid`` (T, B); of the backward direction the same with
    ``backward_`` before them. ``outputs`` as the layer returns them, but time-first. ``inputs`` as they were handed
    over, ``axes``; ``lengths`` and ``mask`` (B, T) where they were given. ``info``: JSON with versions and the page's
    inputs.
    """
    arrays: dict[str, Any] = {}
    for prefix, direction in zip(("", "backward_"), result.directions, strict=False):
        parts = KINDS[result.kind].parts
        arrays |= {f"{prefix}carry_{name}": a for name, a in zip(parts, direction.carries, strict=True)}
        arrays |= {f"{prefix}final_{name}": a for name, a in zip(parts, direction.final, strict=True)}
        arrays |= {f"{prefix}gates_{_plain(name)}": values for name, values in direction.gates.items()}
        arrays |= {f"{prefix}order": direction.order, f"{prefix}valid": direction.valid}
    arrays |= {"outputs": result.outputs, "inputs": trial.inputs, "axes": trial.axes}
    if trial.lengths is not None:
        arrays["lengths"] = np.asarray(trial.lengths)
    if trial.mask is not None:
        arrays["mask"] = np.asarray(trial.mask, bool)
    arrays["info"] = json.dumps(info(inputs), ensure_ascii=False)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **{name: np.asarray(values) for name, values in arrays.items()})
    return file.getvalue()


def info(inputs: SequenceInputs) -> dict[str, Any]:
    """What made the numbers: versions and inputs, by the names of their fields."""
    versions = {
        "jax": jax.__version__,
        "flax": flax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    return {"schema": _SCHEMA, "versions": versions, "inputs": inputs.values}


def _plain(gate: str) -> str:
    """A gate's name as a key: ``h′`` is ``h_new``."""
    return gate.replace("′", "_new")
