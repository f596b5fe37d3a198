"""The same step in a plain Python loop, without jit: the check that stands beside every result.

It starts from ``jnp.asarray(init)`` (a Python float would run in double precision), promoted as the scan promoted it,
and calls the step with one x after the other. It shares nothing with the scan but the step and the inputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.jaxprs import made_floats
from core.base.limits import LIMITS
from core.base.outcome import RawError
from core.base.results import ScanResult, Series
from core.base.text import fill
from core.base.tolerance import Difference, Tolerance, difference, tolerance_in
from core.contract.subject import ScanCall
from core.runners.memo import once
from core.runners.room import keep_room
from core.runners.scan import is_key, pair_of, to_device, to_host

type Array = np.ndarray[Any, Any]

TOLERANCE_OF = "{tolerance}, since the step computes in {computed}"

#: Steps of the loop unless all are asked for.
CHECK_STEPS: Final = LIMITS["check_steps"].value


@dataclass(frozen=True, slots=True)
class LeafCheck:
    """One leaf of the scan beside the same leaf of the loop.

    Attributes:
        path: rooted at ``carry`` or ``y``.
        shape, dtype: of the scan's leaf; for a y stacked, ``(T, …)``.
        loop_shape, loop_dtype: of the loop's, stacked over T the same way.
        largest: the largest absolute difference over the steps that were checked.
        tolerance: the one that was used.
        computed_in: the less precise dtype which the step computes in and which decided the tolerance; "" when the
            leaf's own dtype did.
        first: where it is first beyond the tolerance, in visiting order: t of a y, position of a carry (0 is init).
            None when it never is.
    """

    path: str
    shape: tuple[int, ...]
    loop_shape: tuple[int, ...]
    dtype: str
    loop_dtype: str
    largest: float
    tolerance: Tolerance
    first: int | None
    computed_in: str = ""

    @property
    def tolerance_text(self) -> str:
        """The tolerance as it stands beside a result, with the reason where it is not that of the leaf's own dtype."""
        template = TOLERANCE_OF if self.computed_in else "{tolerance}"
        return fill(template, tolerance=self.tolerance.text, computed=self.computed_in)

    @property
    def shape_ok(self) -> bool:
        """Whether the shapes agree."""
        return self.shape == self.loop_shape

    @property
    def ok(self) -> bool:
        """Whether shapes agree and every checked value is within the tolerance."""
        return self.shape_ok and self.first is None


@dataclass(frozen=True, slots=True)
class LoopCheck:
    """What the loop says of a scan.

    Attributes:
        length: T.
        steps: how many were run in the loop, from the one that is visited first.
        ys: one check a leaf of y over these steps; empty when there are none to compare.
        carries: one check a carry leaf over positions 0 (init) to `steps`.
        end: the carry after `steps` alone: the final carry when all were run.
        error: what the step raised in the loop although it ran in the scan.
        first: (t, path) of the first value beyond its tolerance in visiting order; a carry is named by the t that made
            it, init itself by −1.
    """

    length: int
    steps: int
    ys: tuple[LeafCheck, ...] = ()
    carries: tuple[LeafCheck, ...] = ()
    end: tuple[LeafCheck, ...] = ()
    error: RawError | None = None
    first: tuple[int, str] | None = None

    @property
    def complete(self) -> bool:
        """Whether every step was run, so that `end` is the final carry."""
        return self.steps == self.length

    @property
    def lengths_ok(self) -> bool:
        """Whether every ys leaf has the leading length T."""
        return all(leaf.shape[:1] == (self.length,) for leaf in self.ys)

    @property
    def ok(self) -> bool:
        """Whether everything that was compared agrees."""
        return self.error is None and self.lengths_ok and all(leaf.ok for leaf in (*self.ys, *self.carries, *self.end))

    @property
    def largest(self) -> float:
        """The largest absolute difference of any leaf."""
        return max((leaf.largest for leaf in (*self.ys, *self.carries)), default=0.0)


def loop_check(call: ScanCall, result: ScanResult, steps: int | None = CHECK_STEPS) -> LoopCheck:
    """Run the step in a Python loop and compare; within one check (`core.runners.memo`) once.

    Args:
        call: the call that was run.
        result: what `run_call` gave for it.
        steps: how many steps at most; None for all.

    Returns:
        the comparison. An exception of the step is its `error`, never raised.
    """
    count = result.length if steps is None else min(steps, result.length)
    return once(("loop", count), (call, result), lambda: _loop_check(call, result, count))


def _loop_check(call: ScanCall, result: ScanResult, count: int) -> LoopCheck:
    keep_room()
    try:
        carries, ys = _loop(call, result, count)
        return _compare(result, count, carries, ys, computed_floats(call, result))
    except Exception as error:  # noqa: BLE001  # the learner's step, run outside a trace: anything may come
        return LoopCheck(result.length, count, error=RawError(type(error).__name__, str(error)))


def _loop(call: ScanCall, result: ScanResult, count: int) -> tuple[list[list[Array]], list[list[Array]]]:
    """Leaves of the carry at each position, and of y at each step, on the host."""
    given, xs_tree = tree_util.tree_flatten(call.xs)
    given_init, init_tree = tree_util.tree_flatten(call.init)
    start = [_start(leaf, series) for leaf, series in zip(given_init, result.carries, strict=True)]
    carry = tree_util.tree_unflatten(init_tree, start)
    carries, ys = [_host(carry)], []
    for position in range(count):
        t = result.order[position]
        x = [_slice(leaf, series, t, position) for leaf, series in zip(given, result.xs, strict=True)]
        carry, y = pair_of(call.body(carry, tree_util.tree_unflatten(xs_tree, x)))
        carries.append(_host(carry))
        ys.append(_host(y))
    return carries, ys


