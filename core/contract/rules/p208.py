"""A donated buffer is used again.

**What.** An array is passed to a jitted function that was told to reuse its memory (`donate_argnums`), and is used once
more after the call.

**Why.** Donating gives the memory away: the result may be written into it. After the call the name still stands for
the old array, but that is deleted; only the result may be used. It is donated only where a result can take its place, so the
same script may run with other shapes.

**Bad**

    update = jax.jit(lambda p, g: p - 0.1 * g, donate_argnums=0)
    new = update(params, grads)
    print(params)

**Good**

    params = update(params, grads)
    print(params)

Source: `jax.jit`, argument `donate_argnums`: "you should not reuse buffers that you donate to a computation"; JAX
documentation, "Buffer donation". JAX 0.11.2 donates on the CPU too (run).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import jax
from jax import tree_util

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract.jitted import jits_of, wraps_jitted
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, Failure
from core.contract.subject import MISSING
from core.contract.trace import same_structure

MESSAGE = "{name} was donated to {function}, which reuses its memory: there is nothing left of it to be used."
TWICE = "{name} is donated to {function} and passed to it a second time in the same call: it cannot be both."
BECAUSE = "{name} is given away here"
WHY = "A donated argument's memory goes to the result; after the call only the result may be used."
TITLE_REBIND = "Go on with the result: {name} = {call}"
TITLE_COPY = "Pass a copy of {name}"
TITLE_KEEP = "Do not donate: leave {argument} out"
DONATES = ("donate_argnums", "donate_argnames")
#: A name for a function that has none.
CALL = "a jitted function"


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding, when the script ended in the use of an array that an earlier call was given to keep."""
    failure = facts.failure
    if failure is None or failure.node is None:
        return
    for node, array in _deleted(facts, failure):
        donor = _donor(facts, array)
        if donor is None:
            continue
        given = _argument(donor, array)
        if given is None:
            continue
        name = facts.source.text_of(node)
        yield Finding(
            message=fill(MESSAGE, name=name, function=_named(donor)),
            place=failure.span,
            because=Because(facts.span(given), fill(BECAUSE, name=facts.source.text_of(given))),
            repairs=tuple(_repairs(facts, donor, given)),
        )
        return
    yield from _twice(facts, failure)


def _twice(facts: ScriptFacts, failure: Failure) -> Iterator[Finding]:
    """A call that is given one array twice, once of them to keep."""
    calls = [] if failure.node is None else [c for c in facts.calls_at(failure.node) if c.error is failure.error]
    for call in calls:
        if not wraps_jitted(call.func) or not _donating(facts, call):
            continue
        given = list(zip(call.node.args, call.args, strict=False))
        for number, (node, value) in enumerate(given):
            arrays = [leaf for leaf in tree_util.tree_leaves(value) if isinstance(leaf, jax.Array)]
            first = next((n for n, v in given[:number] if any(_holds(v, array) for array in arrays)), None)
            if first is not None:
                name = facts.source.text_of(node)
                yield Finding(
                    message=fill(TWICE, name=name, function=_named(call)),
                    place=facts.span(node),
                    because=Because(facts.span(first), fill(BECAUSE, name=facts.source.text_of(first))),
                    repairs=tuple(_repairs(facts, call, node)),
                )
                return


def _donating(facts: ScriptFacts, call: Called) -> list[tuple[ast.Call, ast.keyword]]:
    """The jits of what is called, with the arguments that make them donate."""
    function = facts.source.function(call.func)
    jits = [] if function is None else [j for j in jits_of(facts, function) if isinstance(j, ast.Call)]
    return [(jit, keyword) for jit in jits for keyword in jit.keywords if keyword.arg in DONATES]


def _named(donor: Called) -> str:
    return donor.name if donor.name is not None else fill(CALL)


# --- what is gone ---------------------------------------------------------------------------------------------------


def _deleted(facts: ScriptFacts, failure: Failure) -> Iterator[tuple[ast.expr, jax.Array]]:
    """The names and items in the failing expression that hold a deleted array; smallest first."""
    node = failure.node
    parts = (
        [] if node is None else [n for n in ast.walk(node) if isinstance(n, ast.Name | ast.Attribute | ast.Subscript)]
    )
    for part in reversed(parts):
        array = _gone(facts.value(part, None))
        if array is not None:
            yield part, array


def _gone(value: Any) -> jax.Array | None:
    """A deleted array in a value."""
    for leaf in tree_util.tree_leaves(value):
        if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer) and leaf.is_deleted():
            return leaf
    return None


