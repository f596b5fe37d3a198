"""Pytrees taken apart: their structure as text that says the same on every version of JAX, and their leaves by path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from flax import nnx
from jax import tree_util

from core.base.avals import path_name
from core.runners.scan import to_host

type Leaf = np.ndarray[Any, Any] | str

_LEAF: Final = "*"


def plain(tree: Any) -> Any:
    """Every `nnx.State` in a tree as dicts, every leaf on the host (keys as their raw data); words stay words."""

    def is_state(node: Any) -> bool:
        return isinstance(node, nnx.State)

    def without(node: Any) -> Any:
        return nnx.to_pure_dict(node) if is_state(node) else node

    tree = tree_util.tree_map(without, tree, is_leaf=is_state)
    return tree_util.tree_map(lambda leaf: leaf if isinstance(leaf, str) else to_host(leaf), tree)


def structure(tree: Any) -> str:
    """The tree with ``*`` for each leaf: ``(*, {'mean': *})``. Not JAX's own text, which changes between versions."""
    if tree is None:
        return "None"
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        inner = ", ".join(f"{name}={structure(part)}" for name, part in zip(tree._fields, tree, strict=True))
        return f"{type(tree).__name__}({inner})"
    if isinstance(tree, tuple):
        return f"({', '.join(map(structure, tree))}{',' if len(tree) == 1 else ''})"
    if isinstance(tree, list):
        return f"[{', '.join(map(structure, tree))}]"
    if isinstance(tree, Mapping):
        return f"{{{', '.join(f'{key!r}: {structure(tree[key])}' for key in sorted(tree, key=str))}}}"
    if tree_util.treedef_is_leaf(tree_util.tree_structure(tree)):
        return _LEAF
    return str(tree_util.tree_structure(tree)).removeprefix("PyTreeDef")


def leaves(root: str, tree: Any) -> list[tuple[str, Leaf]]:
    """(path, leaf) in flattening order: ``carry[0]``, ``grad['hi']['kernel']``."""
    flat, _ = tree_util.tree_flatten_with_path(tree)
    return [(path_name(root, path), leaf) for path, leaf in flat]
