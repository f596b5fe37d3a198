"""The last row of a gradient map, worked out twice otherwise: by reverse mode, and by differences without any JAX.

All three follow one trajectory, that of the map's own program: it is handed to both checks, step by step. Where a
layer is chaotic (a recurrent scale of 4), the last bit of a carry grows as fast as the gradient does, and two programs
that round differently would be at two different places after some forty steps, each with right derivatives of its own.
So that nobody checks derivatives along numbers which are no trajectory of this layer, each step of it is compared too.

Differences: for every feature of every x_t two runs, with that number a little larger and a little smaller, all side
by side, by the NumPy formulas in float64. The distance between two such runs grows or shrinks by a factor a step, soon
out of what differences can see: below 1e-16 it is lost in rounding, above 1e-2 it is no derivative. So after each step
both are put back to a distance of `STEP` on the line between them, as Lyapunov exponents are measured (Benettin,
Galgani, Giorgilli and Strelcyn 1980), and the factor is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from core.base.tolerance import Difference, Tolerance, difference, tolerance_of
from core.runners.cell_formulas import formula_step
from core.runners.cells import parts_of
from core.runners.gradient_source import GRADIENT_PROGRAMS, Example, packed
from core.runners.layers import CellParts, weights_of

type Array = np.ndarray[Any, Any]

#: How far each of two runs is moved: the cube root of float64's epsilon, where the two errors of a central difference
#: are least together: rounding (epsilon / STEP) and the third derivative (STEP²), about 4e-11 of a step's result each.
STEP: Final = float(np.cbrt(np.finfo(np.float64).eps))

#: Above this a norm is out of reach for reverse mode in float32 (3e38, less room for sums): `jax.grad` gives infinity.
LARGEST: Final = float(np.finfo(np.float32).max) / 2**10


def chain_tolerance(length: int, *dtypes: Any) -> Tolerance:
    """What two ways to a derivative through `length` steps may differ by.

    One step is compared at the tolerance of its dtype. A derivative through T of them is made of T factors, and summed
    over up to T: relative errors of a product add up, and so do errors of a sum, both as the square root of T, since
    roundings are as often up as down (Higham and Mary 2019, "A new approach to probabilistic rounding error analysis").

    Args:
        length: T.
        *dtypes: of the gradient; float32 where none is given.
    """
    one, root = tolerance_of(*dtypes or ("float32",)), float(np.sqrt(max(length, 1)))
    return Tolerance(one.rtol * root, one.atol * root)


# --- reverse mode ---------------------------------------------------------------------------------------------------


def reverse_rows(source: Example, carries: tuple[Array, ...]) -> tuple[Array, ...]:
    """Per part of the carry the norms (T,) of the last row, float32, one backward pass a unit (vectorised).

    Nothing is rescaled here: it is what ``jax.grad`` gives, 0 below float32's range and infinite above it.

    Args:
        source: the example.
        carries: per part (T, H): what each step left, to be followed.
    """
    args = (source.cell.leaves, source.carry, source.xs, source.valid, carries)
    program, _ = GRADIENT_PROGRAMS.get(("memory row", *source.size), _row_program(source.bare), args)
    with np.errstate(invalid="ignore"):
        return tuple(np.linalg.norm(j.astype(np.float64), axis=(0, 2)) for j in jax.device_get(program(*args)))


def _row_program(bare: CellParts) -> Callable[..., Any]:
    """``program(leaves, carry, xs, valid, carries)``: per part ∂last/∂xs, (H, T, F)."""

    def program(leaves: Any, carry: Any, xs: Any, valid: Any, carries: Any) -> Any:
        kind, cell = bare.kind, bare.cell(leaves)

        def last(xs: Any) -> Any:
            def body(parts: Any, at: Any) -> Any:
                x, counts, follow = at
                new = parts_of(kind, cell(packed(kind, parts), x)[0])
                new = tuple(jnp.where(counts, n, o) for n, o in zip(new, parts, strict=True))
                # The value that was handed in, with the derivative of what is computed here.
                new = tuple(n + lax.stop_gradient(f - n) for n, f in zip(new, follow, strict=True))
                return new, None

            return lax.scan(body, carry, (xs, valid, carries))[0]

        return jax.jacrev(last)(xs)

    return program


# --- differences ----------------------------------------------------------------------------------------------------


def difference_rows(source: Example, carries: tuple[Array, ...]) -> tuple[Array, ...]:
    """Per part of the carry the norms (T,) of the last row, by central differences of the formulas in float64.

    Args:
        source: the example.
        carries: per part (T, H): what each step left, to be followed.
    """
    weights = weights_of(source.cell)
    before = _before(source, carries)
    features, parts, width = source.xs.shape[1], len(carries), source.hidden
    # Per t and feature: the line between the two runs, its largest number below 1, and the power of 2 taken out.
    lines = np.zeros((source.length, features, parts, width))
    powers = np.zeros((source.length, features), np.int64)
    for s in np.flatnonzero(source.valid).tolist():
        around = [part[s] for part in before]
        x = source.xs[s].astype(np.float64)
        moved = np.stack([_one_step(source, weights, around, x, lines[: s + 1], s, side) for side in (STEP, -STEP)])
        lines[: s + 1] = (moved[0] - moved[1]) / (2 * STEP)
        largest = np.abs(lines[: s + 1]).max(axis=(2, 3))
        taken = np.where(np.isfinite(largest), np.frexp(largest)[1], 0)
        lines[: s + 1] = np.ldexp(lines[: s + 1], -taken[:, :, None, None])
        powers[: s + 1] += taken
    norms = np.linalg.norm(lines, axis=3)  # (T, F, parts)
    # Features have powers of their own: together at the largest of a t, where what is far below it counts for nothing.
    highest = np.where(norms.any(axis=2), powers, np.iinfo(np.int32).min).max(axis=1)
    with np.errstate(over="ignore", under="ignore"):
        below = np.ldexp(norms, np.maximum(powers - highest[:, None], -2000)[:, :, None])
        return tuple(np.ldexp(np.linalg.norm(below[:, :, part], axis=1), highest) for part in range(parts))


def _one_step(source: Example, weights: Any, around: list[Array], x: Array, lines: Array, s: int, side: float) -> Array:
    """(s + 1, F, parts, H): the carries after step s of the runs on one side of each line."""
    carry = tuple(part + side * lines[:, :, i] for i, part in enumerate(around))
    inputs = np.broadcast_to(x, (*lines.shape[:2], len(x))).copy()
    inputs[s] += side * np.eye(len(x))
    flat = tuple(part.reshape(-1, source.hidden) for part in carry)
    after = formula_step(source.kind, weights, flat, inputs.reshape(-1, len(x)), np.float64).carry
    return np.stack([part.reshape(carry[0].shape) for part in after], axis=2)


def trajectory_difference(source: Example, carries: tuple[Array, ...]) -> Difference:
    """Each step from where the trajectory stood, by the formulas in float64, against where it went."""
    weights = weights_of(source.cell)
    before = _before(source, carries)
    after = formula_step(source.kind, weights, before, source.xs, np.float64).carry
    want = [np.where(source.valid[:, None], new, old) for new, old in zip(after, before, strict=True)]
    return difference(np.stack(carries), np.stack(want), tolerance_of("float32"))


def _before(source: Example, carries: tuple[Array, ...]) -> tuple[Array, ...]:
    """Per part (T, H) float64: where the trajectory stood before each step."""
    pairs = zip(source.carry, carries, strict=True)
    return tuple(np.concatenate([first[None], part[:-1]]).astype(np.float64) for first, part in pairs)
