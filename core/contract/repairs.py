"""Repairs that several rules propose: each mends a subject and says by `kind`, `path`, `value` what it set.

A page translates kind, path and value into its own inputs; without a page `apply` mends the call itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import tree_util

from core.base.avals import path_name
from core.base.text import fill
from core.contract.rule import Repair
from core.contract.subject import ScanCall

TITLE_INIT_DTYPE = "Make init's {path} {dtype}"


def map_leaf(tree: Any, root: str, path: str, change: Any) -> Any:
    """The pytree with the one leaf at `path` (rooted at `root`) replaced by ``change(leaf)``."""
    return tree_util.tree_map_with_path(
        lambda p, leaf: change(leaf) if path_name(root, p) == path else leaf, tree
    )


def init_dtype(path: str, dtype: str) -> Repair:
    """Give the init leaf at `path` this dtype, strongly."""

    def apply(call: ScanCall) -> ScanCall:
        cast = lambda leaf: jax.lax.convert_element_type(jnp.asarray(leaf), jnp.dtype(dtype))  # noqa: E731
        return replace(call, init=map_leaf(call.init, "carry", path, cast))

    return Repair("init_dtype", fill(TITLE_INIT_DTYPE, path=path, dtype=dtype), apply, path, dtype)
