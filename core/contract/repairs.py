"""Repairs that several rules propose: each mends a subject and says by `kind`, `path`, `value` what it set.

A page translates kind, path and value into its own inputs; without a page `apply` mends the call itself. Nothing here
is shown as it is: the engine applies each repair and runs the whole check again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.avals import aval_of, path_name
from core.base.text import fill
from core.contract import trees
from core.contract.mend import Cast, Mend, MendedStep, OnCarry, Reshape
from core.contract.rule import Repair
from core.contract.subject import ScanCall

TITLE_STEP = "Use the step that keeps the contract"
TITLE_INIT_DTYPE = "Make init's {path} {dtype}"
TITLE_INIT_SHAPE = "Give init's {path} the shape {shape}"
TITLE_INIT_ZEROS = "Start {path} in init from zeros: {types}"
TITLE_INIT_KIND = "Make {path} in init {kind}"
TITLE_STEP_CAST = "Cast the new {path} back to {dtype}"
TITLE_STEP_SHAPE = "Reshape the new {path} to {shape}"
TITLE_XS_CUT = "Cut xs to {length} steps"
TITLE_XS_REPEAT = "Repeat {path} for each of the {length} steps"
TITLE_XS_AXIS = "Give {path} a leading axis of length 1"
TITLE_XS_ARRAY = "Make {path} an array"
TITLE_XS_TO_LENGTH = "Scan over nothing for {length} steps: length={length}"
TITLE_LENGTH = "Set length to {length}"
TITLE_LENGTH_FROM_XS = "Take the length from xs ({length})"
TITLE_UNROLL = "Set unroll to {unroll}"


def map_leaf(tree: Any, root: str, path: str, change: Callable[[Any], Any]) -> Any:
    """The pytree with the one leaf at `path` (rooted at `root`) replaced by ``change(leaf)``."""
    return tree_util.tree_map_with_path(lambda p, leaf: change(leaf) if path_name(root, p) == path else leaf, tree)


# --- the step -------------------------------------------------------------------------------------------------------


def right_step(call: ScanCall) -> tuple[Repair, ...]:
    """The step's right version, where one is known; nothing otherwise."""
    if call.right_step is None:
        return ()
    return (Repair("step", TITLE_STEP, lambda c: replace(c, step=c.right_step, right_step=None)),)


def mend_step(kind: str, title: str, mend: Mend, path: str = "", value: Any = None) -> Repair:
    """Mend what the step returns."""

    def apply(call: ScanCall) -> ScanCall:
        return replace(call, step=MendedStep(call.step, mend))

    return Repair(kind, title, apply, path, value)


def step_cast(path: str, dtype: str) -> Repair:
    """Cast the new carry's leaf at `path` to init's dtype."""
    title = fill(TITLE_STEP_CAST, path=path, dtype=dtype)
    return mend_step("step_cast", title, OnCarry(path, Cast(dtype)), path, dtype)


def step_shape(path: str, shape: tuple[int, ...]) -> Repair:
    """Reshape the new carry's leaf at `path` to init's shape: for axes of length 1 gained or lost."""
    title = fill(TITLE_STEP_SHAPE, path=path, shape=shape)
    return mend_step("step_shape", title, OnCarry(path, Reshape(shape)), path, shape)


# --- init -----------------------------------------------------------------------------------------------------------


def init_dtype(path: str, dtype: str) -> Repair:
    """Give the init leaf at `path` this dtype, strongly."""

    def apply(call: ScanCall) -> ScanCall:
        cast = lambda leaf: jax.lax.convert_element_type(jnp.asarray(leaf), jnp.dtype(dtype))  # noqa: E731
        return replace(call, init=map_leaf(call.init, "carry", path, cast))

    return Repair("init_dtype", fill(TITLE_INIT_DTYPE, path=path, dtype=dtype), apply, path, dtype)


def init_shape(path: str, shape: tuple[int, ...]) -> Repair:
    """Give the init leaf at `path` this shape: broadcast to it, or, all elements being equal, filled with that one."""

    def apply(call: ScanCall) -> ScanCall | None:
        if _reshaped(trees.find(call.init, "carry", path), shape) is None:
            return None
        return replace(call, init=map_leaf(call.init, "carry", path, lambda leaf: _reshaped(leaf, shape)))

    return Repair("init_shape", fill(TITLE_INIT_SHAPE, path=path, shape=shape), apply, path, shape)


