"""Axis letters that a script itself gives its arrays: ``jnp.ones((batch, T, F))``, ``B, T, F = x.shape``.

Only what is said by names that can mean nothing else; both the batch and the time must be named. Everything else stays
unknown, and what is unknown is never called wrong.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np
from jax import tree_util

from core.base.avals import path_name
from core.contract.source import Source

BATCH = frozenset("B b batch batch_size batchsize bsz bs".split())
TIME = frozenset(
    "T time timesteps time_steps n_timesteps num_timesteps n_steps num_steps seq_len seq_length seqlen sequence_length "
    "max_len max_length".split()
)
#: Letters for axes of other names, in order.
OTHERS = "FGHIJ"


def axes_of(source: Source, node: ast.expr | None, xs: Any) -> dict[str, str]:
    """Letters by path of xs, for the leaves whose expression says them.

    Args:
        source: the script.
        node: the expression of the scan's xs argument; None when there is none.
        xs: its value.
    """
    if node is None:
        return {}
    out = {}
    for path, leaf in tree_util.tree_flatten_with_path(xs)[0]:
        part = source.whole_part(source.resolve(node), path) if path else node
        letters = None if part is None else _letters(source, part, np.ndim(leaf))
        if letters is not None:
            out[path_name("xs", path)] = letters
    return out


def _letters(source: Source, node: ast.expr, rank: int) -> str | None:
    """The letters of one array, by how its shape is written or unpacked."""
    for names in (*_made(source.resolve(node)), *_unpacked(source, node)):
        if len(names) == rank:
            letters = _named(names)
            if letters is not None:
                return letters
    return None


def _made(node: ast.expr) -> Iterator[list[str]]:
    """Names of the axes in a call that makes an array: ``zeros((B, T, F))``, ``normal(key, (B, T, F))``, ``reshape(B, T, F)``."""
    if not isinstance(node, ast.Call):
        return
    arguments = [*node.args, *(k.value for k in node.keywords if k.arg == "shape")]
    for argument in arguments:
        if isinstance(argument, ast.Tuple | ast.List):
            yield [_name(e) for e in argument.elts]
    if isinstance(node.func, ast.Attribute) and node.func.attr == "reshape":
        yield [_name(a) for a in node.args]


def _unpacked(source: Source, node: ast.expr) -> Iterator[list[str]]:
    """Names of the axes in ``B, T, F = x.shape`` for the very name that is scanned."""
    if not isinstance(node, ast.Name):
        return
    for statement in source.nodes(ast.Assign):
        if not isinstance(statement.value, ast.Attribute):
            continue
        value, target = statement.value, statement.targets[0]
        same = isinstance(value.value, ast.Name) and value.attr == "shape" and value.value.id == node.id
        if same and isinstance(target, ast.Tuple) and source.scope(statement) is source.scope(node):
            yield [_name(e) for e in target.elts]


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _named(names: list[str]) -> str | None:
    """``BTF`` for the names of axes; None unless one of them is the batch and one the time."""
    kinds = ["B" if n in BATCH else "T" if n in TIME else "" for n in names]
    if kinds.count("B") != 1 or kinds.count("T") != 1:
        return None
    others = iter(OTHERS)
    return "".join(kind or next(others) for kind in kinds)
