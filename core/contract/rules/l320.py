"""A tuple is the carry of a cell that carries one array.

**What.** `GRUCell` and `SimpleCell` carry the hidden state alone. Given the pair ``(c, h)`` of an LSTM, a GRU raises
somewhere inside; a `SimpleCell` makes one array of the pair, and returns a state with an axis too many. In a scan the
tuple goes in and an array comes back, which raises.

**Why.** Only an LSTM has a cell state beside its hidden state.

**Bad**

    h, y = gru((jnp.zeros((2, 4)), jnp.zeros((2, 4))), x)

**Good**

    h, y = gru(jnp.zeros((2, 4)), x)

Source: flax.nnx.GRUCell.__call__, flax.nnx.SimpleCell.__call__.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.avals import Aval, LeafType, aval_of
from core.base.places import Place, Span
from core.base.text import fill
from core.base.violation import Severity
from core.contract import trees
from core.contract.cells import CellUse, cell_because
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite, ScriptRecord
from core.contract.steps import steps_of

TUPLE = "{cell} carries one array, the hidden state; {path} is {got}."
STACKED = (
    "{cell} carries one array, the hidden state; {path} is {got}, of which it makes one array with an axis too many."
)
TITLE_ARGUMENT = "Pass the hidden state alone: {text}"
TITLE_INIT = "Start from the hidden state alone: {text}"
CLAIM = "Axes that the hidden state it returns has more than its input."
WHY = "GRUCell and SimpleCell carry the hidden state alone; only an LSTM has a cell state beside it."


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each place where a cell of one state was given a container."""
    said: set[Any] = set()
    for site, use in steps_of(facts):
        carry = use.event.carry
        if use.event.wants_pair or not _container(carry):
            continue
        place, node = _place(facts, site, use)
        if place is None or place in said:
            continue
        said.add(place)
        yield _finding(facts, site, use, place, node)


def _container(carry: Any) -> bool:
    """Whether a carry is a container of arrays (nested numbers are an array to a cell)."""
    if aval_of(carry) is not None or carry is None:
        return False
    leaves = tree_util.tree_leaves(carry)
    return bool(leaves) and all(isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves)


def _place(facts: ScriptFacts, site: ScanSite | None, use: CellUse) -> tuple[Place | None, ast.expr | None]:
    """The cell's carry argument; init where the scan hands it over itself."""
    found = use.event.site.find("carry") if use.event.site is not None else None
    node = None if found is None else facts.source.expression(found)  # type: ignore[arg-type]  # sites are Spans
    if found is None and site is not None and "init" in site.arguments:
        node = site.arguments["init"]
        found = facts.span(node)
    return found, node


def _finding(facts: ScriptFacts, site: ScanSite | None, use: CellUse, place: Place, node: ast.expr | None) -> Finding:
    failed = facts.failure is not None and _inside(place, facts.failure.span)
    raises = failed or use.event.error is not None or (site is not None and site.facts.jax is not None)
    template = TUPLE if raises else STACKED
    wanted = None if use.batch is None else Aval((*use.batch, use.hidden), "float32")
    measured = None if raises else Measure(CLAIM, Axes(place))
    return Finding(
        message=fill(template, cell=use.cell_name, path=use.path, got=trees.describe(use.event.carry)),
        place=place,
        because=cell_because(use_facts(facts, site), use),
        expected=() if wanted is None else (LeafType(use.path, wanted),),
        got=(LeafType(use.path, None, trees.describe(use.event.carry)),),
        repairs=tuple(_repairs(facts, site, use, node)),
        measure=measured,
        severity=Severity.ERROR if raises else Severity.WARNING,
        silent=not raises,
        path=use.path,
        covers=tuple(f"{use.path}[{i}]" for i in range(2)),
    )


def _inside(place: Any, span: Span) -> bool:
    return (span.line, span.col) <= (place.line, place.col) <= (span.end_line, span.end_col)


def use_facts(facts: ScriptFacts, site: ScanSite | None) -> Any:
    """The facts that a step was recorded in."""
    return facts if site is None else site.facts


def _repairs(facts: ScriptFacts, site: ScanSite | None, use: CellUse, node: ast.expr | None) -> Iterator[Repair]:
    """The hidden state alone: in the cell's argument, in init, or in both."""
    carry = use.event.carry
    if not isinstance(carry, tuple | list):
        return
    last = len(carry) - 1
    argument = None if node is None else _alone(facts, node, last)
    init = None if site is None else site.arguments.get("init")
    first = None if init is None else _alone(facts, init, last)
    if argument is not None and node is not None and node is not init:
        yield facts.rewrite(fill(TITLE_ARGUMENT, text=argument), node, argument)
    if init is not None and first is not None:
        yield facts.rewrite(fill(TITLE_INIT, text=first), init, first)


def _alone(facts: ScriptFacts, node: ast.expr, index: int) -> str:
    """The text of the last part of a display, or of an item of anything else."""
    if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == index + 1:
        return facts.source.text_of(node.elts[index])
    text = facts.source.text_of(node)
    simple = isinstance(node, ast.Name | ast.Attribute | ast.Subscript | ast.Call)
    return f"{text}[{index}]" if simple else f"({text})[{index}]"


@dataclass(frozen=True, slots=True)
class Axes:
    """How many axes h of the step at a place has more than its input."""

    place: Any

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: no cell's carry begins at that place.
        """
        if isinstance(record, ScriptRecord):
            facts = ScriptFacts(record)
            for site, use in steps_of(facts):
                found, _ = _place(facts, site, use)
                begins = found is not None and (found.line, found.col) == (self.place.line, self.place.col)  # type: ignore[union-attr]
                out = aval_of(use.event.result[1]) if use.event.result is not None else None
                if begins and out is not None and use.x is not None:
                    return float(len(out.shape) - len(use.x.shape))
        raise ValueError("there is no such step")


RULE = Rule(
    code="L320",
    name="tuple-for-one-state",
    title="A tuple is the carry of a cell that carries one array",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
    beats=frozenset({"L303", "L304", "L314", "S102", "S103", "S104"}),
)
