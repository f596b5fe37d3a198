"""One key is used at every step.

**What.** A step draws random numbers from a key that does not change: one that it closes over, one that is made anew of
the same seed, one that the carry hands on without splitting it, or xs with the same key in every row. All steps get the
same noise. The same in the body of a `fori_loop` or `while_loop`.

**Why.** A key is a value, not a generator: the same key always gives the same numbers, and a step is traced once.

**Bad**

    key = jax.random.key(0)
    def step(position, _):
        position = position + jax.random.normal(key)
        return position, position
    jax.lax.scan(step, 0.0, None, length=4)             # a straight line, not a random walk

**Good**

    def step(position, key):
        position = position + jax.random.normal(key)
        return position, position
    jax.lax.scan(step, 0.0, jax.random.split(jax.random.key(0), 4))

A key in the carry that is split at each step, and `fold_in(key, t)` with a t that changes, are right too. A network
that is built in the step is another matter (L313).

Source: JAX documentation, "Pseudorandom numbers"; jax.random.split, jax.random.fold_in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from jax import tree_util

from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract.keys import drawn, number_for
from core.contract.keys_edit import key_argument
from core.contract.keys_repair import repairs_of
from core.contract.keys_same import Body, Same, same_keys
from core.contract.origin import record_of
from core.contract.p_effects import Effect, path_of
from core.contract.p_uses import Use, leaks
from core.contract.rule import Finding, Jax, Measure, Rule, Stage
from core.contract.script_facts import ScriptFacts
from core.contract.script_record import LoopSite, ScanSite
from core.contract.subject import Subject
from core.contract.trace import StepTrace

OUTSIDE = "{call} uses {key} from outside the step: it is the same key {steps}, so each draws the same numbers."
MADE = "{call} uses {key}, made anew of the same seed: it is the same key {steps}, so each draws the same numbers."
CARRIED = (
    "{call} uses {key}, and the step hands on that key as it came: it is the same {steps}, and so are the numbers."
)
GIVEN = "{call} uses {key}, and xs holds one key again and again: it is the same {steps}, and so are the numbers."
ALL_STEPS = "in all {count} steps"
EVERY_STEP = "at every step"
LEAKED = " The step also rebinds {path}, which is a value of a finished trace from then on."
BECAUSE = "the step is run from here"
CLAIM = (
    "The random bits that the first two steps draw here were compared, number by number: this part of them is the same."
)
WHY = (
    "A key is a value, not a generator: the same key always gives the same numbers. Each step needs a key of its own: "
    "from split, or from fold_in with a number that changes."
)


def check(facts: ScriptFacts) -> Iterator[Finding]:
    """One finding for each such key, where it is used first."""
    said: set[tuple[Body, str]] = set()
    for same in facts.once(same_keys):
        node = facts.source.expression(same.used)
        if not isinstance(node, ast.Call) or not _of_jax(facts, node):
            continue
        key = key_argument(node)
        name = "" if key is None else ast.unparse(key)
        if (same.body, name) not in said:
            said.add((same.body, name))
            yield _finding(facts, same, node)


def _finding(facts: ScriptFacts, same: Same, node: ast.Call) -> Finding:
    body = same.body
    key = key_argument(node)
    text = facts.source.text_of(key) if key is not None else "key"
    steps = fill(EVERY_STEP) if body.count is None else fill(ALL_STEPS, count=body.count)
    message = fill(_template(same, key), call=facts.source.text_of(node.func), key=text, steps=steps)
    leaked = _leaked(facts, same, text)
    raised = leaked is not None and leaked[1] is not None and leaked[1].raises
    if leaked is not None:
        message += fill(LEAKED, path=text)
    call = body.site.node
    return Finding(
        message=message,
        place=same.used,
        because=None if call is None else Because(facts.span(call), BECAUSE),
        repairs=tuple(repairs_of(facts, same, key)),
        measure=None if raised else Measure(CLAIM, _equal_part(body.site, same.draws)),
        severity=Severity.ERROR if raised else Severity.WARNING,
        silent=not raised,
        path=text,
    )


def _template(same: Same, key: ast.expr | None) -> str:
    deps = same.deps
    if deps & same.body.rows:
        return GIVEN
    if deps:
        return CARRIED
    return MADE if isinstance(key, ast.Call) else OUTSIDE


# --- which of them -------------------------------------------------------------------------------------------------


def _of_jax(facts: ScriptFacts, node: ast.Call) -> bool:
    """Whether this call draws for its own sake: the weights of a network are drawn for that network's (L313)."""
    names = {call.name for call in facts.calls_at(node)} | {facts.source.dotted(node.func)}
    return any(name is not None and name.startswith("jax.random.") for name in names)


def _leaked(facts: ScriptFacts, same: Same, key: str) -> tuple[Effect, Use | None] | None:
    """Where the same function stores a traced value under this key's own name, and what uses that later."""
    function = same.body.function
    for effect, use in facts.once(leaks):
        if effect.function is function and path_of(facts, effect) == key:
            return effect, use
    return None


# --- the proof ------------------------------------------------------------------------------------------------------


def _equal_part(site: ScanSite | LoopSite, draws: tuple[int, ...]) -> Callable[[Subject], float]:
    """Of the same scan (or loop) of another run of the script: how much of these draws is alike in two steps."""
    scan = isinstance(site, ScanSite)
    index = site.index if isinstance(site, ScanSite) else 0
    order = site.order

    def of(subject: Subject) -> float:
        record = record_of(subject)
        found: ScanSite | LoopSite
        found = record.scans[index] if scan else min(record.loops, key=lambda other: abs(other.order - order))
        one, two = _two_steps(found)
        parts = [float(np.mean(one[i] == two[i])) for i in draws if i < len(one) and one[i].size]
        return max(parts) if parts else 0.0

    return of


def _two_steps(site: ScanSite | LoopSite) -> tuple[list[Any], list[Any]]:
    """The bits that two steps, one after the other, draw. Traced inputs are replaced by zeros of their types."""
    if isinstance(site, LoopSite):
        values = [number_for(v) for v in tree_util.tree_leaves(site.inputs)]
        counts = len(site.inputs) == 2
        one, out = drawn(site.jaxpr, values)
        two, _ = drawn(site.jaxpr, [*([values[0] + 1] if counts else []), *out])
        return one, two
    trace = site.facts.trace
    if not isinstance(trace, StepTrace):
        raise TypeError(type(trace))
    init, xs = tree_util.tree_leaves(site.call.init), tree_util.tree_leaves(site.call.xs)
    types = [v.aval.dtype for v in trace.jaxpr.jaxpr.invars]
    start = [_cast(number_for(v), t) for v, t in zip(init, types, strict=False)]
    order = (-1, -2) if site.call.reverse else (0, 1)
    one, out = drawn(trace.jaxpr, [*start, *(number_for(x)[order[0]] for x in xs)])
    two, _ = drawn(trace.jaxpr, [*out[: len(start)], *(number_for(x)[order[1]] for x in xs)])
    return one, two


def _cast(value: Any, dtype: Any) -> Any:
    return value if value.dtype == dtype else value.astype(dtype)


RULE = Rule(
    code="R401",
    name="same-key-every-step",
    title="One key is used at every step",
    severity=Severity.WARNING,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
    on=frozenset({"script"}),
    beats=frozenset({"P203", "P204", "R402"}),
)
