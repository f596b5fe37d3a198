"""What the Scan page's inputs need to know of a preset step: its leaves of init as fields, its opening values as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from jax import tree_util

from core.base.avals import Aval, aval_of, path_name
from core.base.text import fill
from core.inputs.parse import format_leaf, format_sequence
from core.steps.library import DEFAULT, find_step
from core.steps.step import Step, XKind, x_aval

LABEL_INIT = "init"
LABEL_INIT_LEAF = "init {name}"
#: A constant leaf with more elements than this is written as ``zeros(64)``.
_LONG = 4


@dataclass(frozen=True, slots=True)
class InitLeaf:
    """A leaf of init as a field: its name (``init``, ``init_mean``), path in the carry, and the words on its label."""

    name: str
    path: str
    label: str


@dataclass(frozen=True, slots=True)
class LeafText:
    """What stands in the inputs of one leaf: text, dtype, weak type."""

    text: str
    dtype: str
    weak: bool


def step_of(name: object) -> Step:
    """The preset of that id, the opening one for anything else."""
    return find_step(str(name)) or DEFAULT


def takes_numbers(step: Step) -> bool:
    """Whether xs are numbers that can be typed or generated (not keys, not nothing)."""
    return step.x not in (XKind.NONE, XKind.KEY)


@cache
def init_leaves(step: Step) -> tuple[InitLeaf, ...]:
    """The leaves of the step's init; their paths are the same whatever x is."""
    paths = [path_name("carry", path) for path, _ in tree_util.tree_flatten_with_path(_opening_init(step))[0]]
    if paths == ["carry"]:
        return (InitLeaf("init", "carry", fill(LABEL_INIT)),)
    names = [step.leaves.get(path, str(index)) for index, path in enumerate(paths)]
    return tuple(
        InitLeaf(f"init_{name}", path, fill(LABEL_INIT_LEAF, name=name))
        for name, path in zip(names, paths, strict=True)
    )


def _opening_init(step: Step) -> Any:
    return step.init(x_aval(step.opening_xs()) if takes_numbers(step) else None, step.defaults)


def init_tree(step: Step, leaves: Sequence[Any]) -> Any:
    """Init with these leaves, in the order of `init_leaves`."""
    return tree_util.tree_unflatten(tree_util.tree_structure(_opening_init(step)), leaves)


def init_texts(step: Step, x: Aval | None, params: Mapping[str, float]) -> tuple[LeafText, ...]:
    """What stands in init's inputs before anybody typed: the step's own init for such an x."""
    return tuple(leaf_text(leaf) for leaf in tree_util.tree_leaves(step.init(x, params)))


def init_opening_texts(step: Step, params: Mapping[str, float]) -> tuple[LeafText, ...]:
    """The same for the x that the step opens with."""
    x = x_aval(step.opening_xs()) if takes_numbers(step) else None
    return init_texts(step, x, params)


def opening_width(step: Step) -> int:
    """How many numbers a row has, for a step whose x is a row; 0 for any other (no such axis is generated)."""
    return np.shape(step.xs)[-1] if step.x is XKind.VECTOR else 0


def leaf_text(leaf: Any) -> LeafText:
    """A leaf as a person would type it: ``0.`` for a Python float, ``zeros(64, 3)`` for a long constant."""
    aval = aval_of(leaf)
    if aval is None:
        raise TypeError(leaf)
    if isinstance(leaf, float):
        text = repr(leaf)
        return LeafText(text.removesuffix("0") if text.endswith(".0") else text, "float32", True)
    return LeafText(_array_text(np.asarray(leaf)), aval.dtype, aval.weak and not aval.shape)


def _array_text(array: np.ndarray[Any, Any]) -> str:
    if array.size == 0 and array.ndim > 1:
        return format_sequence(array)
    if array.size <= _LONG or not bool((array == array.flat[0]).all()):
        return format_leaf(array)
    shape, value = ", ".join(map(str, array.shape)), array.flat[0]
    if value in (0, 1):
        return f"{'ones' if value else 'zeros'}({shape})"
    return f"full(({shape}), {format_leaf(value)})"


@cache
def opening_numbers(step: Step) -> str:
    """The opening sequence as typed text; "" for a step without numbers."""
    return format_sequence(np.asarray(step.xs)) if takes_numbers(step) else ""
