"""Cells that are built in the ``__call__`` of a cell of the script's own, which `nnx.RNN` scans (L313)."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flax import errors, nnx
from jax import tree_util

from core.base.avals import aval_of
from core.base.violation import TextEdit
from core.contract.fates import function_parameters
from core.contract.layer_calls import behind_statement, facts_of_script
from core.contract.record import BuildEvent
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called

LAYER = "flax.nnx.RNN"


@dataclass(frozen=True, slots=True, eq=False)
class Inside:
    """A build in a step that a layer takes.

    Attributes:
        build: what was recorded.
        call: its expression.
        method: the method that it stands in.
        layer: the first call of the layer; where that ended the script, the call that made it.
        number: which of the layers' calls that is.
        own: whether it is built from the step's own arguments.
        raised: whether it raised, for it counts on an nnx.Rngs from outside.
    """

    build: BuildEvent
    call: ast.Call
    method: ast.FunctionDef
    layer: Called
    number: int
    own: bool
    raised: bool


def inside(facts: ScriptFacts) -> Iterator[Inside]:
    """All of a script, each expression once."""
    layers, said = _layers(facts), set[ast.AST]()
    stepped = {id(step.cell) for step in facts.cells.steps}
    for build in facts.cells.builds:
        place = build.site.find("call") if build.site is not None else None
        node = None if place is None else facts.source.expression(place)  # type: ignore[arg-type]  # sites are Spans
        raised = isinstance(build.error, errors.TraceContextError)
        if not isinstance(node, ast.Call) or node in said or not (raised or id(build.cell) in stepped):
            continue
        method = facts.source.scope(node)
        around = facts.source.parents.get(method)
        if not isinstance(method, ast.FunctionDef) or method.name == "__init__" or not isinstance(around, ast.ClassDef):
            continue
        of = [(i, call) for i, call in enumerate(layers) if type(call.func.cell).__name__ == around.name]
        if raised and not of:  # a call that ended the script is not kept: the layer was made for that cell
            of = [(0, call) for call in facts.calls_of(LAYER) if type(call.argument(0, "cell")).__name__ == around.name]
        if of and (raised or of[0][1].order > _first_order(facts, node)):
            said.add(node)
            parameters = set(function_parameters(method)) - {"self"}
            own = any(isinstance(n, ast.Name) and n.id in parameters for n in ast.walk(node))
            yield Inside(build, node, method, of[0][1], of[0][0], own, raised)


def _layers(facts: ScriptFacts) -> list[Called]:
    return [call for call in facts.record.calls if isinstance(call.func, nnx.RNN)]


def _first_order(facts: ScriptFacts, node: ast.Call) -> int:
    """When the build was made first: a layer's call ends after what is called in its step."""
    return min((call.order for call in facts.calls_at(node)), default=0)


def owned(facts: ScriptFacts, one: Inside) -> tuple[str, tuple[TextEdit, ...]] | None:
    """The build in ``__init__`` and its name in the step; None where there is no ``__init__``, or it needs the step's."""
    around = facts.source.parents.get(one.method)
    made = next(
        (f for f in getattr(around, "body", []) if isinstance(f, ast.FunctionDef) and f.name == "__init__"), None
    )
    if made is None or one.own or not made.body:
        return None
    local = {n.id for n in ast.walk(one.method) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    if any(isinstance(n, ast.Name) and n.id in local for n in ast.walk(one.call)):
        return None
    taken = {n.attr for n in facts.nodes(ast.Attribute)}
    name = "inner"
    while name in taken:
        name += "_"
    text = f"self.{name} = {facts.source.text_of(one.call)}"
    edits = (behind_statement(facts, made.body[-1], text), TextEdit(facts.span(one.call), f"self.{name}"))
    return text, edits


@dataclass(frozen=True, slots=True)
class Held:
    """How many parameters the cell of the n-th call of a layer has."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        layers = _layers(facts_of_script(record))
        if self.number >= len(layers):
            raise ValueError("there is no such call")
        state = nnx.state(layers[self.number].func.cell, nnx.Param)
        avals = (aval_of(leaf) for leaf in tree_util.tree_leaves(state))
        return float(sum(aval.size for aval in avals if aval is not None))