def _reshaped(leaf: Any, shape: tuple[int, ...]) -> Any:
    """The leaf in this shape without losing a value (its dtype and weak type kept); None when that cannot be."""
    aval = aval_of(leaf)
    if aval is None:
        return None
    array = jnp.asarray(leaf)
    if aval.size == int(np.prod(shape)) and [n for n in aval.shape if n != 1] == [n for n in shape if n != 1]:
        return jnp.reshape(array, shape)
    try:
        return jnp.broadcast_to(array, shape)
    except ValueError:
        constant = aval.size > 0 and bool(jnp.all(array == jnp.ravel(array)[0]))
        return jnp.broadcast_to(jnp.ravel(array)[0], shape) if constant else None


def init_value(path: str, title: str, change: Callable[[Any], Any], value: Any = None) -> Repair:
    """Replace the node of init at `path` (a leaf or a container) by ``change(node)``; TypeError means it cannot be."""

    def apply(call: ScanCall) -> ScanCall | None:
        try:
            return replace(call, init=trees.at(call.init, "carry", path, change))
        except TypeError:
            return None

    return Repair("init_value", title, apply, path, value)


# --- xs, length, unroll ---------------------------------------------------------------------------------------------


def xs_cut(length: int) -> Repair:
    """Cut every leaf of xs to `length`; a `length` argument that says otherwise is dropped."""

    def apply(call: ScanCall) -> ScanCall | None:
        if not all(getattr(leaf, "shape", ()) for leaf in tree_util.tree_leaves(call.xs)):
            return None  # a leaf without a leading axis is another fault
        xs = tree_util.tree_map(lambda leaf: leaf[:length], call.xs)
        keep = type(call.length) is int and call.length == length
        return replace(call, xs=xs, length=call.length if keep else None)

    return Repair("xs_leading", fill(TITLE_XS_CUT, length=length), apply, "", length)


def xs_leading(path: str, length: int) -> Repair:
    """Give the xs leaf at `path` a leading axis: the same value at each of `length` steps."""

    def apply(call: ScanCall) -> ScanCall:
        repeat = lambda leaf: jnp.broadcast_to(jnp.asarray(leaf), (length, *jnp.shape(leaf)))  # noqa: E731
        return replace(call, xs=map_leaf(call.xs, "xs", path, repeat))

    title = fill(TITLE_XS_AXIS if length == 1 else TITLE_XS_REPEAT, path=path, length=length)
    return Repair("xs_leading", title, apply, path, length)


def xs_array(path: str) -> Repair:
    """Make one array of the xs leaf at `path`, which is none but holds numbers (a `range`)."""

    def apply(call: ScanCall) -> ScanCall:
        return replace(call, xs=map_leaf(call.xs, "xs", path, lambda leaf: jnp.asarray(np.asarray(leaf))))

    return Repair("xs_array", fill(TITLE_XS_ARRAY, path=path), apply, path)


def xs_to_length(length: int) -> Repair:
    """The number given as xs was meant as length."""
    title = fill(TITLE_XS_TO_LENGTH, length=length)
    return Repair("length", title, lambda call: replace(call, xs=None, length=length), "", length)


def set_length(length: int) -> Repair:
    """Set the `length` argument."""
    title = fill(TITLE_LENGTH, length=length)
    return Repair("length", title, lambda call: replace(call, length=length), "", length)


def length_from_xs(length: int) -> Repair:
    """Drop the `length` argument: xs says how long it is."""
    title = fill(TITLE_LENGTH_FROM_XS, length=length)
    return Repair("length", title, lambda call: replace(call, length=None), "", None)


def set_unroll(unroll: int) -> Repair:
    """Set the `unroll` argument."""
    title = fill(TITLE_UNROLL, unroll=unroll)
    return Repair("unroll", title, lambda call: replace(call, unroll=unroll), "", unroll)
