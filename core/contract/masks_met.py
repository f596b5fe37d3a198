"""Masks with one entry for each example that meet an array of examples by units along its last axis (L312).

Found in the calls and products that a script made: a vector of n entries, another operand of two axes. That the vector
is one of examples, and not of units, must be shown by where it comes from: it is followed through what keeps its entries
(comparisons, casts, slices, a scan's xs) to lengths, to a padding mask, or to a name that can mean nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.avals import Aval
from core.contract.cell_proof import NOISE, host
from core.contract.example_masks import Trail, shape_of, type_of
from core.contract.layer_calls import LONG, Kept, facts_of_script, measured, shape
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite
from core.contract.source import FUNCTIONS
from core.contract.trace import StepTrace

WHERE, PRODUCTS = "jax.numpy.where", frozenset({"jax.numpy.multiply"})
#: How many examples' masks are changed, at most, until another example moves.
TRIED = 8


@dataclass(frozen=True, slots=True, eq=False)
class Met:
    """One place where a mask of examples meets units.

    Attributes:
        node: the call or the product.
        mask, other: its operands.
        count: how many examples the mask has entries for.
        type: of the other operand.
        raised: whether the script ended there.
        source: the lengths that it was made from, where those are known.
        leaf: with the scan, which leaf of its xs the mask is, or is read from.
    """

    node: ast.expr
    mask: ast.expr
    other: ast.expr
    count: int
    type: Aval
    raised: bool
    source: Any = None
    leaf: tuple[ScanSite, int] | None = None


def column(facts: ScriptFacts, mask: ast.expr) -> str:
    """A mask as a column."""
    text = facts.source.text_of(mask)
    plain = isinstance(mask, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return f"{text}[:, None]" if plain else f"({text})[:, None]"


def beside(facts: ScriptFacts, one: Met) -> Iterator[ast.expr]:
    """Of a product that raised, the other factors of its statement made of the same mask: they would raise next."""
    statement = facts.source.statement(one.node)
    if not one.raised or statement is None or not isinstance(one.mask, ast.Name):
        return
    for node in ast.walk(statement):
        if (
            isinstance(node, ast.BinOp)
            and isinstance(node.op, ast.Mult)
            and not facts.seen(node)
            and node is not one.node
        ):
            sides = [side for side in (node.left, node.right) if one.mask.id in _ids(side)]
            if len(sides) == 1 and len(_ids(sides[0])) == 1:
                yield sides[0]


def _ids(node: ast.expr) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def met(facts: ScriptFacts) -> tuple[Met, ...]:
    """All of a script, each expression once."""
    return facts.once(_met)


def _met(facts: ScriptFacts) -> tuple[Met, ...]:
    return tuple(_each(facts))


def _each(facts: ScriptFacts) -> Iterator[Met]:
    said: set[ast.AST] = set()
    failed = facts.failure.node if facts.failure is not None else None
    for node, mask, other in _meetings(facts):
        if node in said:
            continue
        raised = node is failed
        one, two = type_of(facts, mask), type_of(facts, other)
        if one is None or two is None or len(one.shape) != 1 or len(two.shape) != 2 or one.shape[0] < 2:
            continue
        count, fits = one.shape[0], two.shape
        if fits[0] != count or (fits[1] == count) is raised or fits[1] == 1:
            continue
        if np.dtype(two.dtype).kind not in "f" and two.dtype != "bfloat16":
            continue
        traced = Trail(facts, count)
        if traced.is_of_examples(mask, node, raised=raised):
            said.add(node)
            yield Met(node, mask, other, count, two, raised, traced.lengths, traced.leaf)


def _meetings(facts: ScriptFacts) -> Iterator[tuple[ast.expr, ast.expr, ast.expr]]:
    """``where(mask, a, b)`` and ``mask * a``: the expression, the mask, another operand."""
    for call in facts.record.calls:
        if call.name == WHERE and len(call.node.args) == 3:
            mask, *rest = call.node.args
            for other in rest:
                if not isinstance(other, ast.Starred) and len(shape_of(facts, other)) == 2:
                    yield call.node, mask, other
                    break
        elif call.name in PRODUCTS and len(call.node.args) == 2:
            one, two = call.node.args
            yield call.node, one, two
            yield call.node, two, one
    for node in facts.nodes(ast.BinOp):
        if isinstance(node.op, ast.Mult):
            yield node, node.left, node.right
            yield node, node.right, node.left


# --- the number -----------------------------------------------------------------------------------------------------


def place_number(facts: ScriptFacts, one: Met) -> int:
    """Which function of the script it is in, in their order: lines move when a script is edited."""
    scope = facts.source.scope(one.node)
    functions = [f for f in facts.source.functions if not isinstance(f, ast.Lambda) or f is scope]
    return functions.index(scope) if isinstance(scope, FUNCTIONS) and scope in functions else -1


@dataclass(frozen=True, slots=True)
class Leak:
    """How far other examples move when the mask of one is changed; the units it decides where that cannot be run."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run."""
        facts = facts_of_script(record)
        count = next((one.count for one in _numbered(facts, self.number)), 0)
        return measured(Kept(Changed(self.number)), facts) or float(count * (count - 1))

    def moves(self, facts: ScriptFacts) -> bool:
        """Whether the number is one that moves, and not a count."""
        return measured(Kept(Changed(self.number)), facts) > 0


