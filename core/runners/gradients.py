"""What a later state still remembers of each input: the map of ‖∂h_s/∂x_t‖ and ‖∂c_s/∂x_t‖, and two checks of it.

Forward mode, in one scan beside the layer's own: after step s the program holds, for every t, how the carry moves when
x_t does, and the next step moves those tangents along (`jax.jvp` of the cell, vectorised over t and the features).
Only their norms leave the program, so that memory is T·F·H for the tangents and T·T for the result. Reverse mode would
need one backward pass for each unit and step (measured at T=128: 447 ms against 34).

Derivatives through time shrink or grow by a factor a step and leave the range of float32 soon: 0.05^127 is 1e-165. So
the tangents of each t have an exponent of their own: when they get small or large they are multiplied by a power of
two, which is exact, and the power is kept beside them. Norms are taken of numbers scaled by their largest (a sum of
squares underflows at 1e-23), and put together in float64 on the host. A derivative that is exactly 0 stays 0.

Sources: Bengio, Simard and Frasconi 1994 and Pascanu, Mikolov and Bengio 2013 (arXiv:1211.5063) for the products of
Jacobians through time; Griewank and Walther, *Evaluating Derivatives*, chapter 3, for forward mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from core.base.gradients import MemoryCheck, MemoryMap
from core.base.tolerance import difference
from core.contract.subject import SequenceTrial
from core.runners.cells import parts_of
from core.runners.gradient_check import (
    LARGEST,
    STEP,
    chain_tolerance,
    difference_rows,
    reverse_rows,
    trajectory_difference,
)
from core.runners.gradient_source import GRADIENT_PROGRAMS, Example, example_of, packed
from core.runners.layers import CellParts

type Array = np.ndarray[Any, Any]

#: Tangents below 2^-SPAN or above 2^SPAN are multiplied by 2^±SHIFT. One step would have to change them by a factor of
#: 2^60 to leave the range of float32 (2^±126) in between.
SPAN: Final = 32
SHIFT: Final = 64


def memory_map(trial: SequenceTrial, example: int) -> MemoryMap:
    """The whole map of one example, by one compiled call.

    Positions are in visiting order: s and t count steps as the layer makes them, also when it runs in reverse. A step
    that is masked (or, with lengths, lies beyond the example's own) leaves the carry as it is: its row repeats the one
    before, and its column is 0.

    Moving data, weights, init, mask or lengths compiles nothing; another T, F, H or cell does.

    Args:
        trial: a layer in one direction, without slips.
        example: along the axis that the layer takes for the batch.

    Returns:
        norms in float64: what a float32 program gives at any size, as far as float64 holds it (1e-308 to 1e308). NaN
        where the carry is not finite.

    Raises:
        NoMapError: the trial has no map (`core.runners.gradient_source`).
        IndexError: there is no such example.
    """
    return map_of(example_of(trial, example))


def check_memory(trial: SequenceTrial, example: int, memory: MemoryMap) -> MemoryCheck:
    """The last row of a map against reverse mode and against finite differences.

    Args:
        trial: what the map was made of.
        example: and of which of its examples.
        memory: its map.

    Returns:
        three comparisons: `core.runners.gradient_check` says of what, and at which tolerance.

    Raises:
        as `memory_map`.
    """
    source = example_of(trial, example)
    carries = _mapped(source)[1]
    got = np.stack([row for row in (memory.last_c, memory.last_h) if row is not None])
    held = ~(got > LARGEST)
    tolerance = chain_tolerance(source.length)
    return MemoryCheck(
        grad=difference(got[held], np.stack(reverse_rows(source, carries))[held], tolerance),
        finite=difference(got, np.stack(difference_rows(source, carries)), tolerance),
        step=STEP,
        trajectory=trajectory_difference(source, carries),
        beyond=int(np.sum(~held)),
    )


def map_of(source: Example) -> MemoryMap:
    """The map of an example that is known already."""
    return _mapped(source)[0]


def _mapped(source: Example) -> tuple[MemoryMap, tuple[Array, ...]]:
    """The map, and per part of the carry what each step left, (T, H)."""
    args = _args(source)
    program, compiled = GRADIENT_PROGRAMS.get(("memory map", *source.size), _map_program(source.bare), args)
    carries, norms, exponents = jax.device_get(program(*args))
    with np.errstate(over="ignore", under="ignore"):
        by_part = [np.ldexp(norm.astype(np.float64), exponents) for norm in norms]
    lost = [(norm != 0) & (wide == 0) for norm, wide in zip(norms, by_part, strict=True)]
    over = [np.isfinite(norm) & np.isinf(wide) for norm, wide in zip(norms, by_part, strict=True)]
    made = MemoryMap(
        kind=source.kind.name,
        h=by_part[-1],
        c=by_part[0] if source.kind.pair else None,
        compiled=compiled,
        vanished=int(np.sum(lost)),
        exploded=int(np.sum(over)),
    )
    return made, carries


def _args(source: Example) -> tuple[Any, ...]:
    return source.cell.leaves, source.carry, source.xs, source.valid


def _map_program(bare: CellParts) -> Callable[..., Any]:
    """``program(leaves, carry, xs, valid)``: per part the carries (T, H) and the norms (T, T), and their exponents of 2 (T, T)."""

    def program(leaves: Any, carry: Any, xs: Any, valid: Any) -> Any:
        kind, cell = bare.kind, bare.cell(leaves)
        length, features = xs.shape
        steps, directions = jnp.arange(length), jnp.eye(features, dtype=xs.dtype)

        def step(parts: Any, x: Any) -> Any:
            return parts_of(kind, cell(packed(kind, parts), x)[0])

        def body(state: Any, at: Any) -> Any:
            parts, tangents, exponents = state
            s, x, counts = at
            # Each t, each feature: how the old carry moves, and how x_s does (only where t is s).
            of_x = jnp.where((steps == s)[:, None, None], directions, 0.0)

            def push(moved: Any, moved_x: Any) -> Any:
                return jax.jvp(step, (parts, x), (moved, moved_x))

            new, moved = jax.vmap(jax.vmap(push, out_axes=(None, 0)), out_axes=(None, 0))(tangents, of_x)
            # Inputs that are not read yet move nothing, also where a derivative is not finite (0 · NaN is NaN).
            moved = [jnp.where((steps <= s)[:, None, None], m, 0.0) for m in moved]
            new = tuple(jnp.where(counts, n, o) for n, o in zip(new, parts, strict=True))
            moved = tuple(jnp.where(counts, n, o) for n, o in zip(moved, tangents, strict=True))
            moved, exponents = _rescaled(moved, exponents)
            return (new, moved, exponents), (new, tuple(map(_norm, moved)), exponents)

        still = tuple(jnp.zeros((length, features, *p.shape), xs.dtype) for p in carry)
        init = (carry, still, jnp.zeros(length, jnp.int32))
        return lax.scan(body, init, (steps, xs, valid))[1]

    return program


def _rescaled(tangents: tuple[Any, ...], exponents: Any) -> tuple[tuple[Any, ...], Any]:
    """Per t: tangents that left the middle of float32's range multiplied by a power of two, and that power counted."""
    largest = jnp.max(jnp.stack([jnp.max(jnp.abs(m), axis=(1, 2)) for m in tangents]), axis=0)
    small, large = (largest > 0) & (largest < 2.0**-SPAN), (largest > 2.0**SPAN) & jnp.isfinite(largest)
    factor = jnp.where(small, 2.0**SHIFT, jnp.where(large, 2.0**-SHIFT, 1.0)).astype(largest.dtype)
    power = jnp.where(small, -SHIFT, jnp.where(large, SHIFT, 0))
    return tuple(m * factor[:, None, None] for m in tangents), exponents + power


def _norm(tangents: Any) -> Any:
    """(T, F, H) -> (T,): Frobenius norms, of numbers divided by their largest before they are squared."""
    largest = jnp.max(jnp.abs(tangents), axis=(1, 2))
    scale = jnp.where(largest > 0, largest, 1.0)
    return scale * jnp.sqrt(jnp.sum(jnp.square(tangents / scale[:, None, None]), axis=(1, 2)))
