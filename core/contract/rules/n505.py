"""A value that is not finite is hidden, not mended.

**What.** `nan_to_num`, or a `where` that asks `isnan` or `isfinite`, puts another number in the place of NaN or infinity.
The value was born elsewhere: this says where.

**Why.** What replaces a NaN hides its cause: the number in its place is not the result of the formula, and gradients are
NaN all the same (N502).

**Bad**

    ratio = x / total                       # 0 / 0
    return carry + jnp.nan_to_num(ratio), ratio

**Good**

    ratio = x / jnp.where(total > 0, total, 1.0)
    return carry + ratio, ratio

A note: data with holes in it is cleaned like that on purpose. So nothing is said of values that came in as they are,
with xs or init, nor where there was nothing to replace.

Source: jax.numpy.nan_to_num; IEEE 754.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.jaxprs import equations
from core.base.places import Because, Span
from core.base.results import ScanResult
from core.base.text import fill
from core.base.violation import Severity
from core.contract.grads import Born, Hidden, hidden
from core.contract.origin import record_of
from core.contract.rule import Finding, Jax, Measure, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScanSite
from core.contract.subject import Subject
from core.contract.trace import StepTrace
from core.contract.wording import show
from core.runners.scan import to_device

IN_STEP = "{text} hides {what} at t = {t}: it is born in {cause_text} ({cause}), and the number put in its place is no result."
OUTSIDE = "{text} hides {what}: it is born in {cause_text} ({cause}), and the number put in its place is no result."
CAUSE = "{operation}({numbers}) is {output}"
CAUSE_ALONE = "{operation} gives {output}"
BECAUSE = "born here"
CLAIM = "The numbers that were replaced because they were NaN or infinite were counted."
WHY = (
    "Replacing a NaN hides its cause: the number in its place is not what the formula gives, and the gradient through it "
    "is NaN all the same."
)
#: Steps of a scan that are carried out once more in search of one.
STEPS = 32
#: What a script calls to hide such values, or to ask for them.
HIDES = (
    *(f"jax.numpy.{n}" for n in "nan_to_num where isnan isfinite isinf isposinf isneginf".split()),
    "jax.lax.select",
    "jax.lax.is_finite",
)


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """One such place, with the step where it was met (None outside of scans)."""

    hidden: Hidden
    t: int | None = None


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One note for each expression that hides such values."""
    said = set()
    for found in facts.once(_found):
        place, born = found.hidden.place, found.hidden.born
        node = facts.source.expression(place)
        if place in said or born.place is None or born.place == place or node is None:
            continue
        said.add(place)
        yield _finding(facts, found, node, born.place)


def _finding(facts: ScriptFacts, found: _Found, node: ast.expr, born_at: Span) -> Finding:
    born = found.hidden.born
    cause = facts.source.expression(born_at)
    numbers = ", ".join(show(n) for n in born.inputs)
    template = CAUSE if numbers else CAUSE_ALONE
    fields = {
        "text": facts.source.text_of(node.func if isinstance(node, ast.Call) else node),
        "what": show(born.output),
        "cause_text": "the step" if cause is None else facts.source.text_of(cause),
        "cause": fill(template, operation=born.operation, numbers=numbers, output=show(born.output)),
    }
    return Finding(
        message=fill(OUTSIDE, **fields) if found.t is None else fill(IN_STEP, t=found.t, **fields),
        place=found.hidden.place,
        because=Because(born_at, BECAUSE),
        measure=Measure(CLAIM, _count),
        path=fields["text"],
    )


def _count(subject: Subject) -> float:
    record = record_of(subject)
    return float(sum(found.hidden.count for found in _found(ScriptFacts(record))))


def _found(facts: ScriptFacts) -> list[_Found]:
    if facts.record.abstract or next(facts.calls_of(*HIDES), None) is None:
        return []
    out: list[_Found] = []
    for site in facts.scans:
        out += _in_scan(facts, site)
    for call in facts.calls_of("jax.numpy.nan_to_num", "jax.numpy.where"):
        out += _eager(facts, call)
    return out


# --- in a step ------------------------------------------------------------------------------------------------------


def _in_scan(facts: ScriptFacts, site: ScanSite) -> Iterator[_Found]:
    """The steps of a scan that ran, one after the other, until something is hidden."""
    result, trace = site.facts.__dict__.get("run"), site.facts.trace
    if not isinstance(result, ScanResult) or not isinstance(trace, StepTrace):
        return
    if not any(e.primitive.name in ("is_finite", "ne", "eq") for e in equations(trace.jaxpr)):
        return
    likes = (*tree_util.tree_leaves(site.call.init), *tree_util.tree_leaves(site.call.xs))
    for position in range(min(result.length, STEPS)):
        values = [s.values[position] for s in (*result.carries, *result.xs)]
        try:
            given = [to_device(v, like) for v, like in zip(values, likes, strict=True)]
            found = hidden(trace.jaxpr, given, facts.source)
        except Exception:  # noqa: BLE001  # a program that cannot be carried out once more is only not explained
            return
        if found:
            yield from (_Found(one, int(result.order[position])) for one in found)
            return