@dataclass(frozen=True, slots=True)
class Changed:
    """How far other examples move when the mask of one is changed, in the scan whose step it is in."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run.

        Raises:
            ValueError: it is in no step, or the values are traced.
        """
        facts = facts_of_script(record)
        return next((_scanned(facts, one) for one in _numbered(facts, self.number)), 0.0)


def _numbered(facts: ScriptFacts, number: int) -> list[Met]:
    return [one for one in met(facts) if place_number(facts, one) == number and not one.raised]


def _scanned(facts: ScriptFacts, one: Met) -> float:
    """How far rows of other examples move, over the scan whose step it is in, when one example's mask is changed.

    Raises:
        ValueError: it is in no step, or the values are traced.
    """
    scans = {s.scan for s in facts.seen(one.node)}
    site = next((s for s in facts.scans if s.index in scans), None)
    if site is None or site.traced or not isinstance(site.facts.trace, StepTrace):
        raise ValueError("it is in no scan that can be run again")
    program = site.facts.trace.jaxpr
    leaves = tree_util.tree_leaves(site.call.init)
    steps = tree_util.tree_leaves(site.call.xs)
    init = [jnp.asarray(leaf) for leaf in leaves]

    @jax.jit  # compiled once for all examples
    def ran(consts: list[Any], xs: list[Any]) -> list[Any]:
        def body(carry: Any, x: Any) -> Any:
            out = jax.core.eval_jaxpr(program.jaxpr, consts, *carry, *x)
            return [jnp.asarray(o, c.dtype) for o, c in zip(out, carry, strict=False)], None

        return lax.scan(body, init, xs, length=site.facts.length, reverse=bool(site.call.reverse))[0]

    if (site.facts.length or 0) > LONG:
        raise ValueError("it is too long to be run again")
    best, plain = 0.0, ran(list(program.consts), steps)
    for example in range(min(one.count, TRIED)):
        if best > NOISE:
            break
        consts, xs = list(program.consts), list(steps)
        if one.leaf is not None and one.leaf[0] is site and np.shape(steps[one.leaf[1]])[1:] == (one.count,):
            leaf = jnp.asarray(steps[one.leaf[1]])
            flipped = ~leaf[:, example] if leaf.dtype == bool else 1 - leaf[:, example]
            xs[one.leaf[1]] = leaf.at[:, example].set(flipped)
        elif one.source is not None:
            at = [i for i, c in enumerate(consts) if shape(c) == (one.count,) and np.array_equal(c, one.source)]
            if not at:
                raise ValueError("the lengths are not read in the step")
            now = jnp.asarray(consts[at[0]])
            consts[at[0]] = now.at[example].set(jnp.where(now[example] > 0, 0, site.facts.length or 1))
        else:
            raise ValueError("there is nothing to change")
        for before, after in zip(plain, ran(consts, xs), strict=True):
            if np.ndim(before) == 2 and len(before) == one.count:
                others = np.arange(one.count) != example
                best = max(best, float(np.abs(host(before)[others] - host(after)[others]).max(initial=0.0)))
    return best
