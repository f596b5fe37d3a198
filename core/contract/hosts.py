"""Numbers of the host that do not reach the step: cut to 32 bits on the way in, or no longer told apart there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.results import Series
from core.contract.facts import ScanFacts
from core.contract.precision import is_float, ran
from core.contract.trace import StepTrace
from core.contract.wording import show
from core.runners.wide import wide_path

type Array = np.ndarray[Any, Any]

#: Part of the motion within xs that must be lost before its differences count as gone.
LOST_MOTION = 0.25
#: Motion below this part of the values is noise of the host's own float64 arithmetic.
HOST_NOISE = 1e-11
#: By how much, relative to its largest number, some result must then differ from its 64-bit twin.
RESULT_OFF = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class Arrived:
    """The first number of a leaf that the step sees as another one.

    Attributes:
        path, index: the leaf (rooted at carry or xs) and the element.
        host, held: dtype as it was given, and as JAX holds it.
        given, got: the two numbers, as text.
        off: the largest difference in the whole leaf.
    """

    path: str
    index: tuple[int, ...]
    host: str
    held: str
    given: str
    got: str
    off: float


@dataclass(frozen=True, slots=True, eq=False)
class Flat:
    """A leaf of xs whose differences from step to step are mostly lost, with the pair of steps that lost most.

    Attributes:
        path, host, held: the leaf and its two dtypes.
        one, two: the two values of t.
        given, got: the difference between them, as given and as it arrives.
        off: the largest difference between a result and its 64-bit twin.
    """

    path: str
    host: str
    held: str
    one: int
    two: int
    given: float
    got: float
    off: float


def arrived(facts: ScanFacts) -> Iterator[Arrived]:
    """Leaves of init and xs with a number that does not fit: whole numbers cut, floats that become infinite."""
    for types, tree in ((facts.init_types, facts.call.init), (facts.xs_types, facts.call.xs)):
        for leaf, value in zip(types, tree_util.tree_leaves(tree), strict=True):
            if leaf.aval is None or isinstance(value, jax.Array):
                continue
            host = np.asarray(value)
            held = np.dtype(leaf.aval.dtype) if host.dtype.kind in "iuf" else host.dtype
            if host.dtype.itemsize <= held.itemsize or not host.size:
                continue
            found = _cut(leaf.path, host, held)
            if found is not None:
                yield found


def _cut(path: str, host: Array, held: np.dtype[Any]) -> Arrived | None:
    with np.errstate(over="ignore"):
        got = host.astype(held)
    bad = np.isinf(got) & np.isfinite(host) if host.dtype.kind == "f" else got != host
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    off = float(np.abs(host[bad].astype(np.float64) - got[bad].astype(np.float64)).max())
    return Arrived(path, at, str(host.dtype), str(held), show(host[at]), show(got[at]), off)


def flattened(facts: ScanFacts) -> Iterator[Flat]:
    """Float64 leaves of xs whose motion is lost in float32, where a result is off because of it."""
    result = ran(facts)
    if result is None or result.length < 2 or not isinstance(facts.trace, StepTrace):
        return
    suspects = [
        (leaf.path, value)
        for leaf, value in zip(facts.xs_types, tree_util.tree_leaves(facts.call.xs), strict=True)
        if isinstance(value, np.ndarray) and value.dtype == np.float64 and _lost(value)
    ]
    if not suspects:
        return
    try:
        wide = wide_path(facts.call, result, facts.trace.jaxpr)
    except Exception:  # noqa: BLE001  # a step that does not run in 64 bits cannot be compared
        return
    pairs = [*zip(result.carries, wide.carries, strict=True), *zip(result.ys_series, wide.ys, strict=True)]
    offs = [o for series, twin in pairs if (o := _off(series, twin)) is not None]
    if not offs:
        return
    for path, value in suspects:
        given, got = np.diff(value, axis=0), _moves32(value)
        at = np.unravel_index(int(np.argmax(np.abs(given - got))), given.shape)
        one = int(at[0])
        yield Flat(path, "float64", "float32", one, one + 1, float(given[at]), float(got[at]), max(offs))


def _moves32(value: Array) -> Array:
    moves: Array = np.diff(value.astype(np.float32).astype(np.float64), axis=0)
    return moves


def _lost(value: Array) -> bool:
    if not (np.abs(value) <= np.finfo(np.float32).max).all():  # infinite, or infinite in float32: `arrived` says so
        return False
    given = np.abs(np.diff(value, axis=0))
    if not given.size or given.max() <= HOST_NOISE * np.abs(value).max():
        return False
    return bool(np.abs(np.diff(value, axis=0) - _moves32(value)).sum() > LOST_MOTION * given.sum())


def _off(series: Series, twin: Array) -> float | None:
    """The largest difference of a float leaf from its twin, where it is more than `RESULT_OFF` of its numbers.

    That is of its largest number; or, in more than `LOST_MOTION` of the steps, of the number there and of the middle
    one: the first of `t - last` is as large as the time itself, and all that follow are as small as a step.
    """
    if series.type.aval is None or not is_float(series.type.aval.dtype):
        return None
    size = np.abs(twin.astype(np.float64))
    apart = np.abs(series.values.astype(np.float64) - twin.astype(np.float64))
    off = float(apart.max(initial=0.0))
    if off > RESULT_OFF * float(size.max(initial=0.0)):
        return off
    if not size.size or not np.isfinite(size).all():
        return None
    often = (apart > RESULT_OFF * np.maximum(size, np.median(size, axis=0))).mean(axis=0)
    return off if bool((often > LOST_MOTION).any()) else None