def _donor(facts: ScriptFacts, array: jax.Array) -> Called | None:
    """The last call that went well with this very array among its arguments, when it was one of a jitted function."""
    held = [
        call
        for call in facts.record.calls
        if call.result is not MISSING and not call.traced and _holds((call.args, dict(call.kwargs)), array)
    ]
    jitted = [call for call in held if wraps_jitted(call.func)]
    return jitted[-1] if jitted else None


def _holds(tree: Any, array: jax.Array) -> bool:
    return any(leaf is array for leaf in tree_util.tree_leaves(tree))


def _argument(donor: Called, array: jax.Array) -> ast.expr | None:
    """The expression of the donated argument."""
    for node, value in zip(donor.node.args, donor.args, strict=False):
        if _holds(value, array):
            return node
    return next(
        (k.value for k in donor.node.keywords if k.arg is not None and _holds(donor.kwargs[k.arg], array)), None
    )


# --- repairs --------------------------------------------------------------------------------------------------------


def _repairs(facts: ScriptFacts, donor: Called, given: ast.expr) -> Iterator[Repair]:
    """The name bound to the result, where that is of the same types; a copy donated; or nothing donated."""
    rebound = None if donor.result is MISSING else _rebound(facts, donor, given)
    if rebound is not None:
        yield rebound
    text = facts.source.text_of(given)
    value = next((v for n, v in zip(donor.node.args, donor.args, strict=False) if n is given), MISSING)
    copy = _copy(facts, text, alone=isinstance(value, jax.Array))
    if copy is not None:
        yield facts.rewrite(fill(TITLE_COPY, name=text), given, copy)
    for jit, keyword in _donating(facts, donor):
        yield facts.rewrites(fill(TITLE_KEEP, argument=keyword.arg), _without(facts, jit, keyword))


def _rebound(facts: ScriptFacts, donor: Called, given: ast.expr) -> Repair | None:
    """``new = update(params, g)`` as ``params = update(params, g)``, and what is read as `new` as `params`."""
    statement = facts.source.statement(donor.node)
    value = next((v for n, v in zip(donor.node.args, donor.args, strict=False) if n is given), MISSING)
    if not isinstance(given, ast.Name) or not _alike(value, donor.result):
        return None
    title = fill(TITLE_REBIND, name=given.id, call=facts.source.text_of(donor.node))
    if isinstance(statement, ast.Expr) and statement.value is donor.node:
        return facts.rewrite(title, donor.node, f"{given.id} = {facts.source.text_of(donor.node)}")
    if not isinstance(statement, ast.Assign) or statement.value is not donor.node or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    if not isinstance(target, ast.Name) or target.id == given.id:
        return None
    scope = facts.source.scope(statement)
    names = [n for n in facts.source.within(scope) if isinstance(n, ast.Name) and n.id == target.id]
    return facts.rewrites(title, *(TextEdit(facts.span(n), given.id) for n in names))


def _alike(one: Any, other: Any) -> bool:
    """Whether two values have one structure and leaves of the same types (a deleted array still has one)."""
    leaves, others = tree_util.tree_leaves(one), tree_util.tree_leaves(other)
    if not leaves or not same_structure(one, other):
        return False
    types = [(getattr(leaf, "shape", None), str(getattr(leaf, "dtype", type(leaf)))) for leaf in leaves]
    return types == [(getattr(leaf, "shape", None), str(getattr(leaf, "dtype", type(leaf)))) for leaf in others]


def _copy(facts: ScriptFacts, text: str, *, alone: bool) -> str | None:
    copy = facts.spelled("jax.numpy.copy")
    if alone:
        return None if copy is None else f"{copy}({text})"
    mapped = facts.spelled("jax.tree.map")
    return None if copy is None or mapped is None else f"{mapped}({copy}, {text})"


def _without(facts: ScriptFacts, jit: ast.Call, keyword: ast.keyword) -> TextEdit:
    """The keyword taken out, with the comma before it."""
    span = facts.span(keyword)
    inner: list[ast.expr | ast.keyword] = [*jit.args, *jit.keywords]
    before = [facts.span(n) for n in inner if n is not keyword]
    ends = [s for s in before if (s.end_line, s.end_col) <= (span.line, span.col)]
    if ends:
        last = max(ends, key=lambda s: (s.end_line, s.end_col))
        return TextEdit(type(span)(last.end_line, last.end_col, span.end_line, span.end_col), "")
    return TextEdit(span, "")


RULE = Rule(
    code="P208",
    name="donated-buffer-used-again",
    title="A donated buffer is used again",
    severity=Severity.ERROR,
    jax=Jax.RAISES,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
