"""Layers that behave differently in training and in use: which a module holds, and whether a script says which is meant."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import tree_util

from core.base.avals import aval_of
from core.contract.cell_proof import farthest
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called

#: What says which mode is meant, as an argument.
FLAGS = frozenset({"deterministic", "use_running_average", "train", "training", "is_training"})
#: What says it of a whole module.
SETTERS = frozenset({"eval", "train", "set_attributes", "set_mode"})
VIEWS = frozenset(
    {"flax.nnx.view", "flax.nnx.view_info", "flax.nnx.set_mode", "flax.nnx.eval_mode", "flax.nnx.train_mode"}
)
GRADIENTS = frozenset({"flax.nnx.grad", "flax.nnx.value_and_grad", "jax.grad", "jax.value_and_grad"})
#: Batch statistics are watched where there are at least so many examples.
TWO = 2


def stochastic(module: Any) -> list[Any]:
    """The layers in a module that are in training mode: dropout that drops, batch statistics that are updated."""
    if not isinstance(module, nnx.Module):
        return []
    layers = [node for _, node in nnx.iter_graph(module) if isinstance(node, nnx.Dropout | nnx.BatchNorm)]
    return [layer for layer in layers if _trains(layer)]


def _trains(layer: Any) -> bool:
    if isinstance(layer, nnx.Dropout):
        return layer.rate > 0 and layer.deterministic is False
    return layer.use_running_average is False


def says_mode(facts: ScriptFacts) -> bool:
    """Whether the script says anywhere which mode is meant."""
    for call in facts.nodes(ast.Call):
        if any(k.arg in FLAGS for k in call.keywords) or facts.source.dotted(call.func) in VIEWS:
            return True
        if isinstance(call.func, ast.Attribute) and call.func.attr in SETTERS:
            return True
    return False


def updated(facts: ScriptFacts) -> int | None:
    """When parameters were first updated after a gradient was taken; None when they never were."""
    if not any(True for _ in facts.calls_of(*GRADIENTS)):
        return None
    return next((c.order for c in facts.record.calls if _is_update(c)), None)


def _is_update(call: Called) -> bool:
    name = call.node.func.attr if isinstance(call.node.func, ast.Attribute) else ""
    return name == "update" and isinstance(call.receiver, nnx.Optimizer)


def uses_after(facts: ScriptFacts, order: int) -> Iterator[Called]:
    """Calls of modules after that, outside of every trace and loop, on one argument with numbers."""
    for call in facts.record.calls:
        if call.order > order and not call.traced and call.error is None and isinstance(call.func, nnx.Module):
            inside = facts.source.scope(call.node)
            plain = len(call.args) == 1 and not call.kwargs and aval_of(call.args[0]) is not None
            if plain and isinstance(inside, ast.Module) and not _in_loop(facts, call.node):
                yield call


def _in_loop(facts: ScriptFacts, node: ast.AST) -> bool:
    here = facts.source.parents.get(node)
    loops = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
    while here is not None:
        if isinstance(here, loops):
            return True
        here = facts.source.parents.get(here)
    return False


def moved(module: Any, inputs: Any) -> float:
    """How far a module's output moves when it is called again, or when another example of the batch is changed.

    It is a copy that is called: its counts and statistics are its own.

    Raises:
        ValueError: there are no numbers.
    """
    if any(isinstance(leaf, jax.core.Tracer) for leaf in tree_util.tree_leaves((nnx.state(module), inputs))):
        raise ValueError("the values are traced")
    copy = nnx.clone(module)
    out, again = copy(inputs), copy(inputs)
    far = farthest(out, again)
    shape = np.shape(inputs)
    if not shape or shape[0] < TWO or not jnp.issubdtype(jnp.asarray(inputs).dtype, jnp.inexact):
        return far
    fresh = nnx.clone(module)
    other = fresh(jnp.asarray(inputs).at[0].add(1.0))
    if np.shape(out)[:1] != shape[:1]:
        return far
    return max(far, farthest(jnp.asarray(out)[1:], jnp.asarray(other)[1:]))
