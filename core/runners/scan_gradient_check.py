"""Some numbers of a scan's gradient by central differences of its step in float64: nothing here differentiates.

As `core.runners.gradient_check`: for each number two runs, with it a little larger and a little smaller, put back to a
small distance after every step along the trajectory that the scan itself took in float32, with the factor kept. So the
check sees derivatives of any size, also of a chaotic map (the logistic one multiplies them by 2 a step). 64 bits are
switched on for this thread and only in here.

At a corner (``|x|`` at 0) or at the edge of a domain (``√x`` at 0) there is no derivative: the differences to the left
and to the right show it, and such numbers are counted, not compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.limits import LIMITS
from core.base.scan_gradients import ScanGradient, ScanGradientCheck, Target
from core.base.tolerance import Tolerance, difference
from core.contract.subject import ScanCall
from core.runners.gradient_check import STEP, chain_tolerance
from core.runners.gradient_source import GRADIENT_PROGRAMS
from core.runners.scan import run_call, to_device, to_host
from core.runners.scan_gradients import is_floating, split_params

type Array = np.ndarray[Any, Any]

#: Slopes to the left and to the right that differ by more than this (of the larger one, or of 1) make a bend. A smooth
#: step's differ by STEP times its second derivative.
BEND: Final = 1e-3


def check_scan_gradient(call: ScanCall, gradient: ScanGradient) -> ScanGradientCheck:
    """Compare up to ``check_steps`` numbers of the gradient, evenly spread.

    Args:
        call: what was differentiated.
        gradient: what came of it.

    Returns:
        the comparison. A number that is not finite is compared too, unless it stands at a bend.

    Raises:
        whatever the step raises in 64 bits, such as `TypeError` where it insists on a narrow dtype.
    """
    values = [leaf.values for leaf in gradient.leaves if leaf.values is not None]
    total = sum(v.size for v in values)
    most = LIMITS["check_steps"].value
    chosen = np.unique(np.linspace(0, total - 1, min(total, most)).astype(int)) if total else np.zeros(0, int)
    got = np.concatenate([v.astype(np.float64).ravel() for v in values])[chosen] if total else np.zeros(0)
    tolerance = _tolerance(gradient, values)
    if not total or not gradient.length:
        return ScanGradientCheck(difference(got, got, tolerance), STEP, 0, 0, total)
    want, bent = _differences(call, gradient, chosen)
    return ScanGradientCheck(
        difference=difference(got[~bent], want[~bent], tolerance),
        step=STEP,
        compared=int((~bent).sum()),
        bends=int(bent.sum()),
        total=total,
    )


def _tolerance(gradient: ScanGradient, values: list[Array]) -> Tolerance:
    """That of a chain of T steps in the least precise dtype of a leaf."""
    return chain_tolerance(gradient.length, *(v.dtype for v in values))


@dataclass(frozen=True, slots=True, eq=False)
class _Way:
    """The trajectory as the scan took it, leaf by leaf, T entries each in the order of xs, and the lines that begin in it.

    Attributes:
        carries, xs: what each step read; floating point in float64.
        lines: per floating carry leaf (K, …): where the k-th number is one of init.
        moved: per floating x leaf (K, T, …): where it is one of xs.
    """

    carries: list[Any]
    xs: list[Any]
    lines: list[Array]
    moved: list[Array]


def _differences(call: ScanCall, gradient: ScanGradient, chosen: Array) -> tuple[Array, Array]:
    """The derivatives of the chosen numbers, and where there is none."""
    way = _way(call, chosen)
    params, constants = split_params(call)
    with jax.enable_x64(True):
        function = _along(call, gradient.target, constants)
        key = None if constants else ("scan differences", call.step, bool(call.reverse), gradient.target.value)
        args = (way.carries, way.xs, way.lines, way.moved, params)
        program, _ = GRADIENT_PROGRAMS.get(key, function, args)
        mantissa, power, bent = jax.device_get(program(*args))
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(mantissa, power), np.asarray(bent)


def _way(call: ScanCall, chosen: Array) -> _Way:
    result = run_call(call)
    init, xs = tree_util.tree_leaves(call.init), tree_util.tree_leaves(call.xs)

    def wide(values: Array, like: Any) -> Any:
        if jnp.issubdtype(values.dtype, jnp.floating):
            return values.astype(np.float64)
        return to_device(values, like)

    def natural(values: Array) -> Array:
        return np.ascontiguousarray(values[::-1]) if result.reverse else values

    carries = [wide(natural(s.values[:-1]), like) for s, like in zip(result.carries, init, strict=True)]
    steps = [wide(to_host(leaf), leaf) for leaf in xs]
    count = len(chosen)
    begun, at, place = [], 0, np.arange(count)
    for leaves in (init, xs):
        lines = []
        for leaf in leaves:
            if is_floating(leaf):
                line = np.zeros((count, int(np.size(leaf))))
                mine = (chosen >= at) & (chosen < at + line.shape[1])
                line[place[mine], chosen[mine] - at] = 1.0
                lines.append(line.reshape(count, *np.shape(leaf)))
                at += line.shape[1]
        begun.append(lines)
    # An int init that the scan makes float32 is a floating-point carry, which no number of the gradient begins in.
    kinds = [is_floating(leaf) for leaf in init]
    given = iter(begun[0])
    lines = [
        next(given) if kind else np.zeros((count, *s.values.shape[1:]))
        for s, kind in zip(result.carries, kinds, strict=True)
        if kind or jnp.issubdtype(s.values.dtype, jnp.floating)
    ]
    return _Way(carries, steps, lines, begun[1])


def _along(call: ScanCall, target: Target, constants: dict[str, Any]) -> Callable[..., Any]:
    """``program(carries, xs, lines, moved, params)``: per number mantissa and power of 2 of its derivative, and bends."""
    step, reverse = call.step, bool(call.reverse)
    carry_tree, x_tree = tree_util.tree_structure(call.init), tree_util.tree_structure(call.xs)

    def program(carries: Any, xs: Any, lines: Any, moved: Any, params: Any) -> Any:
        def values(carry: Any, x: Any) -> tuple[list[Any], list[Any]]:
            new, y = step(
                tree_util.tree_unflatten(carry_tree, carry), tree_util.tree_unflatten(x_tree, x), **constants, **params
            )
            return _floats(tree_util.tree_leaves(new)), _floats(tree_util.tree_leaves(y))

        def one(state: Any, at: Any) -> Any:
            """One number, one step: the line after it, its power, what it added to ys, whether it met a bend."""
            line, power, added, bent, begun = state
            carry, x, of_x = at
            # The three runs as one array, so that they round alike: where nothing is moved they do not differ.
            runs: Any = jax.vmap(lambda side: values(_shifted(carry, line, side), _shifted(x, of_x, side)))
            new, y = runs(jnp.array([0.0, STEP, -STEP]))
            halves = [((v[1] - v[0]) / STEP, (v[0] - v[2]) / STEP) for v in (*new, *y)]
            begun = begun | jnp.any(jnp.stack([jnp.any(part != 0) for part in (*of_x, jnp.zeros(()))]))
            halves = [(jnp.where(begun, right, 0.0), jnp.where(begun, left, 0.0)) for right, left in halves]
            bent = bent | jnp.any(jnp.stack([_bends(right, left) for right, left in halves]))
            slopes = [(right + left) / 2 for right, left in halves]
            new, ys = slopes[: len(new)], slopes[len(new) :]
            if target is Target.YS:
                added = added + jnp.exp2(power.astype(jnp.float64)) * sum(jnp.sum(y) for y in ys)
            largest = jnp.max(jnp.stack([jnp.max(jnp.abs(n), initial=0.0) for n in new])) if new else jnp.float64(0)
            taken = jnp.where(jnp.isfinite(largest), jnp.frexp(largest)[1], 0)
            new = [jnp.ldexp(n, -taken) for n in new]
            return (new, power + taken, added, bent, begun), None

        def each(line: Any, of_x: Any) -> Any:
            begun = jnp.any(jnp.stack([jnp.any(part != 0) for part in (*line, jnp.zeros(()))]))
            state = (line, jnp.int32(0), jnp.float64(0), jnp.bool_(False), begun)
            line, power, added, bent, _ = lax.scan(one, state, (carries, xs, of_x), reverse=reverse)[0]
            if target is Target.YS:
                return added, jnp.int32(0), bent
            return sum((jnp.sum(part) for part in line), jnp.float64(0)), power, bent

        return jax.vmap(each)(lines, moved)

    return program


def _floats(leaves: list[Any]) -> list[Any]:
    return [jnp.asarray(leaf, jnp.float64) for leaf in leaves if is_floating(leaf)]


def _shifted(leaves: list[Any], line: list[Any], side: float) -> list[Any]:
    """The floating-point leaves moved along the line, all others as they are."""
    ways = iter(line)
    return [leaf + side * next(ways) if is_floating(leaf) else leaf for leaf in leaves]


def _bends(right: Any, left: Any) -> Any:
    """Whether the slopes on the two sides differ, anywhere in a leaf, or are no numbers."""
    scale = jnp.maximum(1.0, jnp.maximum(jnp.abs(right), jnp.abs(left)))
    return ~jnp.all(jnp.abs(right - left) <= BEND * scale)
