"""Whether what leaked out of a trace is used when that is over, and where."""

from __future__ import annotations

import ast
from dataclasses import dataclass

import jax

from core.base.places import Span
from core.contract.p_effects import Effect, effects_of
from core.contract.p_owners import Level, owner_of
from core.contract.p_traced import Tracer, from_outside, in_trace, last_seen, tracers_in
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Failure, Seen
from core.contract.source import Function
from core.contract.subject import MISSING


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """Where a leaked value is used: the place, its text, and whether JAX raises there."""

    span: Span
    text: str
    raises: bool


def leaks(facts: ScriptFacts) -> tuple[tuple[Effect, Use | None], ...]:
    """Every effect that stored something traced, or shows or counts, with its first use outside of its trace."""
    return tuple((effect, _use(facts, effect)) for effect in facts.once(effects_of))


def _use(facts: ScriptFacts, effect: Effect) -> Use | None:
    if effect.kind in ("print", "count"):
        return None
    level: Level = (True, effect.scan)
    failure = facts.failure
    if failure is not None and _raised_by(facts, failure, effect):
        node = failure.node
        text = facts.source.text_of(node) if node is not None else facts.source.lines[failure.span.line - 1].strip()
        return Use(failure.span, text, raises=True)
    for seen in facts.record.seen:
        if seen.order <= effect.order or (seen.traced, seen.scan) == level or not isinstance(seen.value, Tracer):
            continue
        if not from_outside(facts, seen.value) and not _inner(facts, seen, effect) and _is_it(facts, seen, effect):
            # In another trace JAX raises when that one ends, at its call: what was used is here.
            ended = failure is not None and isinstance(failure.error, jax.errors.UnexpectedTracerError)
            return Use(facts.span(seen.node), facts.source.text_of(seen.node), raises=ended and seen.traced)
    return None


def _inner(facts: ScriptFacts, seen: Seen, effect: Effect) -> bool:
    """Whether it is used in a trace inside its own one, where it is still alive."""
    scan = seen.scan
    while scan is not None:
        if scan == effect.scan:
            return True
        scan = facts.scans[scan].parent
    return False


def _raised_by(facts: ScriptFacts, failure: Failure, effect: Effect) -> bool:
    """Whether the exception comes of this value: it is in the failing expression, outside of its trace."""
    unexpected = isinstance(failure.error, jax.errors.UnexpectedTracerError)
    seen = last_seen(facts, failure)
    if not unexpected and in_trace(facts, failure) and (seen is None or seen.scan == effect.scan):
        return False
    if seen is not None and seen.order < effect.order:
        return False
    ids = {id(v) for v in effect.values}
    for operand in failure.operands:
        if any(id(t) in ids for t in tracers_in(operand.value)):
            return True
    inside: ast.AST | None = failure.node if failure.node is not None else None
    parts = [] if inside is None else [n for n in ast.walk(inside) if isinstance(n, ast.expr)]
    return any(_named(facts, part, effect) and tracers_in(facts.value(part, MISSING)) for part in parts) or any(
        id(t) in ids for part in parts for t in tracers_in(facts.value(part, MISSING))
    )


def _is_it(facts: ScriptFacts, seen: Seen, effect: Effect) -> bool:
    return any(seen.value is v for v in effect.values) or _named(facts, seen.node, effect)


def _named(facts: ScriptFacts, node: ast.expr, effect: Effect) -> bool:
    """Whether an expression reads the very name, attribute or item that the effect wrote."""
    target = effect.node
    if isinstance(node, ast.Name) and isinstance(target, ast.Name) and effect.kind == "name":
        if node.id != target.id or not isinstance(node.ctx, ast.Load):
            return False
        return _owner(facts, node) is owner_of(facts, effect.function, target.id)
    if isinstance(node, ast.Attribute) and isinstance(target, ast.Attribute):
        same = facts.value(node.value, MISSING) is facts.value(target.value, None)
        return node.attr == target.attr and same
    return False


def _owner(facts: ScriptFacts, node: ast.Name) -> Function | None:
    function = next(facts.source.enclosing(node), None)
    return None if function is None else owner_of(facts, function, node.id)
