"""Masks and lengths of a script: what an expression was made from, which arrays are masks, where their holes are.

A mask says for each example and step whether the step counts; it is an array of two axes of truth values, or of zeros
and ones. A hole is a step that is off with one after it that is on: no length can say that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax import lax, tree_util

from core.base.avals import aval_of
from core.contract.cell_proof import farthest
from core.contract.fates import concrete, function_of, given_as
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called
from core.contract.source import FUNCTIONS
from core.contract.taken import target_of

#: How many expressions are looked at behind one, at most.
BEHIND = 200
#: Calls that put an array in another order along its axes: what counts is the array behind them.
GATHERS = frozenset({"jax.numpy.take_along_axis"})

type Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """An expression that another one was made from.

    Attributes:
        node: itself.
        here: the expression that stands for it in the function where the search began: a parameter's name when `node`
            was given for that; None when there is none.
    """

    node: ast.expr
    here: ast.expr | None


def behind(facts: ScriptFacts, node: ast.expr) -> Iterator[Made]:
    """An expression, its parts, and what their names stand for, nearest first."""
    todo: list[Made] = [Made(node, node)]
    seen: set[ast.expr] = set()
    home = facts.source.scope(node)
    while todo and len(seen) < BEHIND:
        made = todo.pop(0)
        if made.node in seen:
            continue
        seen.add(made.node)
        yield made
        todo += list(_next(facts, made, home))


def _next(facts: ScriptFacts, made: Made, home: ast.AST) -> Iterator[Made]:
    node = made.node

    def step(child: ast.expr, here: ast.expr | None = None) -> Made:
        inside = facts.source.scope(child) is home
        return Made(child, child if inside else here)

    if isinstance(node, ast.Name):
        bound = target_of(facts, node)
        if bound is not None:
            yield step(bound[1], node if facts.source.scope(node) is home else made.here)
        else:
            own = node if facts.source.scope(node) is home else made.here
            yield from (step(argument, own) for _, argument in given_as(facts, node))
        return
    if isinstance(node, ast.Call):
        function = next((f for c in facts.calls_at(node) if (f := function_of(facts, c.func)) is not None), None)
        if function is not None:
            yield from (step(value, made.here) for value in facts.source.all_returned(function))
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            yield step(child, made.here)
        elif isinstance(child, ast.keyword):
            yield step(child.value, made.here)


def numbers(value: Any) -> Numbers | None:
    """A value's numbers where it has any: of an array, or of nested lists."""
    if concrete(value) or isinstance(value, np.ndarray):
        return None if jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key) else np.asarray(value)
    if isinstance(value, list | tuple) and value and not any(isinstance(v, jax.core.Tracer) for v in _flat(value)):
        try:
            array = np.asarray(value)
        except ValueError:
            return None
        return array if array.dtype.kind in "biuf" else None
    return None


def _flat(value: Any) -> list[Any]:
    return tree_util.tree_leaves(value)


def known(facts: ScriptFacts, node: ast.expr, shape: tuple[int, ...], before: int | None = None) -> Numbers | None:
    """The numbers of an expression; under a trace, of what was given for it in the same shape.

    Args:
        facts: of the script.
        node: the expression.
        shape: what is looked for.
        before: the order of the event that it was given to: what a later call of the same function is given is not it.
    """
    for made in behind(facts, node):
        if isinstance(made.node, ast.Name | ast.Attribute | ast.Call | ast.Subscript | ast.BinOp):
            seen = [s.value for s in facts.seen(made.node) if before is None or s.order < before]
            array = numbers(seen[-1] if seen else facts.value(made.node))
            if array is not None and array.shape == shape:
                return array
    return None


def is_mask(array: Numbers | None) -> bool:
    """Whether an array has two axes of truth values, or of zeros and ones of which there are both."""
    if array is None or array.ndim != 2 or array.size == 0:
        return False
    return array.dtype == bool or (bool(np.isin(array, (0, 1)).all()) and len(np.unique(array)) == 2)


def holes(mask: Numbers, axis: int) -> list[tuple[int, int]]:
    """``(example, step)`` of each step that is off before one that is on; `axis` is the one of the steps."""
    rows = np.moveaxis(mask.astype(bool), axis, 1)
    later = np.flip(np.maximum.accumulate(np.flip(rows, 1), 1), 1)
    return [(int(b), int(t)) for b, t in np.argwhere(~rows & later)]


