"""A scan, run for real with its whole trajectory, at the price of few compilations.

Lengths are padded to powers of two, so that a length slider from 1 to 512 needs ten programs. There is no mask: a scan
is causal, what happens after step n - 1 cannot reach it, so the program emits every carry and the final one is read at
position n - 1. The valid part is bit for bit what `lax.scan` gives (a `where` mask is not: it changes how XLA fuses).
The padding repeats the last element visited, so that no NaN is born there. Forward values only: a gradient through
padding is another program and may not be finite.

Unrolled steps are fused with each other, so any extra output moves the last bits: with `unroll` the values come from a
second program, the plain scan at its exact length, and only the trajectory from the padded one.

Everything is padded and sliced in NumPy: an eager ``ys[:n]`` would compile once for each n.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.avals import Aval, LeafType, abstract, aval_of, path_name
from core.base.results import ScanResult, Series
from core.contract.subject import ScanCall
from core.runners.cache import PROGRAMS, is_library
from core.runners.memo import once

type Array = np.ndarray[Any, Any]


def run_call(call: ScanCall) -> ScanResult:
    """Run the scan with every carry kept.

    The values are those of ``lax.scan(step, init, xs, length, reverse, unroll)``, bit for bit. The program of a
    library step is kept and its length padded; that of any other step is compiled at its exact length and dropped. Within
    one check (`core.runners.memo`) a call runs once.

    Args:
        call: a call that `lax.scan` takes.

    Returns:
        the result on the host. Typed PRNG keys stand there as their raw data: the dtype of their series' `type`
        (``key<fry>``) marks them, and `values` has one more axis than the type.

    Raises:
        whatever `lax.scan` raises on this call, as it raises it.
    """
    return once(("run",), (call,), lambda: _run_call(call))


def keep_run(call: ScanCall, result: ScanResult) -> None:
    """Within one check: that is what the call gave when it was run; it is not run again."""
    once(("run",), (call,), lambda: result)


def _run_call(call: ScanCall) -> ScanResult:
    try:
        plan = _plan(call)
        return _empty(call, plan) if plan.length == 0 else _run(call, plan)
    except Exception:
        # JAX itself says what is wrong, with the learner's own names and not with those of our wrapper.
        lax.scan(call.unshared_body, call.init, call.xs, length=call.length, reverse=call.reverse, unroll=call.unroll)
        if isinstance(call.unroll, int):
            raise
        return run_call(replace(call, unroll=1))  # a NumPy bool, a float that JAX lets pass: it changes no value


def padded_length(length: int) -> int:
    """The next power of two (0 for 0): the length whose program is compiled for this one."""
    return 1 << (length - 1).bit_length() if length else 0


@dataclass(frozen=True, slots=True, eq=False)
class _Plan:
    """The arguments of a scan as the program takes them.

    `xs` are the flattened leaves on the host, keys as raw data; `xs_types` their avals as `lax.scan` sees them.
    """

    length: int
    padded: int
    reverse: bool
    unroll: int
    xs: tuple[Array, ...]
    xs_types: tuple[Any, ...]
    xs_tree: Any


def _plan(call: ScanCall) -> _Plan:
    leaves, tree = tree_util.tree_flatten(call.xs)
    types: tuple[Any, ...] = tuple(jax.typeof(leaf) for leaf in leaves)
    lengths = {t.shape[0] for t in types}
    if call.length is not None:
        lengths.add(int(call.length))
    (length,) = lengths  # several or none: JAX says which
    if length < 0:
        raise ValueError(length)
    hash(call.reverse)
    padded = padded_length(length) if is_library(call.step) else length
    unroll = (max(length, 1) if call.unroll else 1) if isinstance(call.unroll, bool) else operator.index(call.unroll)
    xs = tuple(to_host(leaf, t) for leaf, t in zip(leaves, types, strict=True))
    return _Plan(length, padded, bool(call.reverse), unroll, xs, types, tree)


# --- host and device ------------------------------------------------------------------------------------------------


def is_key(dtype: Any) -> bool:
    """Whether this is the dtype of typed PRNG keys."""
    return bool(jnp.issubdtype(dtype, jax.dtypes.prng_key))


def to_host(leaf: Any, aval: Any = None) -> Array:
    """One array-like leaf as NumPy array of the dtype that JAX gives it; typed keys as their raw data."""
    dtype = (jax.typeof(leaf) if aval is None else aval).dtype
    if is_key(dtype):
        return np.asarray(jax.random.key_data(leaf))
    with np.errstate(over="ignore"):  # 1e300 is infinite in float32: that is what JAX makes of it
        return np.asarray(leaf).astype(dtype, copy=False)


def to_device(values: Array, like: Any) -> Any:
    """The inverse of `to_host` for a leaf `like` this one; compiles nothing (`jnp.asarray` would, for each new shape)."""
    array = jax.device_put(values)
    return jax.random.wrap_key_data(array, impl=jax.random.key_impl(like)) if is_key(jax.typeof(like).dtype) else array


def _pad(values: Array, padded: int, reverse: bool) -> Array:
    """The leaf at the padded length: its last visited element repeated at the end that is visited last."""
    missing = padded - values.shape[0]
    if missing == 0:
        return values
    filler = np.repeat(values[:1] if reverse else values[-1:], missing, axis=0)
    return np.concatenate([filler, values] if reverse else [values, filler])


# --- the program ----------------------------------------------------------------------------------------------------


def _run(call: ScanCall, plan: _Plan) -> ScanResult:
    padded = [_pad(values, plan.padded, plan.reverse) for values in plan.xs]
    (first, carries, ys), compiled = _execute(_trajectory, call, plan, padded, plan.padded, 1)
    if (init := _rounded_once(call.init, first)) is not call.init:
        call = replace(call, init=init)
        (first, carries, ys), _ = _execute(_trajectory, call, plan, padded, plan.padded, 1)
    if plan.unroll == 1:
        return _result(call, plan, first, carries, ys, None, compiled)
    (final, ys), again = _execute(_plain, call, plan, list(plan.xs), plan.length, plan.unroll)
    return _result(call, plan, first, carries, ys, final, compiled or again)


def _execute(
    make: Callable[..., Any], call: ScanCall, plan: _Plan, xs: list[Array], length: int, unroll: int
) -> tuple[Any, bool]:
    """Run the program that `make` describes at this length; the second value says whether it was compiled now."""
    params, constants = _split(call.params)
    function = make(call.step, constants, length, plan.reverse, unroll)
    key = None if constants else (make, call.step, length, plan.reverse, unroll)
    types = [abstract((length, *t.shape[1:]), t.dtype, weak=t.weak_type) for t in plan.xs_types]
    with np.errstate(over="ignore"):  # JAX casts the numbers of init with NumPy; see `to_host`
        shapes = tree_util.tree_unflatten(plan.xs_tree, types)
        program, compiled = PROGRAMS.get(key, function, (call.init, shapes, params))
        leaves = [to_device(values, like) for values, like in zip(xs, tree_util.tree_leaves(call.xs), strict=True)]
        return program(call.init, tree_util.tree_unflatten(plan.xs_tree, leaves), params), compiled


def _split(params: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters that are arguments of the program, and those that can only be constants of it (no arrays)."""
    arguments = {k: v for k, v in params.items() if all(aval_of(leaf) for leaf in tree_util.tree_leaves(v))}
    return arguments, {k: v for k, v in params.items() if k not in arguments}


