"""Abstract values (shape, dtype, weak type) of the leaves of a pytree, and the way they are written."""

from __future__ import annotations

import types
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util


@dataclass(frozen=True, slots=True)
class Aval:
    """Shape, dtype name and weak type of one array; `dtype` is JAX's name (``float32``, ``key<fry>``)."""

    shape: tuple[int, ...]
    dtype: str
    weak: bool = False

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def struct(self) -> jax.ShapeDtypeStruct:
        """The same as JAX's own abstract value, for tracing. Not for PRNG keys."""
        return abstract(self.shape, jax.numpy.dtype(self.dtype), weak=self.weak)


def abstract(shape: tuple[int, ...], dtype: Any, *, weak: bool = False) -> jax.ShapeDtypeStruct:
    """JAX's own abstract value; `dtype` may be an extended one (PRNG keys)."""
    make: Any = jax.ShapeDtypeStruct  # untyped in jax's stubs
    struct: jax.ShapeDtypeStruct = make(shape, dtype, weak_type=weak)
    return struct


@dataclass(frozen=True, slots=True)
class LeafType:
    """One leaf: its path from a named root as `keystr` prints it, and its aval (None: it is no array)."""

    path: str
    aval: Aval | None
    kind: str = ""

    def __str__(self) -> str:
        return str(self.aval) if self.aval is not None else self.kind


#: Classes whose objects JAX takes for no array.
NO_ARRAY = (tuple, list, dict, set, frozenset, str, bytes, type(None), type, types.FunctionType, types.ModuleType)
#: What every class of NNX has for its objects to be printed, modules and variables alike (base imports no Flax).
OF_NNX = "__nnx_repr__"


def aval_of(value: Any) -> Aval | None:
    """The aval of anything JAX takes as an array (tracers and ShapeDtypeStruct too); None for everything else.

    A Python int beyond int32 is no array to JAX: it raises OverflowError. An object that can be turned into one (an
    `nnx.Variable`) is none yet: ValueError. JAX writes any other object into its TypeError, and the object's own repr
    may raise then (a dict that holds a deleted array does), or takes long (a module prints all its weights): containers
    and modules, which are most of what is asked about, are told by their class.
    """
    if isinstance(value, NO_ARRAY) or hasattr(type(value), OF_NNX):
        return None
    if isinstance(value, jax.ShapeDtypeStruct):
        return Aval(tuple(value.shape), str(value.dtype), bool(value.weak_type))
    try:
        aval = jax.typeof(value)
    except Exception:  # noqa: BLE001
        return None
    if not hasattr(aval, "shape") or not hasattr(aval, "dtype"):
        return None
    return Aval(tuple(aval.shape), str(aval.dtype), bool(getattr(aval, "weak_type", False)))


def path_name(root: str, path: tuple[Any, ...]) -> str:
    """`root` followed by the path as `jax.tree_util.keystr` prints it: ``carry['mean'][0]``."""
    return root + tree_util.keystr(path)


def leaf_types(tree: Any, root: str) -> tuple[LeafType, ...]:
    """Every leaf of a pytree with its path and aval, in flattening order. `None` is an empty subtree, as in JAX."""
    flat, _ = tree_util.tree_flatten_with_path(tree)
    return tuple(LeafType(path_name(root, p), aval_of(v), type(v).__name__) for p, v in flat)
