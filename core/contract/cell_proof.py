"""The numbers that prove a silent fault of a cell: something of one example is changed, and others are watched.

Each function here is the `of` of a `Measure`: it takes a subject of any kind (the one at fault, or the mended one),
takes the same step of the same cell again on the learner's own numbers, and returns one number. Values are changed by
0.1, on the host. A subject that cannot be measured raises ValueError, and then there is no proof to show.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, tree_util

from core.base.avals import aval_of, path_name
from core.contract.facts import ScanFacts, facts_of, run_trial
from core.contract.record import CellEvents, StepEvent, recording
from core.contract.subject import CellLog, CellTrial, ScanCall, Subject
from core.contract.trace import Raised

#: How much a value is changed by.
CHANGE = 0.1
#: What counts as moved: more than the rounding that the project allows two paths to differ by.
NOISE = 1e-6


def concrete_step(subject: Subject, index: int) -> StepEvent:
    """The step of a cell with real numbers; of a scan it is the one in the first step taken.

    Raises:
        ValueError: there is no such step, it raised, or its values are traced.
    """
    if isinstance(subject, CellTrial):
        events = run_trial(subject)
    elif isinstance(subject, CellLog):
        events = subject.events
    elif isinstance(subject, ScanCall):
        events = _first_step(subject)
    else:
        raise ValueError("it has no step of a cell")
    if index >= len(events.steps) or events.steps[index].error is not None:
        raise ValueError("the cell took no such step")
    event = events.steps[index]
    if any(isinstance(leaf, jax.core.Tracer) for leaf in tree_util.tree_leaves((event.carry, event.inputs))):
        raise ValueError("the values are traced")
    return event


def _first_step(call: ScanCall) -> CellEvents:
    """The cells of the first step taken, run without a scan around it, from init as the scan promotes it."""
    facts = ScanFacts(call)
    dtypes = facts.promoted or (None,) * len(facts.init_types)
    leaves, tree = tree_util.tree_flatten(call.init)
    init = tree_util.tree_unflatten(tree, [jnp.asarray(v, d) for v, d in zip(leaves, dtypes, strict=True)])
    at = -1 if call.reverse else 0
    events = CellEvents()
    with recording(events):
        call.body(init, tree_util.tree_map(lambda leaf: jnp.asarray(leaf)[at], call.xs))
    return events


def again(event: StepEvent, carry: Any = None, inputs: Any = None) -> tuple[Any, np.ndarray[Any, Any]]:
    """(new carry, h) of the same cell with another carry or another input."""
    new, h = event.cell(event.carry if carry is None else carry, event.inputs if inputs is None else inputs)
    return new, host(h)


def host(value: Any) -> np.ndarray[Any, Any]:
    """The value as NumPy float64 (bfloat16 too), so that differences are exact.

    Raises:
        ValueError: a value is not finite: nothing can be shown by it.
    """
    array = np.asarray(jnp.asarray(value)).astype(np.float64)
    if not np.isfinite(array).all():
        raise ValueError("a value is not finite")
    return array


def nudged(value: Any, pick: Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]) -> Any:
    """A copy of an array in which the view that `pick` gives is changed: by 0.1, or by 1 where values are whole."""
    array = np.array(jnp.asarray(value))
    view = pick(array)
    step = CHANGE if jnp.issubdtype(array.dtype, jnp.inexact) else 1
    view[...] = (view + step).astype(array.dtype)
    return jnp.asarray(array)


def _rows(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """All batch axes as one; an array without any is one row."""
    return array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)


def _first_row(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return _rows(array)[:1]


def _map_parts(carry: Any, change: Callable[[Any], Any]) -> Any:
    """`change` on each array of a carry: both parts of a pair, or the one array."""
    return tuple(change(part) for part in carry) if isinstance(carry, tuple | list) else change(carry)


# --- measures -------------------------------------------------------------------------------------------------------


def neighbour_by_carry(index: int) -> Callable[[Subject], float]:
    """How far h of the last example moves when example 0 of the carry is changed (largest unit)."""

    def of(subject: Subject) -> float:
        event = concrete_step(subject, index)
        if aval_of(event.carry) is not None:
            carry = nudged(event.carry, lambda a: a[:1])
        else:
            carry = _map_parts(event.carry, lambda part: nudged(part, _first_row))
        return float(np.abs(_rows(again(event, carry=carry)[1])[-1] - _rows(again(event)[1])[-1]).max())

    return of


def neighbour_by_input(index: int) -> Callable[[Subject], float]:
    """How far h of example 1 moves, over a whole scan, when x of example 0 is changed at every step (largest)."""

    def of(subject: Subject) -> float:
        if not isinstance(subject, ScanCall):
            raise ValueError("there is no sequence")
        path = input_leaf(facts_of(subject), index)
        if path is None:
            raise ValueError("the cell's input is not a leaf of x itself")
        xs = tree_util.tree_map_with_path(
            lambda p, leaf: nudged(leaf, lambda a: a[:, :1]) if path_name("x", p) == path else leaf, subject.xs
        )
        moved, still = _outputs(subject, index, xs, subject.xs)
        return float(np.abs(moved[:, 1] - still[:, 1]).max())

    return of


def input_leaf(facts: Any, index: int) -> str | None:
    """The leaf of x (``x['frame']``) that a cell inside a step takes as its input, by identity."""
    if not isinstance(facts, ScanFacts) or isinstance(facts.trace, Raised):
        return None
    steps = facts.cells.steps
    flat = tree_util.tree_flatten_with_path(facts.trace.x_in)[0]
    found = (path_name("x", path) for path, leaf in flat if index < len(steps) and leaf is steps[index].inputs)
    return next(found, None)


def _outputs(call: ScanCall, index: int, *inputs: Any) -> list[np.ndarray[Any, Any]]:
    """What the cell puts out at every step, ``(T, B, H)``, by the real scan with that output as its y: for each xs.

    One body for all of them: JAX compiles it once.
    """

    def body(carry: Any, x: Any) -> Any:
        events = CellEvents()
        with recording(events):
            new, _ = call.body(carry, x)
        return new, events.steps[index].result[1]

    options = {"length": call.length, "reverse": call.reverse, "unroll": call.unroll}
    return [host(lax.scan(body, call.init, xs, **options)[1]) for xs in inputs]


def examples_moved(index: int, what: str) -> Callable[[Subject], float]:
    """How many examples' h move when one row of the carry (or of the ``input``) is changed."""

    def of(subject: Subject) -> float:
        event = concrete_step(subject, index)
        if what == "input":
            changed = again(event, inputs=nudged(event.inputs, _first_row))
        else:
            changed = again(event, carry=_map_parts(event.carry, lambda part: nudged(part, _first_row)))
        moved = np.abs(_rows(changed[1]) - _rows(again(event)[1])).max(axis=1) > NOISE
        return float(moved.sum())

    return of


