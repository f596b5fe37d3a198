"""The control forward: what the parameters make of a small seeded input, kept in the file and run again when it is loaded.

A hash says that the numbers are those that were saved. This says that here, on this machine and these versions, they
compute what they computed there: the same cell, the same order of gates, the same parts of the carry.

Each cell of the file (`cell`, or `forward` and `backward`) is scanned over three steps of two examples, from a carry that
is not zero, in the highest precision that the backend has for products.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import jax
import numpy as np
from flax import nnx
from jax import lax, tree_util

from core.base.tolerance import Tolerance, difference, tolerance_of
from core.runners.cache import PROGRAMS
from core.runners.cell_formulas import KINDS
from core.runners.room import keep_room
from core.weights.architecture import Architecture, Template, template
from core.weights.refusal import Stage, WeightsRefused

type Array = np.ndarray[Any, Any]

SEED: Final = 2_026
STEPS, BATCH = 3, 2
INPUT, INIT, FINAL, OUTPUT = "x", "init", "final", "ys"

#: By backend, for cells that compute in float32. On a CPU it is the tolerance of every result here. Other backends sum
#: in another order and have functions of their own; their rows are not measured.
TOLERANCES: Final[Mapping[str, Tolerance]] = {
    "cpu": tolerance_of(np.float32),
    "gpu": Tolerance(1e-4, 1e-5),
    "tpu": Tolerance(1e-4, 1e-5),
}

APART = (
    "The control forward gives other numbers: {leaf} is {largest} apart at {at}, where {tolerance} is allowed ({backend}). "
    "The file was made with jax {jax} and flax {flax}."
)
ANYWHERE = "some place"
OVERFLOWS = "The control forward of these parameters is not finite: {leaf}. They cannot be told from others by it."
WIDER = "The file allows {got} on {backend} for the control forward; no more than {want} is accepted."


@dataclass(frozen=True, slots=True, eq=False)
class Control:
    """A control forward with its outcome.

    Attributes:
        arrays: by ``<cell>.x`` (T, B, F), ``<cell>.init.<part>`` and ``<cell>.final.<part>`` (B, H), ``<cell>.ys``
            (T, B, H); all float32.
        tolerance: by backend.
        backend: on which it was run when it was kept.
        versions: that made it.
    """

    arrays: Mapping[str, Array]
    tolerance: Mapping[str, Tolerance]
    backend: str
    versions: Mapping[str, str]


def backend() -> str:
    """``cpu``, ``gpu`` or ``tpu``."""
    name = jax.default_backend()
    return name if name in TOLERANCES else "gpu"  # cuda, rocm


def given(architecture: Architecture) -> dict[str, Array]:
    """The seeded inputs and initial carries, by path."""
    rng = np.random.default_rng(SEED)
    width, hidden = architecture.in_features, architecture.hidden_features
    out = {}
    for cell in architecture.cells:
        out[f"{cell}.{INPUT}"] = rng.standard_normal((STEPS, BATCH, width)).astype(np.float32)
        for part in KINDS[architecture.cell].parts:
            out[f"{cell}.{INIT}.{part}"] = rng.standard_normal((BATCH, hidden)).astype(np.float32)
    return out


def outcome(architecture: Architecture, leaves: Mapping[str, Array], arrays: Mapping[str, Array]) -> dict[str, Array]:
    """What these parameters make of given inputs: ``<cell>.final.<part>`` and ``<cell>.ys``."""
    keep_room()
    kind, made = KINDS[architecture.cell], template(architecture)
    out: dict[str, Array] = {}
    for cell in architecture.cells:
        parameters = tuple(np.asarray(leaves[f"{cell}.{path}"]) for path in made.paths)
        carry = tuple(arrays[f"{cell}.{INIT}.{part}"] for part in kind.parts)
        args = (parameters, carry if kind.pair else carry[0], arrays[f"{cell}.{INPUT}"])
        key = ("control forward", kind.name, architecture.in_features, architecture.hidden_features)
        program, _ = PROGRAMS.get(key, _program(made), args)
        final, ys = jax.device_get(program(*args))
        parts = final if kind.pair else (final,)
        out |= {f"{cell}.{FINAL}.{part}": value for part, value in zip(kind.parts, parts, strict=True)}
        out[f"{cell}.{OUTPUT}"] = ys
    return out


def _program(made: Template) -> Callable[..., Any]:
    def program(parameters: tuple[Any, ...], carry: Any, xs: Any) -> Any:
        cell = nnx.merge(made.graph, tree_util.tree_unflatten(made.tree, parameters))
        with jax.default_matmul_precision("highest"):
            return lax.scan(lambda c, x: cell(c, x), carry, xs)

    return program


def keep(architecture: Architecture, leaves: Mapping[str, Array], made_by: Mapping[str, str]) -> Control:
    """Run it now, for a file or to come back to.

    Raises:
        WeightsRefused: what comes out is not finite (finite weights can overflow in a product).
    """
    arrays = given(architecture)
    results = outcome(architecture, leaves, arrays)
    for path, values in results.items():
        if not np.isfinite(values).all():
            raise WeightsRefused(Stage.CONTROL, OVERFLOWS, path)
    return Control({**arrays, **results}, TOLERANCES, backend(), made_by)


def shapes(architecture: Architecture) -> dict[str, tuple[int, ...]]:
    """The shape of each array of a control, by path."""
    hidden = architecture.hidden_features
    out: dict[str, tuple[int, ...]] = {}
    for cell in architecture.cells:
        out[f"{cell}.{INPUT}"] = (STEPS, BATCH, architecture.in_features)
        for part in KINDS[architecture.cell].parts:
            out[f"{cell}.{INIT}.{part}"] = out[f"{cell}.{FINAL}.{part}"] = (BATCH, hidden)
        out[f"{cell}.{OUTPUT}"] = (STEPS, BATCH, hidden)
    return out


def check(architecture: Architecture, leaves: Mapping[str, Array], control: Control) -> float:
    """Run it again with these parameters, and compare with what is kept.

    Returns:
        the largest difference.

    Raises:
        WeightsRefused: at `Stage.CONTROL`: out of tolerance, or the file allows more than is accepted.
    """
    here = backend()
    tolerance = control.tolerance[here]
    check_width(tolerance, here)
    largest = 0.0
    for path, got in outcome(architecture, leaves, control.arrays).items():
        apart = difference(got, control.arrays[path], tolerance)
        if not apart.within:
            raise WeightsRefused(
                Stage.CONTROL,
                APART,
                path,
                largest=f"{apart.largest:.3g}",
                at=ANYWHERE if apart.first is None else list(apart.first),
                tolerance=tolerance.text,
                backend=here,
                jax=control.versions.get("jax", "?"),
                flax=control.versions.get("flax", "?"),
            )
        largest = max(largest, apart.largest)
    return largest


def check_width(tolerance: Tolerance, here: str) -> None:
    """A file may ask for a stricter comparison than ours, never for a looser one.

    Raises:
        WeightsRefused: at `Stage.CONTROL`.
    """
    widest = TOLERANCES[here]
    if tolerance.rtol > widest.rtol or tolerance.atol > widest.atol:
        raise WeightsRefused(Stage.CONTROL, WIDER, got=tolerance.text, want=widest.text, backend=here)
