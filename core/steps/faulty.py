"""Steps that break a rule, each beside the right one: what "Break it" shows, and what people really write."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from core.base.avals import Aval
from core.steps import accumulate, memory
from core.steps.step import Step, Values

GROUP = "Broken on purpose"


def grows(total: Any, x: Any) -> Any:
    """Collect the xs in the carry."""
    total = jnp.append(total, x)
    return total, total[-1]


def gains_axis(total: Any, x: Any) -> Any:
    """Add, and leave an axis of size 1."""
    total = jnp.expand_dims(total + x, 0)
    return total, total


def no_pair(total: Any, x: Any) -> Any:
    """Return the new carry alone."""
    return total + x


def no_return(total: Any, x: Any) -> Any:
    """Compute, and return nothing."""
    total = total + x


def to_float(total: Any, x: Any) -> Any:
    """Divide, although the carry counts in whole numbers."""
    total = (total + x) / 2
    return total, total


def drops_key(counts: Any, x: Any) -> Any:
    """Return the dict without one of its keys."""
    positive = counts["positive"] + (x > 0)
    return {"positive": positive}, positive


def list_for_tuple(carry: Any, _: Any) -> Any:
    """Take a tuple, return a list."""
    a, b = carry
    return [b, a + b], a


def drops_part(state: Any, x: Any) -> Any:
    """Return two of the three parts."""
    count, mean, _squares = state
    count = count + 1
    mean = mean + (x - mean) / count
    return (count, mean), mean


def _int_zero(x: Aval | None, _values: Values) -> Any:
    return np.zeros(() if x is None else x.shape, np.int32)


_RIGHT = {step.id: step for step in (*accumulate.STEPS, *memory.STEPS)}


def _fault(right: str, fn: Any, breaks: str, title: str, formula: str, story: str, **changes: Any) -> Step:
    """The faulty twin of a step: its inputs, another function."""
    return replace(
        _RIGHT[right],
        id=fn.__name__,
        title=title,
        group=GROUP,
        formula=formula,
        story=story,
        fn=fn,
        right=right,
        breaks=breaks,
        **changes,
    )


STEPS = (
    _fault(
        "running_sum",
        grows,
        "S103",
        "Carry grows",
        "c′ = [c, x], y = x",
        "In Python one appends to a list. A carry cannot grow: what is collected belongs into y.",
    ),
    _fault(
        "running_sum",
        gains_axis,
        "S103",
        "Carry gains an axis",
        "c′ = [c + x], y = c′",
        "A number goes in, a vector of one number comes out.",
    ),
    _fault(
        "running_sum",
        no_pair,
        "S101",
        "Returns no pair",
        "c′ = c + x, no y",
        "A step returns two things, the new carry and y, even when y is `None`.",
    ),
    _fault(
        "running_sum",
        no_return,
        "S101",
        "Returns nothing",
        "nothing is returned",
        "The `return` was forgotten: Python returns `None`, which is no pair.",
    ),
    _fault(
        "running_sum",
        to_float,
        "S104",
        "Whole number becomes float",
        "c′ = (c + x)/2, y = c′",
        "Init is an int32, and a division makes a float of it.",
        init=_int_zero,
        dtype="int32",
    ),
    _fault(
        "count_positive",
        drops_key,
        "S102",
        "Drops a key",
        "positive′ = positive + [x > 0], seen is gone",
        "The dict that comes out lacks a key that went in.",
    ),
    _fault(
        "fibonacci",
        list_for_tuple,
        "S102",
        "List for tuple",
        "(a, b) → [b, a + b], y = a",
        "A list and a tuple of the same two numbers are two structures to JAX.",
    ),
    _fault(
        "running_variance",
        drops_part,
        "S102",
        "Drops a part",
        "(n, m, s) → (n′, m′), y = m′",
        "Three parts go in, two come out.",
    ),
)
