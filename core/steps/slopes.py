"""Steps with a value everywhere and a slope that wants care: each guarded, and the twin whose gradient is NaN.

A `where` chooses among values. Reverse mode differentiates both branches and multiplies the one that was not chosen
by 0, and 0 times an infinite slope is NaN. So what goes into the root, the logarithm or the norm is guarded as well:
a second `where`, inside (JAX documentation, "Gradients contain NaN where using where").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import jax.numpy as jnp

from core.base.avals import Aval
from core.steps.step import Step, Values, XKind, filled, float_dtype

GROUP = "Take gradients through"


def sum_of_roots(total: Any, x: Any) -> Any:
    """Add the root of x where there is one; guard what the root is taken of."""
    safe = jnp.where(x > 0, x, 1)
    total = total + jnp.where(x > 0, jnp.sqrt(safe), 0)
    return total, total


def roots_unguarded(total: Any, x: Any) -> Any:
    """Add the root of x where there is one."""
    total = total + jnp.where(x > 0, jnp.sqrt(x), 0)
    return total, total


def path_length(length: Any, move: Any) -> Any:
    """Add how far a move goes; where it goes nowhere, take no root."""
    squared = jnp.sum(move * move)
    safe = jnp.where(squared > 0, squared, 1)
    length = length + jnp.where(squared > 0, jnp.sqrt(safe), 0)
    return length, length


def norm_unguarded(length: Any, move: Any) -> Any:
    """Add how far a move goes."""
    length = length + jnp.sqrt(jnp.sum(move * move))
    return length, length


def entropy(bits: Any, p: Any) -> Any:
    """Add the surprise of p, weighed by p; a p of 0 adds nothing, and its logarithm is not taken."""
    safe = jnp.where(p > 0, p, 1)
    bits = bits - jnp.where(p > 0, p * jnp.log2(safe), 0)
    return bits, bits


def entropy_unguarded(bits: Any, p: Any) -> Any:
    """Add the surprise of p, weighed by p; a p of 0 adds nothing."""
    bits = bits - jnp.where(p > 0, p * jnp.log2(p), 0)
    return bits, bits


def _zero(x: Aval | None, _values: Values) -> Any:
    return filled(0, x, float_dtype(x))


def _no_length(x: Aval | None, _values: Values) -> Any:
    return filled(0, None, float_dtype(x))


STEPS = (
    Step(
        id="sum_of_roots",
        title="Sum of roots",
        group=GROUP,
        formula="c′ = c + √x if x > 0 else c, y = c′",
        story="The root has no slope at 0 and no value below it. Both are guarded: one `where` chooses the result, a "
        "second one what goes into the root, so that the gradient is finite too.",
        carry_doc="the sum so far, shaped like x",
        x_doc="the next number, any shape; 0 and below add nothing",
        y_doc="the sum up to here",
        fn=sum_of_roots,
        init=_zero,
        xs=(4, 1, 0, 9, -1, 16),
        length=6,
        leaves={"carry": "sum"},
    ),
    Step(
        id="path_length",
        title="Length of a path",
        group=GROUP,
        formula="c′ = c + ‖x‖, y = c′",
        story="The norm has no slope at 0: one move that goes nowhere makes the gradient of the whole path NaN, unless "
        "the root is guarded.",
        carry_doc="the length so far, one number",
        x_doc="a move: a row of numbers, one per axis of space",
        y_doc="the length up to here",
        fn=path_length,
        init=_no_length,
        xs=((3, 4), (0, 0), (6, 8), (5, 12)),
        length=4,
        x=XKind.VECTOR,
        leaves={"carry": "length"},
    ),
    Step(
        id="entropy",
        title="Entropy",
        group=GROUP,
        formula="c′ = c − p·log₂ p if p > 0 else c, y = c′",
        story="How many bits it takes to say which of the outcomes came. An outcome that never comes adds 0, by "
        "convention: its logarithm must not be taken at all.",
        carry_doc="bits so far, shaped like p",
        x_doc="the probability of the next outcome, any shape",
        y_doc="bits up to here",
        fn=entropy,
        init=_zero,
        xs=(0.5, 0.25, 0, 0.25),
        length=4,
        leaves={"carry": "bits"},
    ),
)
_RIGHT = {step.id: step for step in STEPS}


def _unguarded(right: str, fn: Any, title: str, formula: str, story: str) -> Step:
    """The twin with the same values, whose gradient is not finite."""
    return replace(
        _RIGHT[right], id=fn.__name__, title=title, formula=formula, story=story, fn=fn, right=right, breaks="N502"
    )


#: Right as scans: only their gradients are NaN.
UNGUARDED = (
    _unguarded(
        "sum_of_roots",
        roots_unguarded,
        "Sum of roots, slope unguarded",
        "c′ = c + √x if x > 0 else c, y = c′",
        "The value is right. The gradient is NaN from the first x that is not positive: `where` chooses the 0, and the "
        "slope of the root is multiplied by it all the same.",
    ),
    _unguarded(
        "path_length",
        norm_unguarded,
        "Length of a path, slope unguarded",
        "c′ = c + ‖x‖, y = c′",
        "The value is right. At a move that goes nowhere the slope of the root is infinite, that of the square is 0, "
        "and their product NaN.",
    ),
    _unguarded(
        "entropy",
        entropy_unguarded,
        "Entropy, slope unguarded",
        "c′ = c − p·log₂ p if p > 0 else c, y = c′",
        "The value is right. The slope of the logarithm at 0 is infinite, and the `where` that leaves it out multiplies "
        "it by 0.",
    ),
)
