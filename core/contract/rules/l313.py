"""A cell is built inside the step.

**What.** The step function builds its cell: each trace of the step makes new weights, which nobody has a hold on. They
are constants of the compiled program; no gradient reaches them and no optimizer sees them. In a plain loop every step
has another cell. With an `nnx.Rngs` from outside, the build raises: its count must not change under a trace.

**Why.** Parameters live outside the step: it is run many times and must find the same ones.

**Bad**

    def step(carry, x):
        cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
        return cell(carry, x)

**Good**

    cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))

    def step(carry, x):
        return cell(carry, x)

Source: flax.nnx.LSTMCell.__init__; flax.errors.TraceContextError.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flax import errors, nnx
from jax import tree_util

from core.base.avals import aval_of
from core.base.places import Because, Span
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import sequence_built
from core.contract.built_in_call import Held, inside, owned
from core.contract.cell_proof import farthest
from core.contract.fates import concrete, function_parameters
from core.contract.record import BuildEvent, CellEvents
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite, ScriptRecord
from core.contract.sequence_facts import SequenceFacts
from core.contract.source import FUNCTIONS, Function

BUILT = (
    "{cell} is built inside the step: its weights are new in each trace and gone after it, so nothing can learn them."
)
RAISED = (
    "{cell} is built inside the step from an nnx.Rngs that was made outside: its count must not change under a trace."
)
LOOP = "{cell} is built anew at each step of the loop: the carry goes from one cell into another with other weights."
SAME = "{cell} is built anew at each step of the loop, each time with the same weights."
BECAUSE = "the step runs here"
TITLE = "Build it once, before the step: {text}"
TITLE_OWN = "Build it once, in __init__: {text}"
OWNED = "Parameters of the cells in the step that are there outside of it."
APART = "The weights of the second cell, compared with those of the first: largest difference."
WHY = "Parameters live outside the step: it is run many times and must find the same ones each time."


def check(facts: ScriptFacts | SequenceFacts) -> Iterator[Finding]:
    """One finding for each build in the step of a scan, or in the body of a loop that carries a state on."""
    if isinstance(facts, SequenceFacts):
        yield from sequence_built.built_in_step(facts)
        return
    said: set[Any] = set()
    for number, site in enumerate(facts.scans):
        stepped = {id(step.cell) for step in site.facts.cells.steps}
        for build in site.facts.cells.builds:
            call = _outermost(facts, _call(facts, build), site)
            raised = isinstance(build.error, errors.TraceContextError)
            if call is None or call in said or not (raised or id(build.cell) in stepped):
                continue
            said.add(call)
            because = None if site.node is None else Because(facts.span(site.node), fill(BECAUSE))
            yield _in_scan(facts, build, call, number, because, raised=raised)
    yield from _in_layers(facts, said)
    yield from _in_loops(facts, said)


def _call(facts: ScriptFacts, build: BuildEvent) -> ast.Call | None:
    place = build.site.find("call") if build.site is not None else None
    node = None if place is None else facts.source.expression(place)  # type: ignore[arg-type]  # sites are Spans
    return node if isinstance(node, ast.Call) else None


def _outermost(facts: ScriptFacts, call: ast.Call | None, site: ScanSite) -> ast.Call | None:
    """The step's own call that leads to a build: that of the module whose ``__init__`` builds the cell."""
    if call is None or not _in_init(facts, call):
        return call
    for made in facts.record.calls:
        is_module = isinstance(made.func, type) and issubclass(made.func, nnx.Module)
        if made.scan == site.index and is_module and not _in_init(facts, made.node):
            return made.node
    return call


def _in_init(facts: ScriptFacts, node: ast.AST) -> bool:
    scope = facts.source.scope(node)
    return isinstance(scope, ast.FunctionDef) and isinstance(facts.source.parents.get(scope), ast.ClassDef)


def _in_scan(
    facts: ScriptFacts, build: BuildEvent, call: ast.Call, number: int, because: Because | None, *, raised: bool
) -> Finding:
    scope = _around(facts, call)
    # What is built from the step's own arguments (a key of each step) may be meant to be another one each time.
    own = scope is None or _outside(facts, call, scope, 2) is None
    severity = Severity.ERROR if raised else Severity.NOTE if own else Severity.WARNING
    measure = None
    if severity is Severity.WARNING:
        measure = Measure(OWNED, Owned(number), float(_size(build.cell)))
    return Finding(
        message=fill(RAISED if raised else BUILT, cell=build.cell_type.__name__),
        place=facts.span(call),
        because=because,
        repairs=tuple(_moved(facts, call)),
        measure=measure,
        severity=severity,
        silent=not raised,
        path="" if raised else facts.source.text_of(call),
    )


