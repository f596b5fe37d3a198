"""The parameters of a cell, or of the two cells of a bidirectional layer, as a value; and the file that they are saved as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

import jax
import numpy as np
from flax import nnx

from core.runners.cell_formulas import KINDS
from core.runners.layers import CellParts, parts_of_cell
from core.weights.architecture import ONE, Architecture
from core.weights.container import write
from core.weights.control import SEED, Control, keep
from core.weights.document import (
    CONTROL,
    FORMAT,
    NAME,
    PARAMS,
    VERSION,
    check_finite,
    digest,
    leaves_of,
    sealed,
    typed,
    versions,
)

type Array = np.ndarray[Any, Any]

#: Characters of a hash in a sentence or a link, and in a sentence alone.
IN_LINK, SHORT = 16, 8
_PARAM: Final = "Param"


class Origin(StrEnum):
    """Where parameters come from."""

    SEED = "seed"
    FILE = "file"
    TORCH = "PyTorch"


@dataclass(frozen=True, slots=True)
class LeafRow:
    """One parameter in the table of a file.

    Attributes:
        path: of the parameter here, ``cell.hi.kernel``.
        type: ``float32[4,4]``.
        source: the tensors of the file that it comes from.
        change: what was done to them; "" when nothing.
    """

    path: str
    type: str
    source: str
    change: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class CellWeights:
    """Parameters that passed every check. Equal when their architecture and their hash are.

    Attributes:
        architecture: what they belong to.
        leaves: read-only arrays by path, ``cell.hi.kernel`` (``forward.…``, ``backward.…``).
        digest: SHA-256 over them (`core.weights.document.digest`).
        control: what they must compute.
        seed: they were drawn from; None when nobody knows.
        origin: seed, file, or a PyTorch file.
        versions: of what made the file.
        rows: the table of the file.
        torch: of a PyTorch file, its biases as they were, by their own names: so that they go back as they came.
        apart: largest difference of the control forward when it was checked last.
    """

    architecture: Architecture
    leaves: Mapping[str, Array]
    digest: str
    control: Control
    seed: int | None = None
    origin: Origin = Origin.FILE
    versions: Mapping[str, str] = field(default_factory=dict)
    rows: tuple[LeafRow, ...] = ()
    torch: Mapping[str, Array] = field(default_factory=dict)
    apart: float = 0.0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CellWeights):
            return NotImplemented
        return self.architecture == other.architecture and self.digest == other.digest

    def __hash__(self) -> int:
        return hash((self.architecture, self.digest))

    @property
    def short(self) -> str:
        """The hash in a sentence: ``abc12345``."""
        return self.digest[:SHORT]

    @property
    def in_link(self) -> str:
        """The hash in a link: enough to tell sets of parameters apart, and nothing of what they are."""
        return self.digest[:IN_LINK]

    def of_cell(self, cell: str) -> dict[str, Array]:
        """The parameters of one cell, ``hi.kernel``: of ``cell``, ``forward`` or ``backward``."""
        start = f"{cell}."
        return {path.removeprefix(start): a for path, a in self.leaves.items() if path.startswith(start)}


def weights_of(
    architecture: Architecture, leaves: Mapping[str, Array], *, seed: int | None = None, origin: Origin = Origin.SEED
) -> CellWeights:
    """Parameters as a value, with the control forward that they give here and now.

    Raises:
        WeightsRefused: they, or what they compute, are not finite.
    """
    kept = {path: _read_only(array) for path, array in leaves.items()}
    check_finite(kept)
    made_by = versions()
    control = keep(architecture, kept, made_by)
    rows = tuple(LeafRow(path, typed(a.dtype.name, a.shape), path) for path, a in kept.items())
    return CellWeights(architecture, kept, digest(kept), control, seed, origin, made_by, rows)


def weights_of_seed(architecture: Architecture, seed: int) -> CellWeights:
    """What ``nnx.Rngs(seed)`` draws; a backward cell has the next seed, as on the pages.

    Raises:
        ValueError: the architecture does not keep its parameters in float32.
    """
    if architecture.param_dtype != "float32":
        raise ValueError(architecture.param_dtype)
    return weights_of(architecture, _drawn(architecture, seed), seed=seed)


def seed_digest(architecture: Architecture, seed: int) -> str:
    """The hash of what `weights_of_seed` gives, without running anything."""
    return digest(_drawn(architecture, seed))


def _drawn(architecture: Architecture, seed: int) -> dict[str, Array]:
    leaves: dict[str, Array] = {}
    for at, cell in enumerate(architecture.cells):
        parts = parts_of_cell(architecture.cell, architecture.in_features, architecture.hidden_features, seed + at)
        leaves |= leaves_of_parts(parts, cell)
    return leaves


def leaves_of_parts(parts: CellParts, cell: str) -> dict[str, Array]:
    """The parameters of a cell that was taken apart, by path."""
    return {".".join((cell, *path)): np.asarray(leaf) for path, leaf in zip(parts.paths, parts.leaves, strict=True)}


def weights_of_cell(cell: Any, *, seed: int | None = None) -> CellWeights:
    """The parameters of a built cell, as they are now.

    Raises:
        KeyError: it is none of `KINDS`.
        WeightsRefused: they, or what they compute, are not finite.
    """
    kind = KINDS[type(cell).__name__]
    flat = nnx.to_flat_state(nnx.state(cell, nnx.Param))
    leaves = {".".join((ONE[0], *map(str, path))): np.asarray(variable[...]) for path, variable in flat}
    dtype = next(iter(leaves.values())).dtype.name
    architecture = Architecture(kind.name, int(cell.in_features), int(cell.hidden_features), ONE, dtype)
    return weights_of(architecture, leaves, seed=seed)


def with_weights(cell: Any, weights: CellWeights) -> Any:
    """A built cell after its parameters were replaced by these; as it was where they are for another cell or size."""
    architecture = weights.architecture
    same = type(cell).__name__, cell.in_features, cell.hidden_features
    if (
        same != (architecture.cell, architecture.in_features, architecture.hidden_features)
        or len(architecture.cells) > 1
    ):
        return cell
    ours = weights.of_cell(ONE[0])
    flat = nnx.to_flat_state(nnx.state(cell, nnx.Param))
    new = [(path, variable.replace(jax.device_put(ours[".".join(map(str, path))]))) for path, variable in flat]
    nnx.update(cell, nnx.from_flat_state(new))
    return cell


def cell_file(weights: CellWeights) -> bytes:
    """The safetensors file of these parameters: `core.weights.load.load_cell` reads it back, bit for bit."""
    architecture, control = weights.architecture, weights.control
    document = {
        "format": FORMAT,
        "version": VERSION,
        "versions": versions(),
        "seed": weights.seed,
        "architecture": {
            "cell": architecture.cell,
            "in_features": architecture.in_features,
            "hidden_features": architecture.hidden_features,
            "cells": list(architecture.cells),
            "param_dtype": architecture.param_dtype,
        },
        "sections": {
            PARAMS: {
                "sha256": weights.digest,
                "leaves": leaves_of(weights.leaves, dict.fromkeys(weights.leaves, _PARAM)),
            }
        },
        "control": {
            "seed": SEED,
            "backend": control.backend,
            "tolerance": {name: {"rtol": t.rtol, "atol": t.atol} for name, t in control.tolerance.items()},
            "sha256": digest(control.arrays),
            "leaves": leaves_of(control.arrays, {}),
        },
    }
    tensors = {f"{PARAMS}/{path}": array for path, array in weights.leaves.items()}
    tensors |= {f"{CONTROL}/{path}": array for path, array in control.arrays.items()}
    return write(tensors, {NAME: sealed(document)})


def _read_only(array: Array) -> Array:
    own = np.array(array)
    own.flags.writeable = False
    return own
