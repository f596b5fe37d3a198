"""The same scan once more in 64 bits, to see what 32 bits (or 16, or 8) lost.

Two views, since one of them alone proves nothing. The *path* starts from the learner's own numbers (a host float64
stays what it is) and runs the whole scan: what it would have been. The *steps* start, at each t, from where the
narrow scan stood: what one step loses, without what was lost before (a chaotic map leaves its path by itself, but each
of its steps is exact). 64 bits are switched on for this thread and only inside this module; programs of library steps
are kept under keys of their own (the cache's keys hold the x64 flag).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax, tree_util

from core.base.avals import aval_of
from core.base.results import ScanResult
from core.contract.subject import ScanCall
from core.runners.cache import PROGRAMS

type Array = np.ndarray[Any, Any]

#: What a leaf becomes, by the kind of its dtype.
_WIDE: Mapping[str, type[np.generic]] = {
    "float": np.float64,
    "bfloat": np.float64,
    "int": np.int64,
    "uint": np.int64,
    "complex": np.complex128,
    "bool": np.bool_,
}


@dataclass(frozen=True, slots=True, eq=False)
class Wide:
    """Values in 64 bits, leaf by leaf in the order of the narrow result's series.

    Attributes:
        carries: per carry leaf in visiting order: T + 1 values of a path (the first is init), or T values of the steps
            (what each returned).
        ys: per y leaf, T values in visiting order.
    """

    carries: tuple[Array, ...]
    ys: tuple[Array, ...]


def widen(values: Any, dtype: str) -> Array:
    """A leaf that JAX holds as `dtype`, in 64 bits and on the host, from the numbers as they were given.

    Raises:
        TypeError: there is no wider dtype (PRNG keys).
        OverflowError: a whole number beyond int64.
    """
    wide = _WIDE.get(dtype.rstrip("0123456789"))
    if wide is None:
        raise TypeError(dtype)
    array = np.asarray(values)
    if wide is np.int64 and array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise OverflowError(dtype)
    return array.astype(wide)


def wide_path(call: ScanCall, result: ScanResult) -> Wide:
    """The whole scan in 64 bits, from the numbers the learner gave.

    Raises:
        whatever the step raises in 64 bits, such as `TypeError` where it insists on a narrow dtype.
    """
    init = _widened(call.init, [_dtype(s) for s in result.carries])
    xs = _widened(call.xs, [_dtype(s) for s in result.xs])
    step, constants = call.step, _constants(call)

    def path(init: Any, xs: Any, params: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            new, y = step(carry, x, **constants, **params)
            return new, (tree_util.tree_leaves(new), tree_util.tree_leaves(y))

        return lax.scan(body, init, xs, length=result.length, reverse=result.reverse)[1]

    leaves = _run(("wide path", result.length, result.reverse), call, path, (init, xs))
    visited = [leaf[::-1] if result.reverse else leaf for leaf in leaves]
    after, ys = visited[: len(result.carries)], visited[len(result.carries) :]
    firsts = tree_util.tree_leaves(init)
    return Wide(
        tuple(np.concatenate([f[None].astype(v.dtype), v]) for f, v in zip(firsts, after, strict=True)), tuple(ys)
    )


def wide_steps(call: ScanCall, result: ScanResult) -> Wide:
    """Every step of the scan, each by itself, in 64 bits from the carry and x that the narrow scan had there.

    Raises:
        whatever the step raises in 64 bits.
    """
    tree = tree_util.tree_structure(call.init)
    carries = tree_util.tree_unflatten(tree, [widen(s.values[:-1], _dtype(s)) for s in result.carries])
    x_tree = tree_util.tree_structure(call.xs)
    xs = tree_util.tree_unflatten(x_tree, [widen(s.values, _dtype(s)) for s in result.xs])
    step, constants = call.step, _constants(call)

    def each(carries: Any, xs: Any, params: Any) -> Any:
        def one(both: Any) -> Any:
            new, y = step(*both, **constants, **params)
            return tree_util.tree_leaves(new), tree_util.tree_leaves(y)

        return lax.map(one, (carries, xs))

    leaves = _run(("wide steps", result.length), call, each, (carries, xs))
    count = len(result.carries)
    return Wide(tuple(leaves[:count]), tuple(leaves[count:]))


def _run(key: tuple[Any, ...], call: ScanCall, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Array]:
    """Compile and run in 64 bits; the leaves of the result on the host."""
    arguments = {k: v for k, v in call.params.items() if k not in _constants(call)}
    with jax.enable_x64(True):
        kept = None if _constants(call) else (*key, call.step)
        program, _ = PROGRAMS.get(kept, function, (*args, arguments))
        return [np.asarray(leaf) for leaf in tree_util.tree_leaves(program(*args, arguments))]


def _constants(call: ScanCall) -> dict[str, Any]:
    """The parameters that are no arrays: they can only be constants of the program."""
    return {k: v for k, v in call.params.items() if not all(aval_of(leaf) for leaf in tree_util.tree_leaves(v))}


def _widened(tree: Any, dtypes: list[str]) -> Any:
    leaves, structure = tree_util.tree_flatten(tree)
    wide = [widen(leaf, dtype) for leaf, dtype in zip(leaves, dtypes, strict=True)]
    return tree_util.tree_unflatten(structure, wide)


def _dtype(series: Any) -> str:
    return str(series.type.aval.dtype)