# --- recurrent layers -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """One call of `nnx.RNN` or `nnx.Bidirectional` in the script.

    Attributes:
        call: itself.
        time: which axis of the input is time (0 or 1).
        steps, batch: T and B.
        returns: whether the final carry is returned.
        inputs: the input's expression.
    """

    call: Called
    time: int
    steps: int
    batch: int
    returns: bool
    inputs: ast.expr

    @property
    def lengths(self) -> Any:
        """What was given for seq_lengths; None for nothing."""
        return self.call.kwargs.get("seq_lengths")

    @property
    def lengths_node(self) -> ast.expr | None:
        """Its expression."""
        return next((k.value for k in self.call.node.keywords if k.arg == "seq_lengths"), None)

    @property
    def features(self) -> tuple[int, ...]:
        """Axes of the input behind those of time and batch."""
        aval = aval_of(self.call.argument(0, "inputs"))
        return () if aval is None else aval.shape[2:]


def runs(facts: ScriptFacts) -> list[Run]:
    """The calls of recurrent layers in a script, with inputs of one batch axis: ``(B, T, …)`` or ``(T, B, …)``."""
    return facts.once(_runs)


def _runs(facts: ScriptFacts) -> list[Run]:
    out = []
    for call in facts.record.calls:
        layer = call.func
        if not isinstance(layer, nnx.RNN | nnx.Bidirectional):
            continue
        aval, node = aval_of(call.argument(0, "inputs")), call.argument_node(0, "inputs")
        cell = getattr(layer, "cell", None) or getattr(getattr(layer, "forward_rnn", None), "cell", None)
        if aval is None or node is None or len(aval.shape) != 2 + int(getattr(cell, "num_feature_axes", 1)):
            continue
        time_major = _option(call, layer, "time_major")
        steps, batch = aval.shape[:2] if time_major else aval.shape[1::-1]
        out.append(Run(call, 0 if time_major else 1, steps, batch, bool(_option(call, layer, "return_carry")), node))
    return out


def _option(call: Called, layer: Any, name: str) -> Any:
    given = call.kwargs.get(name)
    return getattr(layer, name, None) if given is None else given


def axis_of(mask: Numbers, run: Run) -> int | None:
    """The axis of a mask that is time; where batch and time are equally long, as in the input."""
    if mask.shape == ((run.steps, run.batch) if run.time == 0 else (run.batch, run.steps)):
        return run.time
    if mask.shape == ((run.batch, run.steps) if run.time == 0 else (run.steps, run.batch)):
        return 1 - run.time
    return None


def masked_carry(layer: Any, inputs: Any, mask: Numbers, time: int, initial: Any = None) -> Any:
    """The final carry of a layer's cell when it skips the steps that a mask ``(B, T)`` switches off.

    Raises:
        ValueError: it is not one cell that runs forward.
    """
    if not isinstance(layer, nnx.RNN) or layer.reverse:
        raise ValueError("it does not run one cell forward")
    xs = jax.numpy.moveaxis(jax.numpy.asarray(inputs), time, 0)
    cell = layer.cell
    carry = cell.initialize_carry(xs.shape[1:], layer.rngs) if initial is None else initial

    def step(before: Any, x: Any) -> Any:
        x_t, keep = x
        new, _ = cell(before, x_t)
        pick = lambda n, o: jax.numpy.where(keep.reshape(-1, *(1,) * (n.ndim - 1)), n, o)  # noqa: E731
        return tree_util.tree_map(pick, new, before), None

    return lax.scan(step, carry, (xs, jax.numpy.asarray(mask.astype(bool).T)))[0]


def final_carry(call: Called, inputs: Any = None) -> Any:
    """The final carry of a call, made once more (with another input).

    Raises:
        ValueError: its values are traced.
    """
    given = call.argument(0, "inputs") if inputs is None else inputs
    options = {k: v for k, v in call.kwargs.items() if k not in ("inputs", "return_carry")}
    if any(isinstance(leaf, jax.core.Tracer) for leaf in tree_util.tree_leaves((given, options))):
        raise ValueError("the values are traced")
    if any(isinstance(leaf, jax.core.Tracer) for leaf in tree_util.tree_leaves(nnx.state(call.func))):
        raise ValueError("the weights are traced")
    return call.func(given, **options, return_carry=True)[0]


def number_of(facts: ScriptFacts, run: Run) -> int:
    """Which of the calls of layers this one is, in the order in which they were first made."""
    return list(dict.fromkeys(r.call.node for r in runs(facts))).index(run.call.node)


def run_numbered(facts: ScriptFacts, number: int) -> Run:
    """The first recorded run of a call: lines move when a script is edited, the order of its calls does not.

    Raises:
        ValueError: there is none.
    """
    nodes = list(dict.fromkeys(r.call.node for r in runs(facts)))
    if number >= len(nodes):
        raise ValueError("there is no such call")
    return next(run for run in runs(facts) if run.call.node is nodes[number])


def scope_holds(facts: ScriptFacts, name: ast.Name, place: ast.AST) -> bool:
    """Whether a name that is bound there can be read at a place: its scope is the module's or one around the place."""
    scope = facts.source.scope(name)
    around: list[ast.AST] = [facts.source.tree, *(s for s in _around(facts, place))]
    return scope in around


def _around(facts: ScriptFacts, place: ast.AST) -> Iterator[ast.AST]:
    here = facts.source.parents.get(place)
    while here is not None:
        if isinstance(here, FUNCTIONS):
            yield here
        here = facts.source.parents.get(here)


__all__ = ["BEHIND", "GATHERS", "Made", "Run", "axis_of", "behind", "farthest", "final_carry", "holes", "is_mask",
           "known", "masked_carry", "number_of", "numbers", "run_numbered", "runs", "scope_holds"]  # fmt: skip
