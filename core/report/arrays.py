"""Arrays as a report names them: by path, shape, dtype and hash, not by value unless that is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.avals import path_name
from core.base.limits import LIMITS
from core.report.model import Input
from core.runners.scan import is_key

type Array = np.ndarray[Any, Any]


def host_of(leaf: Any) -> tuple[Array, str]:
    """A leaf on the host, and the name of its dtype: a key as its raw data, a Python number as the array JAX makes of it."""
    if hasattr(leaf, "dtype") and is_key(leaf.dtype):
        return np.asarray(jax.random.key_data(leaf)), str(leaf.dtype)
    with np.errstate(over="ignore"):
        array = np.asarray(leaf if isinstance(leaf, np.ndarray | np.generic | jax.Array) else jnp.asarray(leaf))
    return array, array.dtype.name


def digest(array: Array) -> str:
    """SHA-256 of the elements as little-endian bytes in C order, in hexadecimal digits."""
    little = array.dtype.newbyteorder("<") if array.dtype.kind in "iufc" else array.dtype
    return hashlib.sha256(np.ascontiguousarray(array.astype(little, copy=False)).tobytes()).hexdigest()


def digest_text(text: str) -> str:
    """SHA-256 of a text in UTF-8, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def input_of(path: str, leaf: Any, axes: str = "", *, values: bool = False) -> Input:
    """One array. One that is merely described (over a limit) has no hash.

    Args:
        path: where it is.
        leaf: an array, a key array, a Python number, or a `jax.ShapeDtypeStruct`.
        axes: letters, kept where there is one for each axis.
        values: write the elements out, up to the limit ``report_values``.
    """
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return Input(path, tuple(leaf.shape), str(leaf.dtype), axes if len(axes) == len(leaf.shape) else "")
    if hasattr(leaf, "aval") and not hasattr(leaf, "__array__"):
        return Input(path, tuple(leaf.shape), str(leaf.dtype))
    array, dtype = host_of(leaf)
    # Of keys the raw data have one axis more than the array of keys itself.
    shape = tuple(leaf.shape) if hasattr(leaf, "shape") else array.shape
    written = None
    if values and array.size <= LIMITS["report_values"].value and array.dtype.kind != "c":
        flat = array.ravel()
        written = tuple(float(one) for one in (flat if flat.dtype.kind in "biuf" else flat.astype(np.float32)))
    return Input(path, shape, dtype, axes if len(axes) == len(shape) else "", digest(array), written)


def inputs_of(root: str, tree: Any, axes: str = "", *, values: bool = False) -> Iterator[Input]:
    """Every array of a pytree, by its path under `root`; leaves that are no arrays (a string, a function) are left out."""
    flat, _ = tree_util.tree_flatten_with_path(tree)
    for path, leaf in flat:
        if isinstance(leaf, jax.core.Tracer) or not (
            hasattr(leaf, "dtype") or isinstance(leaf, bool | int | float | complex)
        ):
            continue
        try:
            yield input_of(path_name(root, path), leaf, axes, values=values)
        except (OverflowError, TypeError):  # a Python number that no array can hold: the contract says so itself
            continue


def wild(tree: Any) -> tuple[int, int]:
    """How many floating-point numbers of a pytree are NaN or infinite, and how many there are."""
    bad = count = 0
    for leaf in tree_util.tree_leaves(tree):
        if isinstance(leaf, jax.core.Tracer) or not hasattr(leaf, "dtype"):
            continue
        array, _ = host_of(leaf)
        if jnp.issubdtype(array.dtype, jnp.inexact):
            wide = array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)
            bad, count = bad + int((~np.isfinite(wide)).sum()), count + array.size
    return bad, count
