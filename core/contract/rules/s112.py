"""A constant rides in xs.

**What.** One leaf of xs is not a sequence but a value that every step was meant to see whole: per-feature weights, a
bias, a matrix. Inside xs it is cut like all the rest, and step t sees only its t-th part. It runs because its first
axis happens to be as long as the sequence. Or a leaf holds the same value at each step.

**Why.** Everything in xs is sliced along its leading axis. What stays the same at every step belongs outside: the step
can name it (a closure), or it can ride in the carry.

**Bad**

    w = jnp.array([1., 10., 100.])
    jax.lax.scan(lambda total, inp: (total + inp[0] @ inp[0], inp[0] * inp[1]), 0., (jnp.ones((3, 3)), w))

**Good**

    jax.lax.scan(lambda total, x: (total + x @ x, x * w), 0., jnp.ones((3, 3)))

A note, never more: a weight for each *step* looks the same. It is given only where the length of a leaf equals both T
and the size of an axis that the step combines its slices with, or where a leaf does not change from step to step while
others do; truth values, step numbers and PRNG keys are sequences by nature.

Source: jax.lax.scan, argument `xs`; JAX documentation, "Just-in-time compilation", closures.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from jax import tree_util

from core.base.avals import LeafType
from core.base.text import fill
from core.base.violation import Severity
from core.contract.facts import ScanFacts
from core.contract.precision import is_float, is_int
from core.contract.program import meets
from core.contract.rule import Finding, Jax, Rule, Stage
from core.contract.trace import StepTrace

SLICED = (
    "{path} is {type}, as long as the sequence and as wide as what it meets in the step ({other}): step t sees only its "
    "part {path}[t]. If it is one {kind} for all steps, name it in the step instead of putting it in xs."
)
SAME = "{path} is the same at all {length} steps; the step can name it directly, without a copy for each step in xs."
WHY = "Everything in xs is cut along its leading axis, also what was meant to be seen whole at each step."
LEAF = "{path} {type}"
VECTOR = "vector"
MATRIX = "array"


def check(facts: ScanFacts) -> Iterator[Finding]:
    """A note for each leaf of xs that looks like a constant, in a scan over several leaves."""
    length = facts.length
    if len(facts.xs_types) < 2 or length is None or length < 2 or facts.jax is not None:
        return
    if not isinstance(facts.trace, StepTrace):
        return
    sliced = set(_sliced(facts, facts.trace, length))
    still = _still(facts)
    for number, (leaf, value) in enumerate(zip(facts.xs_types, tree_util.tree_leaves(facts.call.xs), strict=True)):
        if number in sliced and not _counts(value):
            kind = VECTOR if leaf.aval is not None and len(leaf.aval.shape) == 1 else MATRIX
            other = _met(facts, number, length)
            yield _finding(facts, leaf, fill(SLICED, path=leaf.path, type=leaf, other=other, kind=kind))
        elif number in still:
            yield _finding(facts, leaf, fill(SAME, path=leaf.path, length=length))


def _finding(facts: ScanFacts, leaf: LeafType, message: str) -> Finding:
    return Finding(
        message=message,
        place=facts.places.find(f"xs_bound:{leaf.path}", f"xs:{leaf.path}", "scan"),
        got=(leaf,),
        path=leaf.path,
    )


def _sliced(facts: ScanFacts, trace: StepTrace, length: int) -> Iterator[int]:
    """Leaves of length T whose slices meet, in one elementwise operation or product, an axis of size T.

    Another leaf must have that width at each step: where all of xs is single numbers, a carry of width T says nothing.
    Of several square arrays that meet each other only the last one is named: one of them is the sequence.
    """
    carried, squares = len(facts.init_types), []
    for number, leaf in enumerate(facts.xs_types):
        aval = leaf.aval
        if aval is None or not (is_float(aval.dtype) or is_int(aval.dtype)):
            continue
        wide = any(length in t.aval.shape[1:] for i, t in enumerate(facts.xs_types) if i != number and t.aval)
        if not wide or length not in meets(trace.jaxpr, carried + number):
            continue
        if len(aval.shape) == 1:
            yield number
        elif aval.shape == (length, length):
            squares.append(number)
    yield from squares[-1:]


def _met(facts: ScanFacts, number: int, length: int) -> str:
    """Another leaf of xs with an axis of size T at each step."""
    leaves = (t for i, t in enumerate(facts.xs_types) if i != number and t.aval and length in t.aval.shape[1:])
    leaf = next(leaves)
    return fill(LEAF, path=leaf.path, type=leaf)


def _counts(value: Any) -> bool:
    """Whether the leaf numbers the steps (0, 1, 2, … in either direction)."""
    array = np.asarray(value)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        return False
    steps = np.diff(array.astype(np.int64))
    return bool((steps == 1).all() or (steps == -1).all())


def _still(facts: ScanFacts) -> frozenset[int]:
    """Leaves whose slices are all equal, where some other leaf's are not.

    A single 0 or 1 repeated (a mask of ones, no input) says nothing: it is skipped.
    """
    same, moving = set(), False
    for number, (leaf, value) in enumerate(zip(facts.xs_types, tree_util.tree_leaves(facts.call.xs), strict=True)):
        aval = leaf.aval
        if aval is None or not (is_float(aval.dtype) or is_int(aval.dtype)):
            moving = True
            continue
        array = np.asarray(value)
        if not array.size or not (array == array[:1]).all():
            moving = moving or bool(array.size)
        elif (array.ndim == 1 and array[0] not in (0, 1)) or not (array == array.ravel()[0]).all():
            same.add(number)
    return frozenset(same) if moving else frozenset()


RULE = Rule(
    code="S112",
    name="constant-rides-in-xs",
    title="A constant rides in xs",
    severity=Severity.NOTE,
    jax=Jax.SILENT,
    stage=Stage.TRACE,
    why=WHY,
    check=check,
)
