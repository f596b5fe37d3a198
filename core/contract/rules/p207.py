"""A jitted function keeps the value that a global had when it was traced.

**What.** A function under `jax.jit`, or the step of a scan, reads a name from outside. The name is bound to another
value, the function is called again with arguments of the same types, and the result is still that of the old value.

**Why.** The function's Python runs once for each type of its arguments. What it reads from outside then is written into
the program as a constant; a call that finds the program does not look at the name again. `lax.scan` keeps the program of its
step in the same way.

**Bad**

    scale = 1.0
    f = jax.jit(lambda x: scale * x)
    f(xs)
    scale = 5.0
    f(xs)                       # still 1.0 * xs

**Good**

    f = jax.jit(lambda x, scale: scale * x)
    f(xs, 5.0)

Only a rebinding between two calls that share a program is found, where the old value was really used.

Source: JAX documentation, "Just-in-time compilation" and "Common gotchas", pure functions: globals; run on JAX 0.11.2.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax, tree_util

from core.base.avals import aval_of
from core.base.places import Because, Span
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScriptRecord
from core.contract.source import Function
from core.contract.stale import Stale, Use, stale
from core.contract.wording import show

MESSAGE = (
    "{function} was traced when {name} was {old}, and its program keeps that: the call in line {line} still computes with "
    "it, although {name} is {new} by then."
)
OTHER = "{function} was traced when {name} was another value than at the call in line {line}, and its program keeps the old one."
STEP = "The step {function}"
JITTED = "The jitted {function}"
LAMBDA = "function"
BECAUSE = "{name} is bound anew here"
WHY = "What a traced function reads from outside is a constant of its program, which is kept for all calls of the same types."
CLAIM = "The last such call was made once more, traced anew: this is by how much its result was off."
TITLE_ARGUMENT = "Pass {name} as an argument"
TITLE_ANEW = "Trace the step anew at each scan: lambda carry, x: {step}(carry, x)"


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """A finding for each expression read from outside that a kept program has another value of."""
    for one in stale(facts):
        name = facts.source.text_of(one.read)
        numbers = [_shown(value) for value in (one.old, one.new)]
        template = OTHER if None in numbers else MESSAGE
        yield Finding(
            message=fill(
                template,
                function=_named(one),
                name=name,
                old=numbers[0],
                new=numbers[1],
                line=facts.span(one.use.node).line,
            ),
            place=facts.span(one.read),
            because=Because(_first_line(facts, one.bound), fill(BECAUSE, name=name)),
            repairs=tuple(_repairs(facts, one)),
            measure=Measure(CLAIM, partial(_off, name)),
            severity=Severity.WARNING,
            silent=True,
        )


def _first_line(facts: ScriptFacts, statement: ast.stmt) -> Span:
    """A statement's place; of a loop its target."""
    return facts.span(statement.target if isinstance(statement, ast.For) else statement)


def _named(one: Stale) -> str:
    name = one.function.name if not isinstance(one.function, ast.Lambda) else fill(LAMBDA)
    return fill(STEP if one.use.scan is not None else JITTED, function=name)


def _shown(value: Any) -> str | None:
    """A single number; None for what is none."""
    aval = aval_of(value)
    return show(value) if aval is not None and aval.shape == () and not aval.dtype.startswith("key") else None


# --- proof ----------------------------------------------------------------------------------------------------------


def _off(name: str, record: ScriptRecord) -> float:
    """How far the results of stale calls are from what their functions give now; 0 where no call is stale."""
    facts = ScriptFacts(record)
    return max((_apart(s.use) for s in stale(facts) if facts.source.text_of(s.read) == name), default=0.0)


def _apart(use: Use) -> float:
    if use.called is not None:
        before, after = use.called.result, inspect.unwrap(use.called.func)(*use.called.args, **use.called.kwargs)
    elif use.scan is not None:
        call = use.scan.call
        before = use.scan.result
        after = lax.scan(
            lambda carry, x: call.body(carry, x), call.init, call.xs, call.length, call.reverse, call.unroll
        )
    pairs = zip(tree_util.tree_leaves(before), tree_util.tree_leaves(after), strict=True)
    apart = [np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)) for a, b in pairs]
    return float(max(float(a.max(initial=0.0)) for a in apart))


# --- repairs --------------------------------------------------------------------------------------------------------


def _repairs(facts: ScriptFacts, one: Stale) -> Iterator[Repair]:
    name = facts.source.text_of(one.read)
    if one.use.scan is not None:
        yield from _anew(facts, one.function)
    elif isinstance(one.read, ast.Name) and isinstance(one.new, int | float | complex | np.ndarray | jax.Array):
        edits = _as_argument(facts, one.function, one.read.id)
        if edits is not None:
            yield facts.rewrites(fill(TITLE_ARGUMENT, name=name), *edits)


def _anew(facts: ScriptFacts, function: Function) -> Iterator[Repair]:
    """A step of its own for each scan."""
    edits, step = [], ""
    for site in facts.steps.get(function, ()):
        node = site.arguments.get("step")
        if isinstance(node, ast.Name | ast.Attribute):
            step = facts.source.text_of(node)
            edits.append(TextEdit(facts.span(node), f"lambda carry, x: {step}(carry, x)"))
    if edits:
        yield facts.rewrites(fill(TITLE_ANEW, step=step), *dict.fromkeys(edits))


def _as_argument(facts: ScriptFacts, function: Function, name: str) -> tuple[TextEdit, ...] | None:
    """One more parameter, given at every call; None where parameters have defaults or stars."""
    given = function.args
    if given.defaults or given.vararg or given.kwonlyargs or given.kwarg or not given.args:
        return None
    last = facts.span(given.args[-1])
    edits = [TextEdit(Span(last.end_line, last.end_col, last.end_line, last.end_col), f", {name}")]
    for call in facts.nodes(ast.Call):
        funcs = [seen.value for seen in facts.seen(call.func)]
        if not any(callable(func) and facts.source.function(func) is function for func in funcs):
            continue
        inner: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
        if not inner or call.keywords or any(isinstance(a, ast.Starred) for a in call.args):
            return None
        end = max((facts.span(n) for n in inner), key=lambda s: (s.end_line, s.end_col))
        edits.append(TextEdit(Span(end.end_line, end.end_col, end.end_line, end.end_col), f", {name}"))
    return tuple(edits) if len(edits) > 1 else None


RULE = Rule(
    code="P207",
    name="traced-global-is-kept",
    title="A jitted function keeps the value a global had when it was traced",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.RUN,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
