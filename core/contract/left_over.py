"""Carries that one sequence left behind and that another one begins with (L317).

The next chunk of the same sequence begins with that carry on purpose. What is another sequence: data that come out of
another expression of the script, and are neither a piece of the first nor made from what the layer put out. Whatever
the text does not tell apart (items of one list, rounds of one loop) is taken for chunks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import lax, tree_util

from core.base.avals import aval_of
from core.contract.cell_proof import host, nudged
from core.contract.fates import concrete, function_of, given_as
from core.contract.layer_calls import again, facts_of_script, traced
from core.contract.masks import Run, runs
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite
from core.contract.steps import steps_of
from core.contract.taken import target_of

#: Parts of names that say that the second goes on where the first ended.
GOES_ON = frozenset(
    {"chunk", "chunks", "part", "parts", "segment", "segments", "block", "blocks", "window", "windows", "piece", "pieces",
     "half", "next", "rest", "tail", "suffix", "continuation", "warm", "warmup", "burn", "burnin", "prefix", "prompt",
     "context", "history", "past", "prefill", "seed", "primer", "stream", "online", "tick", "frame", "frames", "packet",
     "buffer", "new", "more", "future", "horizon", "prev", "previous", "head", "start", "end", "left", "right", "early",
     "late", "before", "after", "up", "answer", "answers", "response", "reply", "completion", "dec", "decoder", "tgt", "shifted",
     "observed", "imagined", "actions"}
)  # fmt: skip
#: Calls and methods that give pieces of an array, or the array in another form.
PIECES = frozenset(
    f"jax.numpy.{n}" for n in ("split", "array_split", "swapaxes", "moveaxis", "transpose", "reshape", "asarray", "array",
                               "take", "expand_dims", "squeeze", "pad")
) | frozenset(
    f"jax.lax.{n}" for n in ("dynamic_slice", "dynamic_slice_in_dim", "slice_in_dim", "dynamic_index_in_dim")
)  # fmt: skip
METHODS = frozenset({"swapaxes", "transpose", "reshape", "astype", "squeeze", "take", "copy"})
HOPS = 40


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """One run over a sequence: of a layer, or a scan over a cell.

    Attributes:
        node: the call.
        owner: the cell that runs.
        data: the expression of the sequence.
        given: leaves of the carry that it begins with, and the expression.
        left: leaves of the carry that it ends with.
        source: the call of the layer, or the scan.
    """

    node: ast.Call
    owner: Any
    data: ast.expr
    given: tuple[Any, ...]
    given_node: ast.expr | None
    left: tuple[Any, ...]
    source: Run | ScanSite
    order: int


@dataclass(frozen=True, slots=True, eq=False)
class LeftOver:
    """A run that begins with what a run over another sequence left."""

    first: Passed
    second: Passed


def left_over(facts: ScriptFacts) -> tuple[LeftOver, ...]:
    """All of a script, each second call once."""
    return facts.once(_all)


def _all(facts: ScriptFacts) -> tuple[LeftOver, ...]:
    return tuple(_each(facts))


def _each(facts: ScriptFacts) -> Iterator[LeftOver]:
    passes, said = sorted(_passes(facts), key=lambda p: p.order), set[ast.AST]()
    for i, second in enumerate(passes):
        if not second.given or second.node in said:
            continue
        first = next((p for p in reversed(passes[:i]) if _leads(p, second)), None)
        if first is not None and not _blank(facts.value(second.data)) and _other_sequence(facts, first, second):
            said.add(second.node)
            yield LeftOver(first, second)


def _blank(value: Any) -> bool:
    """Whether data are nothing but zeros: the cell runs on by itself."""
    leaves = tree_util.tree_leaves(value)
    return bool(leaves) and all(concrete(leaf) and not np.asarray(leaf).any() for leaf in leaves)


def _leads(first: Passed, second: Passed) -> bool:
    """Whether the very carry that the first run left is what the second begins with, in the same cell."""
    if first.owner is not second.owner or len(first.left) != len(second.given) or not first.left:
        return False
    return all(any(g is leaf for leaf in first.left) for g in second.given)


def _passes(facts: ScriptFacts) -> Iterator[Passed]:
    for run in runs(facts):
        if run.call.error is not None or not hasattr(run.call.func, "cell"):
            continue
        carry = run.call.kwargs.get("initial_carry")
        node = next((k.value for k in run.call.node.keywords if k.arg == "initial_carry"), None)
        given = tuple(tree_util.tree_leaves(carry)) if carry is not None else ()
        result = run.call.result
        left = tree_util.tree_leaves(result[0]) if run.returns and isinstance(result, tuple) else []
        yield Passed(run.call.node, run.call.func.cell, run.inputs, given, node, tuple(left), run, run.call.order)
    done: set[int] = set()
    for site, use in steps_of(facts):
        if (
            site is None
            or site.index in done
            or site.result is None
            or site.node is None
            or use.event.error is not None
        ):
            continue
        xs = site.arguments.get("xs")
        whole = use.slot and len(use.parts) == len(site.facts.init_types)
        if xs is None or not whole or site.parent is not None:
            continue
        done.add(site.index)
        ends = tuple(tree_util.tree_leaves(site.result[0]))
        begins = tuple(tree_util.tree_leaves(site.call.init))
        init = site.arguments.get("init")
        yield Passed(site.node, use.event.cell, xs, begins, init, ends, site, site.order)


# --- another sequence -----------------------------------------------------------------------------------------------


def _other_sequence(facts: ScriptFacts, first: Passed, second: Passed) -> bool:
    """Whether the data of two runs are two sequences, as far as the text says."""
    one, two = _root(facts, first.data), _root(facts, second.data)
    if one is None or two is None or one == two or first.node is second.node:
        return False
    if _goes_on(first.data, one.name) or _goes_on(second.data, two.name):
        return False
    if facts.source.scope(first.node) is not facts.source.scope(second.node):
        return False
    if _reads(facts, two.made, first) or _reads(facts, one.made, second):
        return False
    stop = (first.node, second.node)
    return not (_shares(facts, one.made, two, stop) or _shares(facts, two.made, one, stop))


@dataclass(frozen=True, slots=True)
class _Root:
    """Where data come from: the name that they were first bound to, and the expression that made them."""

    name: str
    made: ast.expr


def _root(facts: ScriptFacts, node: ast.expr) -> _Root | None:
    """The array that data are a piece or another form of; None where the text does not say."""
    name = ""
    for _ in range(HOPS):
        if isinstance(node, ast.Name):
            name = node.id
            bound = target_of(facts, node)
            if bound is None:
                given = [argument for _, argument in given_as(facts, node)]
                if len({*given}) != 1:
                    return None
                node = given[0]
                continue
            if _in_loop_target(facts, node):
                return None
            if isinstance(facts.source.parents.get(bound[0]), ast.Tuple | ast.List) and not isinstance(
                bound[1], ast.Tuple | ast.List
            ):
                return _Root(name, bound[1])  # one of several that one call gave: pieces of one thing
            part = _element(facts, bound[0], bound[1])
            node = part
        elif isinstance(node, ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Tuple | ast.List) and node.elts:
            node = node.elts[-1]
        elif isinstance(node, ast.Call) and (inner := _piece_of(facts, node)) is not None:
            node = inner
        elif isinstance(node, ast.Call | ast.BinOp):
            return _Root(name, node)
        else:
            return None
    return None


def _element(facts: ScriptFacts, target: ast.Name, value: ast.expr) -> ast.expr:
    around = facts.source.parents.get(target)
    if isinstance(around, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List):
        return value.elts[around.elts.index(target)] if len(value.elts) == len(around.elts) else value
    return value


def _in_loop_target(facts: ScriptFacts, name: ast.Name) -> bool:
    """Whether a name is what a loop around it goes over."""
    loops = (n for n in facts.nodes(ast.For) if any(c is name for c in ast.walk(n)))
    return any(isinstance(t, ast.Name) and t.id == name.id for loop in loops for t in ast.walk(loop.target))


def _piece_of(facts: ScriptFacts, call: ast.Call) -> ast.expr | None:
    """The array that a call gives pieces of, or another form."""
    name = next((c.name for c in facts.calls_at(call) if c.name), None) or facts.source.dotted(call.func)
    if name in PIECES and call.args and aval_of(facts.value(call.args[0])) is not None:
        return call.args[0]
    if isinstance(call.func, ast.Attribute) and call.func.attr in METHODS and name not in PIECES:
        return call.func.value
    return None


def _goes_on(data: ast.expr, name: str) -> bool:
    names = [name, *(n.id for n in ast.walk(data) if isinstance(n, ast.Name))]
    return any(p.lower() in GOES_ON for n in names for p in re.split(r"[_\d]+", n))


def _reads(facts: ScriptFacts, made: ast.expr, run: Passed) -> bool:
    """Whether an expression was made from what a run put out."""
    return any(node is run.node for node in _behind(facts, made))


def _shares(facts: ScriptFacts, made: ast.expr, other: _Root, stop: tuple[ast.AST, ...]) -> bool:
    """Whether an expression was made from the other data: the same sequence in another form."""
    return any(node is other.made for node in _behind(facts, made) if node not in stop)


def _behind(facts: ScriptFacts, node: ast.expr) -> Iterator[ast.AST]:
    todo, seen = [node], set[ast.AST]()
    while todo and len(seen) < HOPS * 5:
        here = todo.pop(0)
        for part in ast.walk(here):
            if part in seen:
                continue
            seen.add(part)
            yield part
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                bound = target_of(facts, part)
                if bound is not None:
                    todo.append(bound[1])
            elif isinstance(part, ast.Call):
                function = next((f for c in facts.calls_at(part) if (f := function_of(facts, c.func))), None)
                if function is not None:
                    todo += facts.source.all_returned(function)


# --- the number -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Remembers:
    """How far the outputs over the second sequence move when the first is changed."""

    number: int

    def __call__(self, record: Any) -> float:
        """The number, in this run; 0 where the second does not begin with what the first left.

        Raises:
            ValueError: the values are traced.
        """
        facts = facts_of_script(record)
        found = [one for one in left_over(facts) if number_of(facts, one) == self.number]
        if not found:
            return 0.0
        first, second = found[0].first.source, found[0].second.source
        end = _ran(first, change=True)
        before, after = _ran(second), _ran(second, carry=_like(_given(second), end, found[0]))
        pairs = zip(tree_util.tree_leaves(before), tree_util.tree_leaves(after), strict=True)
        return max(float(np.abs(host(a) - host(b)).max(initial=0.0)) for a, b in pairs)


def number_of(facts: ScriptFacts, one: LeftOver) -> int:
    """Which of the calls of the script it is, in the order of their first runs."""
    nodes = list(dict.fromkeys(p.node for p in sorted(_passes(facts), key=lambda p: p.order)))
    return nodes.index(one.second.node)


def _given(source: Run | ScanSite) -> Any:
    return source.call.init if isinstance(source, ScanSite) else source.call.kwargs.get("initial_carry")


def _like(carry: Any, ended: Any, one: LeftOver) -> Any:
    """The carry that the second run begins with, each leaf as the changed first run leaves it."""
    leaves, tree = tree_util.tree_flatten(carry)
    ends = tree_util.tree_leaves(ended)
    by = {id(leaf): end for leaf, end in zip(one.first.left, ends, strict=True)}
    return tree_util.tree_unflatten(tree, [by[id(leaf)] for leaf in leaves])


def _ran(source: Run | ScanSite, *, change: bool = False, carry: Any = None) -> Any:
    """The run once more: its final carry when its data are changed, else its final carry from another initial one."""
    if isinstance(source, ScanSite):
        call = source.call
        if source.traced or traced(call.init, call.xs):
            raise ValueError("the values are traced")
        xs = tree_util.tree_map(_changed, call.xs) if change else call.xs
        init = call.init if carry is None else carry
        return lax.scan(call.body, init, xs, length=call.length, reverse=bool(call.reverse))[0]
    inputs = source.call.argument(0, "inputs")
    options = {} if carry is None else {"initial_carry": carry}
    return again(source.call, _changed(inputs) if change else None, **options)[0]


def _changed(leaf: Any) -> Any:
    if isinstance(leaf, jax.core.Tracer) or not jax.numpy.issubdtype(jax.numpy.asarray(leaf).dtype, jax.numpy.inexact):
        return leaf
    return nudged(leaf, lambda a: a)