def _size(cell: Any) -> int:
    """How many numbers a cell's parameters have."""
    avals = (aval_of(leaf) for leaf in tree_util.tree_leaves(nnx.state(cell, nnx.Param)))
    return sum(aval.size for aval in avals if aval is not None)


def _in_layers(facts: ScriptFacts, said: set[Any]) -> Iterator[Finding]:
    """A build in the ``__call__`` of a cell that `nnx.RNN` scans."""
    for one in inside(facts):
        if one.call in said:
            continue
        said.add(one.call)
        edits = owned(facts, one)
        severity = Severity.ERROR if one.raised else Severity.NOTE if one.own else Severity.WARNING
        measured = severity is Severity.WARNING
        yield Finding(
            message=fill(RAISED if one.raised else BUILT, cell=one.build.cell_type.__name__),
            place=facts.span(one.call),
            because=Because(facts.span(one.layer.node), fill(BECAUSE)),
            repairs=() if edits is None else (facts.rewrites(fill(TITLE_OWN, text=edits[0]), *edits[1]),),
            measure=Measure(OWNED, Held(one.number), float(_size(one.build.cell))) if measured else None,
            severity=severity,
            silent=not one.raised,
            path="" if one.raised else facts.source.text_of(one.call),
        )


# --- loops ----------------------------------------------------------------------------------------------------------


def _in_loops(facts: ScriptFacts, said: set[Any]) -> Iterator[Finding]:
    """A carry that goes from a cell into another one that was built at the same place."""
    places = {id(b.cell): (call, b) for b in facts.cells.builds if (call := _call(facts, b)) is not None}
    left: dict[int, Any] = {}
    for step in facts.cells.steps:
        here = places.get(id(step.cell))
        for leaf in tree_util.tree_leaves(step.carry):
            before = left.get(id(leaf))
            if here is None or before is None or before is step.cell or here[0] in said:
                continue
            if places.get(id(before), (None,))[0] is here[0]:
                said.add(here[0])
                yield _loop(facts, here[1], here[0], before, step.cell)
        if step.result is not None:
            left |= {id(leaf): step.cell for leaf in tree_util.tree_leaves(step.result[0])}


def _loop(facts: ScriptFacts, build: BuildEvent, call: ast.Call, one: Any, other: Any) -> Finding:
    try:
        apart = _apart(one, other)
    except (ValueError, TypeError):
        apart = 0.0
    return Finding(
        message=fill(LOOP if apart > 0 else SAME, cell=build.cell_type.__name__),
        place=facts.span(call),
        measure=Measure(APART, Apart(facts.source.text_of(call))) if apart > 0 else None,
        severity=Severity.WARNING if apart > 0 else Severity.NOTE,
        silent=True,
        path=facts.source.text_of(call),
    )


def _apart(one: Any, other: Any) -> float:
    states = [nnx.to_pure_dict(nnx.state(cell, nnx.Param)) for cell in (one, other)]
    if not all(concrete(leaf) for leaf in tree_util.tree_leaves(states)):
        raise ValueError("the weights are traced")
    return farthest(*states)


# --- the fix --------------------------------------------------------------------------------------------------------


def _moved(facts: ScriptFacts, call: ast.Call) -> Iterator[Repair]:
    """The build in front of the step's definition, or of the loop."""
    source = facts.source
    statement = source.statement(call)
    scope = _around(facts, call)
    text = None if scope is None else _outside(facts, call, scope, 2)
    if statement is None or scope is None or text is None:
        return
    before = _statement_of(facts, scope)
    if before is None:
        return
    title = fill(TITLE, text=text)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    rest = _following(facts, statement)
    if isinstance(target, ast.Name) and isinstance(statement, ast.Assign) and statement.value is call and rest:
        span, after = facts.span(statement), facts.span(rest)
        gone = TextEdit(Span(span.line, span.col, after.line, after.col), "")
        yield facts.rewrites(title, _front(facts, before, f"{target.id} = {text}"), gone)
        return
    taken = {n.id for n in facts.nodes(ast.Name)}
    name = "cell"
    while name in taken:
        name += "_"
    yield facts.rewrites(title, _front(facts, before, f"{name} = {text}"), TextEdit(facts.span(call), name))


