"""A leaf of the carry is never read.

**What.** The step returns a leaf of the new carry without having looked at what came in for it: each step overwrites
the one before. After the scan only that of the last step is left.

**Why.** The carry is for what one step hands to the next. A value of each step (a reward, a penalty, an error) belongs
into y, where all T of them are kept; a total has to be added to what came in.

**Bad** (if a penalty at any step is to count)

    def step(state, a):
        state = {"pos": state["pos"] + a, "penalty": jnp.where(a > 1.0, 1.0, 0.0)}
        return state, state["pos"]

    final, ys = jax.lax.scan(step, {"pos": 0.0, "penalty": 0.0}, actions)
    penalty = final["penalty"]                # of the last action alone

**Good**

    def step(state, a):
        state = {"pos": state["pos"] + a, "penalty": state["penalty"] + jnp.where(a > 1.0, 1.0, 0.0)}
        return state, state["pos"]

Always a note: keeping the last value only may be what is wanted.

Source: `jax.lax.scan`; the loop in its documentation: `carry, y = f(carry, x)`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax import tree_util

from core.base.avals import LeafType, aval_of
from core.base.places import Because
from core.base.text import fill
from core.base.violation import Severity
from core.contract import repairs, trees
from core.contract.carry import carry_pairs, named, return_place
from core.contract.facts import ScanFacts
from core.contract.mend import OnCarry
from core.contract.precision import is_float, is_int
from core.contract.program import reads
from core.contract.rule import Finding, Jax, Repair, Rule, Stage
from core.contract.trace import StepTrace

MESSAGE = (
    "The step never reads {path}: each step overwrites what the one before left in it, and after the scan only that of "
    "the last step is there."
)
MESSAGE_ALL = (
    "The step never reads its carry: each step starts anew, and the final carry is that of the last step alone."
)
BECAUSE = "this start value is never looked at"
WHY = "The carry hands something from one step to the next; what each step has for itself is kept in y."
TITLE_ADD = "Add {path} up over the steps"


@dataclass(frozen=True, slots=True)
class AddTo:
    """A leaf added to what came in for it."""

    def __call__(self, old: Any, new: Any) -> Any:
        """``old + new``."""
        return old + new


def check(facts: ScanFacts) -> Iterator[Finding]:
    """A note for each leaf of the carry on which nothing depends that comes out of the step."""
    trace = facts.trace
    if not isinstance(trace, StepTrace) or trace.pair is None or facts.jax is not None:
        return
    if facts.length is not None and facts.length < 2:
        return  # there is no step before the last one
    pairs = list(carry_pairs(facts))
    used = reads(trace.jaxpr)[: len(pairs)]
    for (given, held, _), read in zip(pairs, used, strict=True):
        if read or held.aval is None or not held.aval.size:
            continue
        yield Finding(
            message=fill(MESSAGE_ALL) if not any(used) else fill(MESSAGE, path=named(facts, held.path)),
            place=return_place(facts, held.path),
            because=Because(facts.places.find(f"init:{held.path}", "init"), fill(BECAUSE)),
            repairs=tuple(_repairs(facts, trace, given)) if any(used) else (),
            path=held.path,
        )
        if not any(used):
            return  # one note for the whole carry


def _repairs(facts: ScanFacts, trace: StepTrace, leaf: LeafType) -> Iterator[Repair]:
    """Adding up, where the leaf starts from zero as a total does.

    Not where it is x as it came in (the last one is wanted), nor where ys has it at every step already.
    """
    value = trees.find(facts.call.init, "carry", leaf.path)
    aval = aval_of(value)
    if aval is None or isinstance(value, jax.core.Tracer) or not (is_float(aval.dtype) or is_int(aval.dtype)):
        return
    new, y = trace.pair or (None, None)
    made = trees.find(new, "carry", leaf.path)
    if any(made is other for other in tree_util.tree_leaves((trace.x_in, y))):
        return
    if not np.asarray(value).any():
        yield repairs.mend_step("step_add", fill(TITLE_ADD, path=leaf.path), OnCarry(leaf.path, AddTo()), leaf.path)


RULE = Rule(
    code="S119",
    name="carry-leaf-never-read",
    title="A leaf of the carry is never read",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
)