def computed_floats(call: ScanCall, result: ScanResult) -> frozenset[str]:
    """Names of the floating-point dtypes that the step computes in; none where it runs no step or does not trace."""
    if not result.length:
        return frozenset()
    given, xs_tree = tree_util.tree_flatten(call.xs)
    given_init, init_tree = tree_util.tree_flatten(call.init)
    start = [_start(leaf, series) for leaf, series in zip(given_init, result.carries, strict=True)]
    x = [_slice(leaf, series, result.order[0], 0) for leaf, series in zip(given, result.xs, strict=True)]
    try:
        body = call.body
        args = tree_util.tree_unflatten(init_tree, start), tree_util.tree_unflatten(xs_tree, x)
        return made_floats(jax.make_jaxpr(lambda carry, x: tree_util.tree_leaves(body(carry, x)))(*args))
    except Exception:  # noqa: BLE001  # the learner's step: anything may come, and then its leaves' own dtypes decide
        return frozenset()


def _start(leaf: Any, series: Series) -> Any:
    """The init leaf as an array, weak if it was, or of the dtype that the scan promoted it to."""
    # `jnp.asarray` of a NumPy array compiles once for each shape.
    with np.errstate(over="ignore"):  # 1e300 is infinite in float32, as in the scan
        array = jax.device_put(leaf) if isinstance(leaf, (np.ndarray, np.generic)) else jnp.asarray(leaf)
    promoted = not is_key(array.dtype) and series.type.aval is not None and series.type.aval.dtype != str(array.dtype)
    # A Python number is rounded once, as the scan rounds it, not to float32 first.
    return lax.convert_element_type(leaf if type(leaf) is float else array, series.values.dtype) if promoted else array


def _slice(leaf: Any, series: Series, t: int, position: int) -> Any:
    """One x. Cut in NumPy: cutting a device array compiles once for each length."""
    if getattr(leaf, "weak_type", False):
        return leaf[t]  # only JAX can make a weak array
    return to_device(series.values[position], leaf)


def _host(tree: Any) -> list[Array]:
    return [to_host(leaf) for leaf in tree_util.tree_leaves(tree)]


# --- comparing ------------------------------------------------------------------------------------------------------


def _compare(
    result: ScanResult, count: int, carries: list[list[Array]], ys: list[list[Array]], computed: frozenset[str]
) -> LoopCheck:
    order, length = result.order, result.length
    carry_pairs = [
        (series, np.stack([leaves[i] for leaves in carries]), series.values[: count + 1])
        for i, series in enumerate(result.carries)
    ]
    y_pairs = [
        (series, np.stack([leaves[i] for leaves in ys]), series.values[:count])
        for i, series in enumerate(result.ys_series)
        if count
    ]
    found: list[tuple[int, int, str]] = []
    carry_checks, end_checks, y_checks = [], [], []
    for series, loop, scan in carry_pairs:
        used, least = _tolerance(scan, loop, computed)
        apart = difference(scan, loop, used)
        carry_checks.append(_leaf(series, scan.shape[1:], loop.shape[1:], loop, apart, _at(apart), least))
        at_end = difference(scan[-1], loop[-1], used)
        at = None if at_end.within else count
        end_checks.append(_leaf(series, scan.shape[1:], loop.shape[1:], loop, at_end, at, least))
        if apart.first is not None:
            found.append((apart.first[0] - 1, 1, series.path))
    for series, loop, scan in y_pairs:
        used, least = _tolerance(scan, loop, computed)
        apart = difference(scan, loop, used)
        first = _at(apart)
        shape, loop_shape = series.values.shape, (length, *loop.shape[1:])
        y_checks.append(_leaf(series, shape, loop_shape, loop, apart, None if first is None else order[first], least))
        if apart.first is not None:
            found.append((apart.first[0], 0, series.path))
    first_found = min(found, default=None)
    return LoopCheck(
        length=length,
        steps=count,
        ys=tuple(y_checks),
        carries=tuple(carry_checks),
        end=tuple(end_checks),
        first=None if first_found is None else (_t(order, first_found[0]), first_found[2]),
    )


def _tolerance(scan: Array, loop: Array, computed: frozenset[str]) -> tuple[Tolerance, str]:
    """The tolerance of a leaf, and the less precise dtype that decided it ("" where the leaf's own did)."""
    pairs = [tolerance_in(dtype, computed) for dtype in (scan.dtype, loop.dtype)]
    return max(pairs, key=lambda pair: (pair[0].rtol, pair[0].atol))


def _at(apart: Difference) -> int | None:
    """Position of the first difference; where the shapes differ, the first one of all."""
    if apart.within:
        return None
    return apart.first[0] if apart.first is not None else 0


def _t(order: tuple[int, ...], position: int) -> int:
    return -1 if position < 0 else order[position]


def _leaf(
    series: Series,
    shape: tuple[int, ...],
    loop_shape: tuple[int, ...],
    loop: Array,
    apart: Difference,
    first: int | None,
    least: str,
) -> LeafCheck:
    return LeafCheck(
        path=series.path,
        shape=tuple(shape),
        loop_shape=tuple(loop_shape),
        dtype=series.values.dtype.name,
        loop_dtype=loop.dtype.name,
        largest=apart.largest,
        tolerance=apart.tolerance,
        first=first,
        computed_in=least,
    )
