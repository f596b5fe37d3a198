"""Copies made by nnx.vmap have the same weights.

**What.** `nnx.vmap` over a function that builds a module makes several of them at once. If every copy gets the same
`nnx.Rngs` (``in_axes=None``), or a seed of its own that is the same for all, all copies are one and the same.

**Why.** A key that is not split gives each copy the same numbers.

**Bad**

    @nnx.vmap(in_axes=None, out_axes=0, axis_size=4)
    def make(rngs):
        return nnx.GRUCell(3, 4, rngs=rngs)

**Good**

    @nnx.split_rngs(splits=4)
    @nnx.vmap(in_axes=0, out_axes=0)
    def make(rngs):
        return nnx.GRUCell(3, 4, rngs=rngs)

Source: flax.nnx.split_rngs; flax.nnx.vmap.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flax import nnx

from core.base.places import Because, Span
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.copies import Copies, copies
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScriptRecord

SAME = "The {count} copies that {call} makes have the same weights in each: difference 0."
BECAUSE = "vmap makes the copies here"
TITLE = "Split the keys, one for each copy"
CLAIM = "How many of the {count} copies have weights of their own."
WHY = "A key that is not split gives each copy under vmap the same numbers."


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each call whose copies are all equal."""
    said: set[ast.Call] = set()
    for number, made in enumerate(copies(facts)):
        if made.distinct > 1 or made.call.node in said:
            continue
        said.add(made.call.node)
        yield Finding(
            message=fill(SAME, count=made.count, call=facts.source.text_of(made.call.node.func)),
            place=facts.span(made.call.node),
            because=Because(facts.span(made.vmap), fill(BECAUSE)),
            repairs=tuple(_split(facts, made)),
            measure=Measure(fill(CLAIM, count=made.count), Distinct(number), float(made.count)),
            silent=True,
        )


def _split(facts: ScriptFacts, made: Copies) -> Iterator[Repair]:
    """``split_rngs`` around a decorated function, ``.split`` at the call of any other; the keys along axis 0."""
    call = made.call
    index = next((i for i, v in enumerate(call.args) if isinstance(v, nnx.Rngs)), None)
    if index is None or not isinstance(made.vmap, ast.Call):
        return
    axes = next((k.value for k in made.vmap.keywords if k.arg == "in_axes"), None)
    if axes is None:
        return
    whole = not isinstance(axes, ast.Tuple | ast.List)
    if whole and len(call.args) > 1:
        text = ", ".join("0" if i == index else "None" for i in range(len(call.args)))
        edits = [TextEdit(facts.span(axes), f"({text})")]
    else:
        node = axes.elts[index] if isinstance(axes, ast.Tuple | ast.List) and index < len(axes.elts) else axes
        edits = [TextEdit(facts.span(node), "0")]
    name = facts.spelled("flax.nnx.split_rngs")
    if made.decorates is not None and name is not None:
        span = facts.span(made.vmap)
        at = Span(span.line, span.col - 1, span.line, span.col - 1)
        pad = facts.source.lines[span.line - 1][: span.col - 1]
        edits.append(TextEdit(at, f"@{name}(splits={made.count})\n{pad}"))
    else:
        argument = call.node.args[index]
        edits.append(TextEdit(facts.span(argument), f"{facts.source.text_of(argument)}.split({made.count})"))
    yield facts.rewrites(fill(TITLE), *edits)


@dataclass(frozen=True, slots=True)
class Distinct:
    """How many copies of a call, counted among those that make some, differ from each other."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: the call is not there.
        """
        made = copies(ScriptFacts(record)) if isinstance(record, ScriptRecord) else []
        if self.number >= len(made):
            raise ValueError("there is no such call")
        return float(made[self.number].distinct)


RULE = Rule(
    code="L323",
    name="copies-share-weights",
    title="Copies made by nnx.vmap have the same weights",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