def _trajectory(
    step: Callable[..., Any], constants: Mapping[str, Any], length: int, reverse: bool, unroll: int
) -> Callable[..., Any]:
    """The function that is compiled: init as the scan promoted it, all carries stacked, all ys stacked."""

    def run(init: Any, xs: Any, params: Mapping[str, Any]) -> Any:
        def body(carry: Any, x: Any) -> Any:
            new, y = pair_of(step(carry, x, **constants, **params))
            return new, (new, y)

        _, (carries, ys) = lax.scan(body, init, xs, length=length, reverse=reverse, unroll=unroll)
        after = tree_util.tree_leaves(carries)
        first = [_promoted(leaf, new.dtype) for leaf, new in zip(tree_util.tree_leaves(init), after, strict=True)]
        return first, carries, ys

    return run


def _plain(
    step: Callable[..., Any], constants: Mapping[str, Any], length: int, reverse: bool, unroll: int
) -> Callable[..., Any]:
    """The scan as it was asked for: the final carry and ys, nothing beside."""

    def run(init: Any, xs: Any, params: Mapping[str, Any]) -> Any:
        body = partial(step, **constants, **params)
        return lax.scan(body, init, xs, length=length, reverse=reverse, unroll=unroll)

    return run


def pair_of(returned: Any) -> tuple[Any, Any]:
    """The new carry and y of what a step returned: `lax.scan` unpacks a tuple or a list of two, nothing else.

    Raises:
        TypeError: it is no such pair.
    """
    if type(returned) not in (tuple, list) or len(returned) != 2:
        raise TypeError(type(returned))
    return returned[0], returned[1]


