"""What the P rules ask of a failure: which values in it are traced, whether they are still alive, what traces them."""

from __future__ import annotations

import ast
from typing import Any

import jax
from jax import tree_util

from core.base.avals import Aval, aval_of
from core.base.places import Because
from core.base.text import fill
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Failure, ScanSite, Seen
from core.contract.source import Function, parameters
from core.contract.subject import MISSING

BECAUSE_SCAN = "lax.scan traces {step} here"
BECAUSE_STEP = "{names} of {step} is traced"
BECAUSE_ALL = "{names} of {step} are traced"

Tracer = jax.core.Tracer


def tracers_in(value: Any) -> list[Any]:
    """The tracers at the leaves of a value; none for what was not seen."""
    if value is MISSING or value is None or isinstance(value, str):
        return []
    if isinstance(value, slice):
        return [t for part in (value.start, value.stop, value.step) for t in tracers_in(part)]
    if isinstance(value, set | frozenset):
        return [v for v in value if isinstance(v, Tracer)]
    try:
        return [leaf for leaf in tree_util.tree_leaves(value) if isinstance(leaf, Tracer)]
    except (TypeError, ValueError):  # a dict whose keys cannot be sorted
        return [v for v in value.values() if isinstance(v, Tracer)] if isinstance(value, dict) else []


def type_of(value: Any) -> Aval | None:
    """The aval of what is traced; None for anything else."""
    return aval_of(value) if isinstance(value, Tracer) else None


def is_traced(facts: ScriptFacts, node: ast.AST) -> bool:
    """Whether an expression's last value is, or holds, something traced."""
    return bool(tracers_in(facts.value(node, MISSING)))


# --- where it failed ------------------------------------------------------------------------------------------------


def last_seen(facts: ScriptFacts, failure: Failure) -> Seen | None:
    """The last evaluation inside the expression or statement that failed."""
    inside: ast.AST | None = failure.node
    if inside is None:
        inside = statement_of(facts, failure)
    if inside is None:
        return None
    found = [seen for part in ast.walk(inside) for seen in facts.seen(part)[-1:]]
    return max(found, key=lambda seen: seen.order, default=None)


def statement_of(facts: ScriptFacts, failure: Failure) -> ast.stmt | None:
    """The statement that failed: around the expression, or at the place."""
    if failure.node is not None:
        return facts.source.statement(failure.node)
    span = failure.span
    found = [n for n in facts.nodes(ast.stmt) if (s := facts.span(n)).line == span.line and s.col == span.col]
    return found[0] if found else None


def in_trace(facts: ScriptFacts, failure: Failure) -> bool:
    """Whether it failed while something was being traced: then what is traced in it is alive."""
    if failure.in_step:
        return True
    seen = last_seen(facts, failure)
    return seen is not None and seen.traced


def from_outside(facts: ScriptFacts, tracer: Any) -> bool:
    """Of an abstract run, whether it is one of the outer trace, where every value is one."""
    born = facts.born(tracer)
    return facts.record.abstract and (born is None or not born.traced)


def dead_operands(facts: ScriptFacts, failure: Failure) -> list[Any]:
    """Tracers in the failing expression although nothing is being traced there: they outlived their trace."""
    if in_trace(facts, failure):
        return []
    found = [t for operand in failure.operands for t in tracers_in(operand.value)]
    return [t for t in found if not from_outside(facts, t)]


# --- what traces it -------------------------------------------------------------------------------------------------


def site_of(facts: ScriptFacts, failure: Failure) -> ScanSite | None:
    """The scan in whose step it failed."""
    return facts.scans[failure.scan] if failure.in_step and failure.scan is not None else None


def traced_parameters(facts: ScriptFacts, function: Function) -> list[str]:
    """Parameters of a function whose names stood for something traced."""
    names = [a.arg for a in parameters(function)]
    found = {n.id for n in facts.source.within(function) if isinstance(n, ast.Name) and is_traced(facts, n)}
    return [name for name in names if name in found]


def because(facts: ScriptFacts, failure: Failure) -> Because | None:
    """Why it is traced: the scan that traces the step, else the parameters of the function that is traced."""
    site = site_of(facts, failure)
    if site is not None and site.node is not None:
        step = getattr(site.step, "name", "the step")
        return Because(facts.span(site.node), fill(BECAUSE_SCAN, step=step))
    function = next((f.function for f in failure.frames if f.function is not None), None)
    names = [] if function is None else traced_parameters(facts, function)
    if function is None or not names or isinstance(function, ast.Lambda):
        return None
    template = BECAUSE_STEP if len(names) == 1 else BECAUSE_ALL
    return Because(facts.source.head(function), fill(template, names=", ".join(names), step=function.name))
