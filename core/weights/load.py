"""Reading parameters of a cell: every check in its order, the control forward last; then, and only then, a value.

What is read here has not been used for anything but the control forward. A caller keeps what it runs with until this
returns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from core.base.limits import LIMITS
from core.base.tolerance import Tolerance
from core.runners.cell_formulas import KINDS
from core.weights.architecture import Architecture, expected
from core.weights.cell import CellWeights, LeafRow, Origin
from core.weights.container import read, short
from core.weights.control import Control, check, shapes
from core.weights.document import (
    CONTROL,
    NAME,
    PARAMS,
    Document,
    check_finite,
    check_hashes,
    check_leaves,
    document_of,
    section_arrays,
    typed,
)
from core.weights.refusal import Stage, WeightsRefused
from core.weights.torch_layout import is_torch, load_torch

type Array = np.ndarray[Any, Any]

NO_CELL = "The file is for a {cell}; the cells here are {known}."
NOT_A_CELL = "The file holds the state of some module, not the parameters of one cell."
NO_CONTROL = "Unverified: the file has no control forward, so nothing says what its parameters should compute."
TOO_WIDE = "The file is for {name} = {got}; {limit} is the most here."
NOT_OF_CELL = "{leaf} is no parameter of {architecture}; its parameters are {names}."
MISSING = "{leaf} is missing: {architecture} needs it as {want}."
OTHER_TYPE = "{leaf} is {got} in the file, and {architecture} needs {want}."
FLOAT32: Final = "float32"


def load_cell(data: bytes, kind: str = "LSTMCell") -> CellWeights:
    """The parameters of a file of ours, or of a PyTorch state dict as safetensors.

    Checks in order: size, file format, schema, paths with shapes and dtypes, finite, hashes, control forward. A PyTorch
    file has no control: it is checked against PyTorch's own equations (`core.weights.torch_layout`).

    Args:
        data: the bytes of the file.
        kind: which cell a PyTorch file is read for; a file of ours says it itself.

    Raises:
        WeightsRefused: with the check that failed, the leaf, and a sentence.
    """
    container = read(data)
    if NAME not in container.metadata and is_torch(container.tensors):
        return load_torch(container.tensors, kind)
    document = document_of(container)
    architecture = _architecture(document)
    check_leaves(container, document)
    leaves, arrays = section_arrays(container, PARAMS), section_arrays(container, CONTROL)
    check_types(leaves, expected(architecture), architecture.text, PARAMS)
    wanted = {path: np.empty(shape, np.float32) for path, shape in shapes(architecture).items()}
    check_types(arrays, wanted, architecture.text, CONTROL)
    check_finite(container.tensors)
    check_hashes(container, document)
    said = document["control"]
    tolerance = {name: Tolerance(t["rtol"], t["atol"]) for name, t in said["tolerance"].items()}
    control = Control(arrays, tolerance, said["backend"], document["versions"])
    rows = tuple(LeafRow(path, typed(a.dtype.name, a.shape), f"{PARAMS}/{path}") for path, a in leaves.items())
    weights = CellWeights(
        architecture,
        leaves,
        document["sections"][PARAMS]["sha256"],
        control,
        document["seed"],
        Origin.FILE,
        document["versions"],
        rows,
    )
    return recheck(weights)


def recheck(weights: CellWeights) -> CellWeights:
    """The same parameters after their control forward was run once more: what comes back is always checked again.

    Raises:
        WeightsRefused: at `Stage.CONTROL`.
    """
    return replace(weights, apart=check(weights.architecture, weights.leaves, weights.control))


def _architecture(document: Document) -> Architecture:
    """What the file is for, within the limits.

    Raises:
        WeightsRefused: at `Stage.SCHEMA`.
    """
    said = document["architecture"]
    if said is None or set(document["sections"]) != {PARAMS}:
        raise WeightsRefused(Stage.SCHEMA, NOT_A_CELL)
    if document["control"] is None:
        raise WeightsRefused(Stage.SCHEMA, NO_CONTROL)
    if said["cell"] not in KINDS:
        raise WeightsRefused(Stage.SCHEMA, NO_CELL, cell=short(said["cell"]), known=", ".join(KINDS))
    for name, limit in (("in_features", "features"), ("hidden_features", "hidden")):
        if said[name] > LIMITS[limit].value:
            raise WeightsRefused(Stage.SCHEMA, TOO_WIDE, name=name, got=said[name], limit=LIMITS[limit].value)
    return Architecture(
        said["cell"], said["in_features"], said["hidden_features"], tuple(said["cells"]), said["param_dtype"]
    )


def check_types(tensors: Mapping[str, Array], wanted: Mapping[str, Any], whose: str, section: str) -> None:
    """Paths, shapes and dtypes are those of what they are for.

    Args:
        tensors: by path.
        wanted: anything with `shape` and `dtype`, by path.
        whose: what they are for, in a sentence.
        section: the first part of the name in a message.

    Raises:
        WeightsRefused: at `Stage.LEAVES`.
    """
    for path, want in wanted.items():
        need = typed(np.dtype(want.dtype).name, want.shape)
        if path not in tensors:
            raise WeightsRefused(Stage.LEAVES, MISSING, f"{section}/{path}", architecture=whose, want=need)
        got = typed(tensors[path].dtype.name, tensors[path].shape)
        if got != need:
            raise WeightsRefused(Stage.LEAVES, OTHER_TYPE, f"{section}/{path}", got=got, want=need, architecture=whose)
    for path in tensors:
        if path not in wanted:
            names = _some(wanted)
            raise WeightsRefused(Stage.LEAVES, NOT_OF_CELL, short(f"{section}/{path}"), architecture=whose, names=names)


def _some(names: Iterable[str], most: int = 6) -> str:
    listed = list(names)
    return ", ".join(listed[:most]) + (" …" if len(listed) > most else "")
