"""Steps that add up: the carry is what has been seen so far, in one number."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from core.base.avals import Aval
from core.steps.step import Param, Step, Values, filled, float_dtype, number_dtype

GROUP = "Add up"


def running_sum(total: Any, x: Any) -> Any:
    """Add x to the sum so far."""
    total = total + x
    return total, total


def running_max(highest: Any, x: Any) -> Any:
    """Keep the larger one."""
    highest = jnp.maximum(highest, x)
    return highest, highest


def product(total: Any, x: Any) -> Any:
    """Multiply the product so far by x."""
    total = total * x
    return total, total


def exponential_average(average: Any, x: Any, *, decay: Any = 0.9) -> Any:
    """Keep most of the average, let in a little of x."""
    average = decay * average + (1 - decay) * x
    return average, average


def horner(value: Any, coefficient: Any, *, at: Any = 3.0) -> Any:
    """Multiply by the point, add the next coefficient."""
    value = value * at + coefficient
    return value, value


def _zero(x: Aval | None, _values: Values) -> Any:
    return filled(0, x, number_dtype(x))


def _one(x: Aval | None, _values: Values) -> Any:
    return filled(1, x, number_dtype(x))


def _zero_float(x: Aval | None, _values: Values) -> Any:
    return filled(0, x, float_dtype(x))


def _lowest(x: Aval | None, _values: Values) -> Any:
    dtype = jnp.dtype("float32" if x is None else x.dtype)
    if jnp.issubdtype(dtype, jnp.floating):
        return filled(-np.inf, x, dtype)
    return filled(False if dtype == np.bool_ else np.iinfo(dtype).min, x, dtype)


STEPS = (
    Step(
        id="running_sum",
        title="Running sum",
        group=GROUP,
        formula="c′ = c + x, y = c′",
        story="The smallest scan: `jnp.cumsum` written as a step. Every other one here adds an idea to it.",
        carry_doc="the sum so far, shaped like x",
        x_doc="the next number, any shape",
        y_doc="the sum up to here",
        fn=running_sum,
        init=_zero,
        xs=(1, 2, 3),
        length=3,
        leaves={"carry": "sum"},
    ),
    Step(
        id="running_max",
        title="Running maximum",
        group=GROUP,
        formula="c′ = max(c, x), y = c′",
        story="The highest mark so far. Init is what leaves every x as it is: `-inf`, not 0, or a sequence of negative "
        "numbers would keep the 0.",
        carry_doc="the largest x so far, shaped like x",
        x_doc="the next number, any shape",
        y_doc="the largest up to here",
        fn=running_max,
        init=_lowest,
        xs=(3, 1, 4, 1, 5, 9, 2, 6),
        length=8,
        leaves={"carry": "highest"},
    ),
    Step(
        id="product",
        title="Product",
        group=GROUP,
        formula="c′ = c · x, y = c′",
        story="Over 1, 2, 3, … it makes the factorials. The neutral init of a product is 1. In int32 it is wrong from "
        "13! on, without a word.",
        carry_doc="the product so far, shaped like x",
        x_doc="the next factor, any shape",
        y_doc="the product up to here",
        fn=product,
        init=_one,
        xs=(1, 2, 3, 4, 5, 6),
        length=6,
        leaves={"carry": "product"},
    ),
    Step(
        id="exponential_average",
        title="Exponential average",
        group=GROUP,
        formula="c′ = d·c + (1 − d)·x, y = c′",
        story="Smooths a noisy sequence with one number of memory: an x of k steps ago counts dᵏ as much as this one. "
        "Optimisers keep such averages of gradients.",
        carry_doc="the average so far, shaped like x",
        x_doc="the next number, any shape",
        y_doc="the smoothed sequence",
        fn=exponential_average,
        init=_zero_float,
        xs=(1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0),
        length=12,
        params=(Param("decay", "decay d", 0.9, 0.0, 1.0, 0.01, "how much of the old average stays"),),
        leaves={"carry": "average"},
    ),
    Step(
        id="horner",
        title="Polynomial (Horner)",
        group=GROUP,
        formula="c′ = c·a + x, y = c′",
        story="The xs are coefficients, highest power first; the final carry is the polynomial at the point a. "
        "As many multiplications as coefficients, and no power is ever computed.",
        carry_doc="the value so far, shaped like x",
        x_doc="the next coefficient, any shape",
        y_doc="the values on the way",
        fn=horner,
        init=_zero_float,
        xs=(2, -6, 2, -1),
        length=4,
        params=(Param("at", "point a", 3.0, -10.0, 10.0, 0.5, "where the polynomial is evaluated"),),
        leaves={"carry": "value"},
    ),
)