def _rounded_once(init: Any, first: Any) -> Any:
    """Init with each Python number as the scan itself rounds it; the same object where the program did so too.

    An argument of a program is float32 before it becomes bfloat16; a scan that is called casts a Python number at once
    where ml_dtypes does (0.7). The number it becomes fits float32, so the same program then gives the scan's own values.
    """
    leaves, tree = tree_util.tree_flatten(init)
    made, moved = [], False
    for leaf, value in zip(leaves, first, strict=True):
        if type(leaf) is float and value.dtype.itemsize < np.dtype(np.float32).itemsize:
            with np.errstate(over="ignore"):
                once_only = float(np.asarray(lax.convert_element_type(leaf, value.dtype)).astype(np.float32))
            if once_only != float(np.asarray(value).astype(np.float32)) and once_only == once_only:  # not NaN
                leaf, moved = once_only, True
        made.append(leaf)
    return tree_util.tree_unflatten(tree, made) if moved else init


def _promoted(leaf: Any, dtype: Any) -> Any:
    return leaf if is_key(dtype) else lax.convert_element_type(leaf, dtype)


# --- the result -----------------------------------------------------------------------------------------------------


def _result(call: ScanCall, plan: _Plan, first: Any, carries: Any, ys: Any, final: Any, compiled: bool) -> ScanResult:
    """Everything on the host, without its padding. `final` is None where the last of the carries is it."""
    n, reverse = plan.length, plan.reverse

    def valid(values: Array) -> Array:
        """The last n when visited from the end, else the first n; all of it where nothing was padded."""
        return values[values.shape[0] - n :] if reverse else values[:n]

    def visited(values: Array) -> Array:
        return values[::-1] if reverse else values

    init = tree_util.tree_leaves(call.init)
    flat, carry_tree = tree_util.tree_flatten_with_path(carries)
    carry_series = []
    ends = [None] * len(flat) if final is None else [to_host(leaf) for leaf in tree_util.tree_leaves(final)]
    for (path, stacked), start, given, end in zip(flat, first, init, ends, strict=True):
        values = np.concatenate([to_host(start)[None], visited(valid(to_host(stacked)))])
        if end is not None:
            values[-1] = end
        carry_series.append(Series((name := path_name("carry", path)), _carry_type(name, given, stacked), values))

    y_flat, y_tree = tree_util.tree_flatten_with_path(ys)
    y_host = [valid(to_host(leaf)) for _, leaf in y_flat]
    y_series = [
        Series((name := path_name("y", path)), LeafType(name, _one(leaf)), visited(values))
        for (path, leaf), values in zip(y_flat, y_host, strict=True)
    ]
    return ScanResult(
        final=tree_util.tree_unflatten(carry_tree, [s.values[-1, ...] for s in carry_series]),
        ys=tree_util.tree_unflatten(y_tree, y_host),
        carries=tuple(carry_series),
        xs=_xs_series(call, plan),
        ys_series=tuple(y_series),
        length=n,
        padded=plan.padded,
        compiled=compiled,
        reverse=reverse,
    )