def numbers_moved(index: int) -> Callable[[Subject], float]:
    """How many numbers of the new c move when the first number of c is changed."""

    def of(subject: Subject) -> float:
        event = concrete_step(subject, index)
        c, h = event.carry
        new, _ = again(event, carry=(nudged(c, lambda a: a.reshape(-1)[:1]), h))
        return float((np.abs(host(new[0]) - host(again(event)[0][0])) > NOISE).sum())

    return of


def units_returned(index: int) -> Callable[[Subject], float]:
    """The width of the h that one step returns."""
    return lambda subject: float(again(concrete_step(subject, index))[1].shape[-1])


def states_per_example(index: int) -> Callable[[Subject], float]:
    """How many hidden states one step returns for each example of its input."""

    def of(subject: Subject) -> float:
        event = concrete_step(subject, index)
        return len(_rows(again(event)[1])) / len(_rows(np.asarray(jnp.asarray(event.inputs))))

    return of


def parts_retyped(index: int) -> Callable[[Subject], float]:
    """How many arrays of the carry leave one step with another dtype than they came in with."""

    def of(subject: Subject) -> float:
        event = concrete_step(subject, index)
        pairs = zip(tree_util.tree_leaves(event.carry), tree_util.tree_leaves(event.result[0]), strict=True)
        avals = ((aval_of(before), aval_of(after)) for before, after in pairs)
        return float(sum(a is not None and b is not None and a.dtype != b.dtype for a, b in avals))

    return of


def farthest(one: Any, other: Any) -> float:
    """The largest difference between two trees of the same structure.

    Raises:
        ValueError: they differ in structure.
    """
    pairs = zip(tree_util.tree_leaves(one), tree_util.tree_leaves(other), strict=True)
    return max((float(np.abs(host(a) - host(b)).max(initial=0.0)) for a, b in pairs), default=0.0)