def _around(facts: ScriptFacts, call: ast.Call) -> Function | ast.For | ast.While | None:
    """The innermost function or loop around a build."""
    here = facts.source.parents.get(call)
    while here is not None:
        if isinstance(here, (*FUNCTIONS, ast.For, ast.While)):
            return here
        here = facts.source.parents.get(here)
    return None


def _statement_of(facts: ScriptFacts, scope: ast.AST) -> ast.stmt | None:
    statement = facts.source.statement(scope)
    return None if isinstance(facts.source.parents.get(statement or scope), ast.ClassDef) else statement


def _following(facts: ScriptFacts, statement: ast.stmt) -> ast.stmt | None:
    """The next statement of the same block."""
    parent = facts.source.parents.get(statement)
    for block in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
        if isinstance(block, list) and statement in block[:-1]:
            following: ast.stmt = block[block.index(statement) + 1]
            return following
    return None


def _front(facts: ScriptFacts, statement: ast.stmt, text: str) -> TextEdit:
    """A line in front of a statement and of its decorators."""
    decorators = getattr(statement, "decorator_list", [])
    edit = facts.insert_before(statement, text)
    if not decorators:
        return edit
    line = min(d.lineno for d in decorators)
    return TextEdit(Span(line, edit.span.col, line, edit.span.col), edit.text)


def _outside(facts: ScriptFacts, node: ast.expr, scope: ast.AST, depth: int) -> str | None:
    """A build's text in names that are known outside of a scope; None when it needs what is known inside alone."""
    source = facts.source
    text, start = source.text_of(node), facts.span(node)
    edits: list[tuple[int, int, str]] = []
    for name in ast.walk(node):
        if not isinstance(name, ast.Name) or not isinstance(name.ctx, ast.Load):
            continue
        inside = _bound_inside(facts, scope, name.id)
        if inside is None:
            continue
        value = _outside(facts, inside, scope, depth - 1) if isinstance(inside, ast.expr) and depth else None
        span = facts.span(name)
        if value is None or span.line != start.line or "\n" in text:
            return None
        edits.append((span.col - start.col, span.end_col - start.col, value))
    for begin, end, value in sorted(edits, reverse=True):
        text = text[:begin] + value + text[end:]
    return text


def _bound_inside(facts: ScriptFacts, scope: ast.AST, name: str) -> ast.expr | bool | None:
    """What a name is assigned inside a scope; True for a parameter or loop variable; None when it comes from outside."""
    if isinstance(scope, FUNCTIONS) and name in function_parameters(scope):
        return True
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store):
            statement = facts.source.statement(node)
            if isinstance(statement, ast.Assign) and statement.targets == [node]:
                return statement.value
            return True
    return None


# --- the numbers ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Owned:
    """How many parameters the cells stepped in a scan have, of those that were built outside of it."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the scan is not there.
        """
        if not isinstance(record, ScriptRecord) or self.number >= len(record.scans):
            raise ValueError("there is no such scan")
        cells: CellEvents = record.scans[self.number].facts.cells
        built = {id(b.cell) for b in cells.builds}
        outside = {id(s.cell): s.cell for s in cells.steps if id(s.cell) not in built}
        return float(sum(_size(cell) for cell in outside.values()))


@dataclass(frozen=True, slots=True)
class Apart:
    """How far the weights of the second cell of a build are from those of the first; 0 when there is only one."""

    text: str

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: no cell is built by this text.
        """
        if not isinstance(record, ScriptRecord):
            raise ValueError("there is no script")
        facts = ScriptFacts(record)
        texts = [(facts.source.text_of(call), b.cell) for b in facts.cells.builds if (call := _call(facts, b))]
        cells = [cell for text, cell in texts if text == self.text]
        if not cells:
            raise ValueError("there is no such cell")
        return _apart(cells[0], cells[1]) if len(cells) > 1 else 0.0


RULE = Rule(
    code="L313",
    name="cell-built-in-step",
    title="A cell is built inside the step",
    severity=Severity.WARNING,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script", "sequence"}),
    beats=frozenset({"R404"}),
)
