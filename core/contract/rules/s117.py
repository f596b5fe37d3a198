"""The pair is returned the wrong way round.

**What.** The step returns `(y, carry)`. A scan takes the first of the two for the new carry, whatever its name is.
Where both have the same type nothing raises: what goes on to the next step is y, and the carry is stacked into ys.

**Why.** `lax.scan` wants the new carry first, y second. Loops written by hand, and other libraries, return them the
other way round.

**Bad**

    def step(carry, x):
        carry = carry + x
        y = 2.0 * x
        return y, carry

**Good**

    def step(carry, x):
        carry = carry + x
        y = 2.0 * x
        return carry, y

When types differ, JAX raises, and it is this fault only if the second part has init's types, is computed from the
carry, and the scan runs with the two in the other order. When they agree, a step such as `return x, x - previous` is
right, so a warning needs the step's own names: what it calls its carry, and assigned anew, stands second. Without the
names it is a note, where the first part depends on nothing that was carried.

Source: `jax.lax.scan`, argument `f`: "f returns a pair where the first element represents a new value for the loop
carry and the second represents a slice of the output".
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import tree_util

from core.base.avals import LeafType
from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity, TextEdit
from core.contract import repairs, trees
from core.contract.facts import ScanFacts
from core.contract.pair_order import Parts, Swap, parts, swapped, wrong_way_round
from core.contract.precision import is_float
from core.contract.rule import Finding, Jax, Measure, Repair, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import ScanSite, ScriptRecord
from core.contract.source import Function, parameters
from core.contract.subject import ScanCall
from core.contract.trace import Raised, StepTrace
from core.runners.scan import run_call

RAISED = (
    "The step returns its pair the wrong way round: the first part ({first}) is taken for the new carry, and the second "
    "({second}) is the one that has init's types and is computed from the carry."
)
NAMED = (
    "The step returns {first}, {second}: a scan takes the first for the new carry, so {first} goes on to the next step, "
    "and {second}, which the step computed from its carry, only into ys."
)
NAMED_MAYBE = (
    "The step returns {first}, {second}: what goes on to the next step is {first}, not {second}. That is right if the "
    "carry is to be {first}; else the pair is the wrong way round."
)
UNNAMED = (
    "What the step returns first does not depend on the carry, and what it returns second does: no step sees more than "
    "the one before it. If the second is meant as the new carry, the pair is the wrong way round."
)
WHY = "A scan takes the first of the two for the new carry and stacks the second into ys; it does not look at their names."
BECAUSE = "init set {expected} here"
#: Parts of names that say only which of two states is meant.
WHICH = frozenset({"new", "next", "nxt", "updated", "prev", "previous", "old", "last", "t", "tm1", "tp1"})
TITLE = "Return the new carry first, y second"
CLAIM = "Init was moved by 1; this is by how much the final carry moved (expected: with the pair in the other order)."


def check(facts: ScanFacts | ScriptFacts) -> Iterator[Finding]:
    """Of a scan, the pair that raises; of a script, the one that does not."""
    if isinstance(facts, ScanFacts):
        yield from _raised(facts)
    else:
        for site in facts.scans:
            yield from _silent(facts, site)


# --- JAX raises -----------------------------------------------------------------------------------------------------


def _raised(facts: ScanFacts) -> Iterator[Finding]:
    trace = facts.trace
    if not isinstance(trace, StepTrace) or trace.pair is None or facts.jax is None:
        return
    if not wrong_way_round(trace) or ScanFacts(swapped(facts.call)).jax is not None:
        return
    first, second = trace.pair
    expected = trees.describe(facts.call.init)
    yield Finding(
        message=fill(RAISED, first=trees.describe(first), second=trees.describe(second)),
        place=facts.places.find("return", "step", "scan"),
        because=Because(facts.places.find("init:carry", "init"), fill(BECAUSE, expected=expected)),
        expected=facts.carry_in,
        got=_leaves(facts, first),
        repairs=(
            *repairs.right_step(facts.call),
            repairs.mend_step("step_swap", TITLE, Swap()),
        ),
    )


def _leaves(facts: ScanFacts, first: Any) -> tuple[LeafType, ...]:
    """What came out for the carry: leaf by leaf, or the node as a whole where it has another structure."""
    types = facts.trace.carry_types() if isinstance(facts.trace, StepTrace) else ()
    same = [t.path for t in types] == [t.path for t in facts.carry_in]
    return types if same else (trees.shown(first, "carry"),)


# --- JAX is silent --------------------------------------------------------------------------------------------------


def _silent(facts: ScriptFacts, site: ScanSite) -> Iterator[Finding]:
    step, trace = site.step, site.facts.trace
    if step is None or site.error is not None or isinstance(trace, Raised) or trace.pair is None:
        return
    made = parts(trace)
    if made is None or not _exchangeable(trace, made):
        return
    for value in facts.source.all_returned(step):
        pair = facts.source.resolve(value)
        if not isinstance(pair, ast.Tuple) or len(pair.elts) != 2:
            continue
        named, surely = _named_so(facts, step, pair), not made.first_on_carry
        if not named and (not surely or made.first_is_x):
            continue
        first, second = (facts.source.text_of(part) for part in pair.elts)
        message = (NAMED if surely else NAMED_MAYBE) if named else UNNAMED
        yield Finding(
            message=fill(message, first=first, second=second),
            place=facts.span(value),
            repairs=(_swap(facts, pair),),
            measure=_measure(site) if named and surely else None,
            severity=Severity.WARNING if named and surely else Severity.NOTE,
            silent=True,
            path="carry",
        )
        return


def _exchangeable(trace: StepTrace, made: Parts) -> bool:
    """Whether both parts have the carry's types, and the second is made of the carry and is not made of the first."""
    pair = trace.pair
    if pair is None or not tree_util.tree_leaves(pair[0]):
        return False
    if not trees.same_leaves(trace.carry_in, pair[0]) or not trees.same_leaves(pair[0], pair[1]):
        return False
    return made.second_on_carry and made.second_changes and not made.second_on_first


