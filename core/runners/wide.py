"""The same scan once more in 64 bits, to see what 32 bits (or 16, or 8) lost.

Two views, since one of them alone proves nothing. The *path* starts from the learner's own numbers (a host float64
stays what it is) and runs the whole scan: what it would have been. The *steps* start, at each t, from where the
narrow scan stood: what one step loses, without what was lost before (a chaotic map leaves its path by itself, but each
of its steps is exact). 64 bits are switched on for this thread and only inside this module; programs of library steps
are kept under keys of their own (the cache's keys hold the x64 flag).

A cast that changes nothing in the narrow step (`(c * x).astype(jnp.int32)` of int32 numbers) would cut the wide numbers
back and hide what was lost: where the narrow step cuts no whole number to that dtype, the wide one does not either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax, tree_util

from core.base.avals import aval_of
from core.base.jaxprs import bind, equations, inner, parts_of
from core.base.results import ScanResult
from core.contract.subject import ScanCall
from core.runners.cache import PROGRAMS
from core.runners.memo import once

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


def wide_path(call: ScanCall, result: ScanResult, program: Any = None) -> Wide:
    """The whole scan in 64 bits, from the numbers the learner gave. Within one check it runs once.

    Args:
        call: a call that ran.
        result: what it gave.
        program: the jaxpr of the narrow step; without it every cast in the step is kept.

    Raises:
        whatever the step raises in 64 bits, such as `TypeError` where it insists on a narrow dtype.
    """
    idle = _idle_casts(program)
    return once(("wide path", idle), (call, result), lambda: _wide_path(call, result, idle))


def _wide_path(call: ScanCall, result: ScanResult, idle: tuple[str, ...]) -> Wide:
    init = _widened(call.init, [_dtype(s) for s in result.carries])
    xs = _widened(call.xs, [_dtype(s) for s in result.xs])
    step, constants = _uncut(call.step, idle), _constants(call)

    def path(init: Any, xs: Any, params: Any) -> Any:
        def body(carry: Any, x: Any) -> Any:
            new, y = step(carry, x, **constants, **params)
            return new, (tree_util.tree_leaves(new), tree_util.tree_leaves(y))

        return lax.scan(body, init, xs, length=result.length, reverse=result.reverse)[1]

    leaves = _run(("wide path", result.length, result.reverse, *idle), call, path, (init, xs))
    visited = [leaf[::-1] if result.reverse else leaf for leaf in leaves]
    after, ys = visited[: len(result.carries)], visited[len(result.carries) :]
    firsts = tree_util.tree_leaves(init)
    return Wide(
        tuple(np.concatenate([f[None].astype(v.dtype), v]) for f, v in zip(firsts, after, strict=True)), tuple(ys)
    )


def wide_steps(call: ScanCall, result: ScanResult, program: Any = None) -> Wide:
    """Every step of the scan, each by itself, in 64 bits from the carry and x that the narrow scan had there.

    Within one check it runs once.

    Args:
        call: a call that ran.
        result: what it gave.
        program: the jaxpr of the narrow step; without it every cast in the step is kept.

    Raises:
        whatever the step raises in 64 bits.
    """
    idle = _idle_casts(program)
    return once(("wide steps", idle), (call, result), lambda: _wide_steps(call, result, idle))


def _wide_steps(call: ScanCall, result: ScanResult, idle: tuple[str, ...]) -> Wide:
    tree = tree_util.tree_structure(call.init)
    carries = tree_util.tree_unflatten(tree, [widen(s.values[:-1], _dtype(s)) for s in result.carries])
    x_tree = tree_util.tree_structure(call.xs)
    xs = tree_util.tree_unflatten(x_tree, [widen(s.values, _dtype(s)) for s in result.xs])
    step, constants = _uncut(call.step, idle), _constants(call)

    def each(carries: Any, xs: Any, params: Any) -> Any:
        def one(both: Any) -> Any:
            new, y = step(*both, **constants, **params)
            return tree_util.tree_leaves(new), tree_util.tree_leaves(y)

        return lax.map(one, (carries, xs))

    leaves = _run(("wide steps", result.length, *idle), call, each, (carries, xs))
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


# --- casts that change nothing --------------------------------------------------------------------------------------

#: Operations on whole numbers of one dtype: where one operand stayed wide, the others go along.
_ALIKE = frozenset(
    "add sub mul div rem max min neg abs sign pow integer_pow eq ne lt le gt ge and or xor not select_n clamp concatenate "
    "broadcast_in_dim reshape squeeze transpose rev reduce_sum reduce_prod reduce_max reduce_min cumsum cumprod cummax "
    "cummin copy stop_gradient expand_dims square slice".split()
)


def _idle_casts(program: Any) -> tuple[str, ...]:
    """The integer dtypes to which the narrow step cuts nothing: every cast to one of them leaves the numbers as they are."""
    if program is None:
        return ()
    cut = set()
    for eqn in equations(program):
        if eqn.primitive.name == "convert_element_type":
            before, after = eqn.invars[0].aval.dtype, eqn.params["new_dtype"]
            if np.issubdtype(before, np.integer) and not np.can_cast(before, after):
                cut.add(str(after))
    return tuple(d for d in ("int8", "int16", "int32", "uint8", "uint16", "uint32") if d not in cut)


def _uncut(step: Callable[..., Any], idle: tuple[str, ...]) -> Callable[..., Any]:
    """The step without its casts of 64-bit whole numbers to one of these dtypes; the step itself where it has none."""

    def uncut(carry: Any, x: Any, **params: Any) -> Any:
        args, tree = tree_util.tree_flatten((carry, x, params))

        def flat(*leaves: Any) -> Any:
            carry, x, params = tree_util.tree_unflatten(tree, leaves)
            return step(carry, x, **params)

        program, shape = jax.make_jaxpr(flat, return_shape=True)(*args)
        out = _replay(program, args, frozenset(idle))
        return tree_util.tree_unflatten(tree_util.tree_structure(shape), out)

    return uncut if idle else step


def _replay(program: Any, args: list[Any], idle: frozenset[str]) -> list[Any]:
    """Carry out a program, its idle casts left out. It may be traced."""
    jaxpr, consts = parts_of(program)
    env: dict[Any, Any] = dict(zip((*jaxpr.constvars, *jaxpr.invars), (*consts, *args), strict=True))

    def read(atom: Any) -> Any:
        return atom.val if hasattr(atom, "val") else env[atom]

    for eqn in jaxpr.eqns:
        values, opened = [read(v) for v in eqn.invars], inner(eqn)
        stayed = [_dtype_of(v) != a.aval.dtype for v, a in zip(values, eqn.invars, strict=True)]
        if _idle(eqn, values, idle):
            made = values
        elif opened is not None and (any(stayed) or any(_is_cut(e, idle) for e in equations(opened))):
            made = _replay(opened, values, idle)
        elif any(stayed) and eqn.primitive.name in _ALIKE:
            made = bind(eqn, [_wider(v) if _is_int(_dtype_of(v)) else v for v in values])
        else:
            made = bind(
                eqn, [_as(v, a.aval.dtype) if s else v for v, a, s in zip(values, eqn.invars, stayed, strict=True)]
            )
        env.update(zip(eqn.outvars, made, strict=True))
    return [read(v) for v in jaxpr.outvars]


def _is_cut(eqn: Any, idle: frozenset[str]) -> bool:
    return eqn.primitive.name == "convert_element_type" and str(eqn.params["new_dtype"]) in idle


def _idle(eqn: Any, values: list[Any], idle: frozenset[str]) -> bool:
    """Whether this is a cast to leave out: of wide whole numbers to an idle dtype, or of ones that stayed wide to int64."""
    if eqn.primitive.name != "convert_element_type" or _dtype_of(values[0]) != np.int64:
        return False
    return _is_cut(eqn, idle) or eqn.params["new_dtype"] == np.int64


def _dtype_of(value: Any) -> Any:
    return jax.typeof(value).dtype


def _is_int(dtype: Any) -> bool:
    return bool(np.issubdtype(dtype, np.integer))


def _wider(value: Any) -> Any:
    return lax.convert_element_type(value, np.int64)


def _as(value: Any, dtype: Any) -> Any:
    return lax.convert_element_type(value, dtype)
