"""Modules that a script makes several of at once, under `nnx.vmap` or `jax.vmap`: which calls, and how far they differ."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from flax import nnx
from jax import tree_util

from core.contract.fates import concrete, function_of
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called

VMAPS = frozenset({"flax.nnx.vmap", "jax.vmap"})


@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """One call that made several modules at once.

    Attributes:
        call: itself.
        vmap: the call of vmap that made the function, or its bare name as a decorator.
        decorates: the definition that it decorates; None when it is called with the function.
        weights: the random weights, one leading axis for the copies.
    """

    call: Called
    vmap: ast.expr
    decorates: ast.FunctionDef | None
    weights: tuple[np.ndarray[Any, Any], ...]

    @property
    def count(self) -> int:
        """How many copies."""
        return int(self.weights[0].shape[0])

    @property
    def distinct(self) -> int:
        """How many of them differ from every one before."""
        rows = {b"".join(np.ascontiguousarray(w[i]).tobytes() for w in self.weights) for i in range(self.count)}
        return len(rows)


def copies(facts: ScriptFacts) -> list[Copies]:
    """Every such call whose weights are known, in order."""
    out = []
    for call in facts.record.calls:
        if call.error is not None or call.traced:
            continue
        modules = [m for m in tree_util.tree_leaves(call.result, is_leaf=_is_module) if _is_module(m)]
        made = _vmapped(facts, call) if modules else None
        weights = () if made is None else tuple(w for m in modules for w in _weights(m))
        if made is not None and weights and len({w.shape[0] for w in weights}) == 1 and weights[0].shape[0] > 1:
            out.append(Copies(call, *made, weights))
    return out


def _is_module(value: Any) -> bool:
    return isinstance(value, nnx.Module)


def _weights(module: Any) -> Iterator[np.ndarray[Any, Any]]:
    """Parameters that were drawn: within one copy their numbers differ."""
    for leaf in tree_util.tree_leaves(nnx.to_pure_dict(nnx.state(module, nnx.Param))):
        if concrete(leaf) and leaf.ndim > 1 and leaf.shape[0] > 0:
            array = np.asarray(leaf)
            if array.dtype.kind == "f" and np.ptp(array[0]) > 0:
                yield array


def _vmapped(facts: ScriptFacts, call: Called) -> tuple[ast.expr, ast.FunctionDef | None] | None:
    """The vmap that the called function was made by."""
    function = function_of(facts, call.func)
    if isinstance(function, ast.FunctionDef):
        for decorator in function.decorator_list:
            if _is_vmap(facts, decorator):
                return decorator, function
    for other in facts.record.calls:
        if other.name in VMAPS and other.result is call.func:
            return other.node, None
    func = facts.source.resolve(call.node.func)
    while isinstance(func, ast.Call):
        if _is_vmap(facts, func):
            return func, None
        func = facts.source.resolve(func.func)
    return None


def _is_vmap(facts: ScriptFacts, node: ast.expr) -> bool:
    """``nnx.vmap``, ``nnx.vmap(…)``, ``partial(nnx.vmap, …)``."""
    if not isinstance(node, ast.Call):
        return facts.source.dotted(node) in VMAPS
    if facts.source.dotted(node.func) == "functools.partial" and node.args:
        return facts.source.dotted(node.args[0]) in VMAPS
    return facts.source.dotted(node.func) in VMAPS