def _named_so(facts: ScriptFacts, step: Function, pair: ast.Tuple) -> bool:
    """Whether the second part goes by the names of the carry, assigned anew in the step, and the first does not.

    ``new_state``, ``h_next`` and ``h1`` are names of a carry that is called ``state`` and ``h``.
    """
    one, two = (_names(part) for part in pair.elts)
    carried, anew = _carry_names(facts, step)
    return bool(two and two <= carried and two & anew) and not one & anew and not (one and one <= carried)


def _names(node: ast.expr) -> frozenset[str]:
    """The names that a returned part is a literal of; empty when there is anything else in it."""
    if isinstance(node, ast.Name):
        return frozenset({node.id})
    if isinstance(node, ast.Tuple | ast.List | ast.Dict):
        parts = [_names(part) for part in (node.values if isinstance(node, ast.Dict) else node.elts)]
        return frozenset[str]().union(*parts) if all(parts) else frozenset()
    return frozenset()


def _carry_names(facts: ScriptFacts, step: Function) -> tuple[frozenset[str], frozenset[str]]:
    """Names that stand for the carry and its parts in a step, and those of them that are assigned anew."""
    source = facts.source
    given = [a.arg for a in parameters(step) if a.arg != "self"]
    if not given or isinstance(step, ast.Lambda):
        return frozenset(), frozenset()
    carried = {given[0]}
    unpacking: list[ast.AST] = []
    for node in source.within(step):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == given[0]:
            for target in node.targets:
                carried |= {n.id for n in ast.walk(target) if isinstance(n, ast.Name)}
                unpacking.append(target)
    inside = {n for target in unpacking for n in ast.walk(target)}
    stored = {
        node.id
        for node in source.within(step)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node not in inside
    }
    stems = {_stem(name) for name in carried} - {""}
    carried |= {name for name in stored if _stem(name) in stems}
    return frozenset(carried), frozenset(carried & stored)


def _stem(name: str) -> str:
    """A name without what says which of two states it is: ``h`` of ``new_h``, ``h_next``, ``prev_h``, ``h_t``, ``h1``."""
    parts = [part for part in name.lower().rstrip("0123456789").split("_") if part]
    return "_".join(part for part in parts if part not in WHICH)


def _swap(facts: ScriptFacts, pair: ast.Tuple) -> Repair:
    """The two elements exchanged, each in the other's place."""
    one, two = pair.elts
    texts = [facts.source.text_of(node) for node in (one, two)]
    edits = (TextEdit(facts.span(one), texts[1]), TextEdit(facts.span(two), texts[0]))
    return facts.rewrites(TITLE, *edits, path="carry")


# --- proof ----------------------------------------------------------------------------------------------------------


def _measure(site: ScanSite) -> Measure | None:
    """How far init reaches: with the parts in the other order it reaches the end, as they stand it does not."""
    if site.traced or not all(_moves(leaf) for leaf in tree_util.tree_leaves(site.call.init)):
        return None
    try:
        expected = _reach(swapped(site.call))
    except Exception:  # noqa: BLE001  # the other order may not run on these numbers: then there is no proof to show
        return None
    index = site.index

    def of(record: ScriptRecord) -> float:
        return _reach(record.scans[index].call)

    return Measure(CLAIM, of, expected)


def _moves(leaf: Any) -> bool:
    aval = jax.typeof(leaf)
    return hasattr(aval, "dtype") and is_float(str(aval.dtype))


def _reach(call: ScanCall) -> float:
    """By how much the final carry moves when every leaf of init moves by 1."""
    moved = tree_util.tree_map(lambda leaf: jnp.asarray(leaf) + 1, call.init)
    here = run_call(call)
    there = run_call(ScanCall(call.step, moved, call.xs, call.length, call.reverse, call.unroll, call.params))
    ends = zip(here.carries, there.carries, strict=True)
    apart = [np.abs(a.values[-1].astype(np.float64) - b.values[-1].astype(np.float64)).max() for a, b in ends]
    return float(max(apart))


RULE = Rule(
    code="S117",
    name="pair-wrong-way-round",
    title="The pair is returned the wrong way round",
    severity=Severity.ERROR,
    jax=Jax.BOTH,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"scan", "script"}),
    beats=frozenset({"S102", "S103", "S104", "S105"}),
)