# --- outside of all traces ------------------------------------------------------------------------------------------


def _eager(facts: ScriptFacts, call: Called) -> Iterator[_Found]:
    """`nan_to_num(x)`, or `where(isnan(x), 0, x)`, of arrays with values."""
    if call.traced or call.scan is not None or call.error is not None:
        return
    if call.name == "jax.numpy.nan_to_num":
        nodes = [call.argument_node(0, "x")]
    else:
        asked = call.argument_node(0, "condition")
        asks = asked is not None and any(
            (facts.source.dotted(n.func) or "") in HIDES[2:] for n in _inside(facts, asked) if isinstance(n, ast.Call)
        )
        nodes = [call.argument_node(1, "x"), call.argument_node(2, "y")] if asks else []
    for node in nodes:
        value = None if node is None else facts.value(node)
        if node is None or not _wild(value):
            continue
        at = _birth(facts, node)
        if at is not None:
            born = Born(facts.span(at), _operation(at), _numbers(facts, at), _first(facts.value(at)), False, False)
            yield _Found(Hidden(facts.span(call.node), born, int((~np.isfinite(np.asarray(value))).sum())))


def _inside(facts: ScriptFacts, node: ast.expr) -> Iterator[ast.AST]:
    yield from ast.walk(facts.source.resolve(node))


def _birth(facts: ScriptFacts, node: ast.expr) -> ast.expr | None:
    """The innermost expression on the way to this one that is not finite while all that it is made of is."""
    here = node
    while True:
        here = facts.source.resolve(here)
        if not _wild(facts.value(here)):
            return None
        parts = [p for p in ast.iter_child_nodes(here) if isinstance(p, ast.expr)]
        if isinstance(here, ast.Call):
            parts = [*here.args, *(k.value for k in here.keywords)]
            parts += [here.func.value] if isinstance(here.func, ast.Attribute) else []
        wild = [p for p in parts if _wild(facts.value(p))]
        if not wild:
            return here if isinstance(here, ast.Call | ast.BinOp | ast.UnaryOp) and _computes(facts, here) else None
        here = wild[0]


def _computes(facts: ScriptFacts, node: ast.expr) -> bool:
    """Whether an expression is an operation on numbers: an array that is written down, or read, came in as it is."""
    if not isinstance(node, ast.Call):
        return True
    values = [facts.value(a) for a in node.args]
    return any(isinstance(v, jax.Array | np.ndarray | float | int) and not isinstance(v, bool) for v in values) and (
        (facts.source.dotted(node.func) or "").rpartition(".")[2]
        not in ("array", "asarray", "full", "float", "float32")
    )


def _wild(value: Any) -> bool:
    if isinstance(value, jax.core.Tracer) or not isinstance(value, jax.Array | np.ndarray | float):
        return False
    array = np.asarray(value)
    return array.dtype.kind in "fc" and not bool(np.isfinite(array).all())


def _first(value: Any) -> float:
    array = np.asarray(value).ravel()
    return float(np.real(array[~np.isfinite(array)][0]))


def _operation(node: ast.expr) -> str:
    if isinstance(node, ast.BinOp):
        return {"Div": "div", "Mult": "mul", "Sub": "sub", "Add": "add", "Pow": "pow"}.get(type(node.op).__name__, "op")
    return ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else "neg"


def _numbers(facts: ScriptFacts, node: ast.expr) -> tuple[float, ...]:
    """The operands at the first element that is not finite, where they have the result's shape or none."""
    out = np.asarray(facts.value(node))
    where = tuple(int(i) for i in np.unravel_index(int(np.argmax(~np.isfinite(out))), out.shape))
    parts = [node.left, node.right] if isinstance(node, ast.BinOp) else node.args if isinstance(node, ast.Call) else []
    found = []
    for part in parts:
        value = facts.value(part)
        if isinstance(value, jax.Array | np.ndarray | float | int):
            array = np.asarray(value)
            if array.shape in ((), out.shape):
                found.append(float(array[where] if array.shape else array))
    return tuple(found)


RULE = Rule(
    code="N505",
    name="hides-a-nan",
    title="A value that is not finite is hidden, not mended",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
