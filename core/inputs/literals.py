"""Values as expressions of Python that read back to them: what a program that is shown or exported is written with."""

from __future__ import annotations

import re
from typing import Any, Final

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.text import fill
from core.inputs.parse import format_leaf

ARRAY: Final = "{module}.array({numbers}, {dtype})"
FULL: Final = "{module}.full({shape}, {value}, {dtype})"
KEYS: Final = "jax.random.wrap_key_data(jnp.array({numbers}, jnp.uint32))"
#: Types of NumPy that are not NumPy's own.
_FOREIGN: Final = frozenset({"bfloat16"})
#: A constant array with more elements than this is written by its shape.
_LONG: Final = 8


class TooLongError(ValueError):
    """An array that nobody would write out."""


def tree_text(tree: Any, most: int | None) -> str:
    """A pytree of tuples, lists and dicts as an expression; `most`: see `array_text`."""
    if isinstance(tree, tuple) and not hasattr(tree, "shape"):
        inner = ", ".join(tree_text(part, most) for part in tree)
        return f"({inner},)" if len(tree) == 1 else f"({inner})"
    if isinstance(tree, list):
        return f"[{', '.join(tree_text(part, most) for part in tree)}]"
    if isinstance(tree, dict):
        return "{" + ", ".join(f'"{key}": {tree_text(part, most)}' for key, part in tree.items()) + "}"
    if tree is None:
        return "None"
    if isinstance(tree, bool | int | float):
        return named(repr(tree))
    return array_text(tree, most)


def array_text(leaf: Any, most: int | None, module: str = "jnp") -> str:
    """An array, or typed PRNG keys.

    Args:
        leaf: what is written.
        most: with more elements it is not written out; None for any number of them.
        module: ``jnp`` or ``np``. A whole number beyond int32 is always one of NumPy: only there it is what it is.

    Raises:
        TooLongError: it has more.
    """
    if jnp.issubdtype(jax.typeof(leaf).dtype, jax.dtypes.prng_key):
        return fill(KEYS, numbers=numbers_text(np.asarray(jax.random.key_data(leaf)), most))
    array = np.asarray(leaf)
    if array.dtype == np.int64:
        module = "np"
    name = (
        "bool" if array.dtype == np.bool_ else f"{'jnp' if array.dtype.name in _FOREIGN else module}.{array.dtype.name}"
    )
    if array.ndim and (not array.size or (array.size > _LONG and _constant(array))):
        value = named(format_leaf(array.flat[0])) if array.size else "0"
        return fill(FULL, module=module, shape=array.shape, value=value.replace("true", "True"), dtype=name)
    return fill(ARRAY, module=module, numbers=numbers_text(array, most, module), dtype=name)


def _constant(array: np.ndarray[Any, Any]) -> bool:
    return bool((array == array.flat[0]).all())


def parameter_text(value: Any, most: int | None) -> str:
    """A parameter of a step: a Python number, an array, or a pytree of such."""
    if not isinstance(value, bool | int | float) and len(tree_util.tree_leaves(value)) == 1:
        return array_text(value, most)
    return tree_text(value, most)


def numbers_text(array: np.ndarray[Any, Any], most: int | None, module: str = "jnp") -> str:
    """Nested lists of numbers.

    Raises:
        TooLongError: there are more than `most`.
    """
    if most is not None and array.size > most:
        raise TooLongError(array.size)
    return named(re.sub(r"\b(true|false)\b", lambda found: found.group().title(), format_leaf(array)), module)


def named(text: str, module: str = "jnp") -> str:
    """Numbers that Python has no literal for, by their names in a module."""
    return re.sub(r"\b(nan|inf)\b", rf"{module}.\1", text)
