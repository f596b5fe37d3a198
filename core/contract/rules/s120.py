"""associative_scan with an operation that is not associative.

**What.** `jax.lax.associative_scan` is given an operation for which (a ∘ b) ∘ c and a ∘ (b ∘ c) are different numbers:
a difference, a quotient, a weighted mean, a step of a recurrence.

**Why.** It combines neighbours in pairs, then pairs of pairs: that is where its speed comes from. The result is that of
a loop from left to right only if the grouping makes no difference.

**Bad**

    jax.lax.associative_scan(lambda a, b: 0.9 * a + 0.1 * b, xs)

**Good**

    jax.lax.scan(lambda a, b: (0.9 * a + 0.1 * b,) * 2, xs[0], xs[1:])

It is proved on the script's own numbers, three neighbours at a time. The recurrence itself can be made associative, by
combining pairs (factor, term): `(a1 * a2, a2 * b1 + b2)`.

Source: `jax.lax.associative_scan`, argument `fn`: "a Python callable implementing an associative binary operation".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.text import fill
from core.base.violation import Severity
from core.contract.regroup import Apart, groupings_apart, off
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import Called, ScriptRecord
from core.contract.source import FUNCTIONS, parameters
from core.contract.subject import MISSING
from core.contract.wording import show

MESSAGE = (
    "The operation of this associative_scan is not associative: of three neighbours (from element {first} on) "
    "(a ∘ b) ∘ c is {left} and a ∘ (b ∘ c) is {right}."
)
FEW = " With {count} elements nothing is regrouped yet: the result is that of a loop."
WHY = (
    "associative_scan combines its elements in any grouping; only for an associative operation is that a loop's result."
)
CLAIM = "This is by how much the result of associative_scan is off what a loop from left to right gives."
TITLE = "Combine from left to right with lax.scan"
NAME = "jax.lax.associative_scan"
#: Up to so many elements each prefix is combined from left to right anyhow.
UNGROUPED = 3


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """One call of associative_scan whose numbers are known."""

    call: Called
    combine: Any
    elements: Any
    reverse: bool
    axis: int

    @property
    def count(self) -> int:
        """How many elements are combined."""
        return int(np.shape(tree_util.tree_leaves(self.elements)[0])[self.axis])


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """A finding for each place where an operation was used whose groupings differ on the script's own numbers."""
    done: set[ast.Call] = set()
    for use in _uses(facts):
        apart = None if use.call.node in done else _apart(use)
        if apart is None:
            continue
        done.add(use.call.node)
        few = use.count <= UNGROUPED
        first = use.count - 1 - apart.first if use.reverse else apart.first
        text = fill(MESSAGE, first=first, left=show(apart.left), right=show(apart.right))
        yield Finding(
            message=text + (fill(FEW, count=use.count) if few else ""),
            place=facts.span(use.call.argument_node(0, "fn") or use.call.node),
            repairs=tuple(_repairs(facts, use)),
            measure=None if few else Measure(CLAIM, _off),
            severity=Severity.NOTE if few else Severity.WARNING,
            silent=True,
        )


def _uses(facts: ScriptFacts) -> Iterator[Use]:
    for call in facts.calls_of(NAME):
        combine, elements = call.argument(0, "fn", MISSING), call.argument(1, "elems", MISSING)
        if call.result is MISSING or not callable(combine):
            continue
        elements = _with_values(facts, call, elements)
        leaves = tree_util.tree_leaves(elements)
        axis, reverse = call.argument(3, "axis", 0), bool(call.argument(2, "reverse", False))
        if not leaves or not all(_known(leaf) for leaf in leaves) or not isinstance(axis, int):
            continue
        yield Use(call, combine, elements, reverse, axis % max(len(leaves[0].shape), 1))


def _known(leaf: Any) -> bool:
    """Whether a leaf is an array with values (of numbers: keys are combined by nobody)."""
    concrete = hasattr(leaf, "shape") and hasattr(leaf, "dtype") and not isinstance(leaf, jax.core.Tracer)
    concrete = concrete and not isinstance(leaf, jax.ShapeDtypeStruct)
    return concrete and bool(leaf.shape) and "key" not in str(leaf.dtype) and not getattr(leaf, "is_deleted", bool)()


def _with_values(facts: ScriptFacts, call: Called, elements: Any) -> Any:
    """In a jitted function, what its caller gave for the parameters that the elements are."""
    node = call.argument_node(1, "elems")
    if not any(isinstance(leaf, jax.core.Tracer) for leaf in tree_util.tree_leaves(elements)) or node is None:
        return elements
    parts = [_handed_in(facts, call, part) for part in (node.elts if isinstance(node, ast.Tuple) else [node])]
    if any(part is MISSING for part in parts):
        return elements
    return tuple(parts) if isinstance(node, ast.Tuple) else parts[0]


def _handed_in(facts: ScriptFacts, call: Called, node: ast.expr) -> Any:
    """The value that the function around a call was given for a parameter, in the call that was being made then."""
    function = facts.source.scope(node)
    node = facts.source.resolve(node)
    if not isinstance(node, ast.Name) or not isinstance(function, FUNCTIONS):
        return MISSING
    names = [a.arg for a in parameters(function)]
    outer = next((c for c in facts.record.calls if c.order > call.order and not c.traced), None)
    if outer is None or node.id not in names or facts.source.function(outer.func) is not function:
        return MISSING
    method = names[:1] == ["self"] and isinstance(outer.node.func, ast.Attribute)
    return outer.argument(names.index(node.id) - method, node.id, MISSING)


def _apart(use: Use) -> Apart | None:
    """What proves it; None also where the operation does not take three slices (or raises in double precision)."""
    try:
        elements = use.elements
        if use.reverse:
            elements = tree_util.tree_map(lambda leaf: np.flip(np.asarray(leaf), use.axis), elements)
        return groupings_apart(use.combine, elements, use.axis)
    except Exception:  # noqa: BLE001  # the learner's own function, called in a way that the script did not
        return None


def _off(record: ScriptRecord) -> float:
    """The largest difference to a loop over all uses with an operation that is not associative; 0 where there is none."""
    uses = [use for use in _uses(ScriptFacts(record)) if _apart(use) is not None]
    return max((off(u.combine, u.elements, u.axis, reverse=u.reverse) for u in uses), default=0.0)


def _repairs(facts: ScriptFacts, use: Use) -> Iterator[Repair]:
    """A plain scan over one array, its first element put in front of what is left."""
    call = use.call
    combine, elements = call.argument_node(0, "fn"), call.argument_node(1, "elems")
    scan, jnp = facts.spelled("jax.lax.scan"), facts.spelled("jax.numpy.concatenate")
    alone = len(tree_util.tree_leaves(use.elements)) == 1 and hasattr(use.elements, "shape")
    if combine is None or elements is None or scan is None or jnp is None or use.axis or use.reverse or not alone:
        return
    xs = facts.source.text_of(elements)
    xs = xs if isinstance(elements, ast.Name | ast.Attribute | ast.Subscript | ast.Call) else f"({xs})"
    fn = facts.source.text_of(combine)
    fn = fn if isinstance(combine, ast.Name | ast.Attribute) else f"({fn})"
    text = f"{jnp}([{xs}[:1], {scan}(lambda carry, x: ({fn}(carry, x),) * 2, {xs}[0], {xs}[1:])[1]])"
    yield facts.rewrite(TITLE, call.node, text)


RULE = Rule(
    code="S120",
    name="operation-not-associative",
    title="associative_scan with an operation that is not associative",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.RUN,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
)