def _xs_series(call: ScanCall, plan: _Plan) -> tuple[Series, ...]:
    paths = [path_name("x", path) for path, _ in tree_util.tree_flatten_with_path(call.xs)[0]]
    return tuple(
        Series(path, LeafType(path, _one(t)), values[::-1] if plan.reverse else values)
        for path, t, values in zip(paths, plan.xs_types, plan.xs, strict=True)
    )


def _one(stacked: Any) -> Aval:
    """The type of one element of a stacked leaf."""
    return Aval(tuple(stacked.shape[1:]), str(stacked.dtype), bool(getattr(stacked, "weak_type", False)))


def _carry_type(path: str, given: Any, stacked: Any) -> LeafType:
    """The type the scan held a carry leaf to: weak where init was and nothing promoted it."""
    was = aval_of(given)
    one = _one(stacked)
    weak = was is not None and was.weak and was.dtype == one.dtype
    return LeafType(path, Aval(one.shape, one.dtype, weak))


def _empty(call: ScanCall, plan: _Plan) -> ScanResult:
    """No steps: nothing is compiled, the step is only traced for the types. The final carry is the promoted init."""
    kwargs: Any = {"length": 0, "reverse": plan.reverse, "unroll": plan.unroll}
    final, ys = jax.eval_shape(lambda: lax.scan(call.body, call.init, call.xs, **kwargs))
    flat, carry_tree = tree_util.tree_flatten_with_path(final)
    carry_series = []
    for (path, struct), given in zip(flat, tree_util.tree_leaves(call.init), strict=True):
        name = path_name("carry", path)
        start = to_host(given)
        values = start if is_key(struct.dtype) else to_host(start, struct)
        stacked = abstract((0, *struct.shape), struct.dtype)
        carry_series.append(Series(name, _carry_type(name, given, stacked), values[None]))
    y_flat, y_tree = tree_util.tree_flatten_with_path(ys)
    y_host = [_nothing(struct) for _, struct in y_flat]
    y_series = [
        Series((name := path_name("y", path)), LeafType(name, _one(struct)), values)
        for (path, struct), values in zip(y_flat, y_host, strict=True)
    ]
    return ScanResult(
        final=tree_util.tree_unflatten(carry_tree, [s.values[-1, ...] for s in carry_series]),
        ys=tree_util.tree_unflatten(y_tree, y_host),
        carries=tuple(carry_series),
        xs=_xs_series(call, plan),
        ys_series=tuple(y_series),
        length=0,
        padded=0,
        compiled=False,
        reverse=plan.reverse,
    )


def _nothing(struct: Any) -> Array:
    """A stacked leaf of no steps, on the host."""
    if is_key(struct.dtype):
        raw = jax.eval_shape(jax.random.key_data, struct)
        return np.zeros(raw.shape, raw.dtype)
    return np.zeros(struct.shape, struct.dtype)


def result_of(call: ScanCall, carries: Any, ys: Any) -> ScanResult:
    """The result of a scan that ran at its exact length elsewhere, with the new carry of each step stacked beside ys.

    Args:
        call: a call that `lax.scan` takes, with a length of its own or of xs.
        carries: pytree of the carry, leaves with a leading axis of T in the order of xs.
        ys: as `lax.scan` returned them.
    """
    plan = _plan(call)
    plan = replace(plan, padded=plan.length)
    if plan.length == 0:
        return _empty(call, plan)
    pairs = zip(tree_util.tree_leaves(call.init), tree_util.tree_leaves(carries), strict=True)
    first = [leaf if is_key(new.dtype) else to_host(leaf).astype(new.dtype, copy=False) for leaf, new in pairs]
    return _result(call, plan, first, carries, ys, None, True)
