"""Steps whose carry is a structure: a dict, a tuple, a window of what came last."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from core.base.avals import Aval
from core.steps.step import Param, Step, Values, XKind, filled, float_dtype, number_dtype

GROUP = "Remember"


def count_positive(counts: Any, x: Any) -> Any:
    """Count the steps, and how many of them were positive."""
    counts = {
        "positive": counts["positive"] + (x > 0),
        "seen": counts["seen"] + 1,
    }
    return counts, counts["positive"] / counts["seen"]


def streak(length: Any, x: Any) -> Any:
    """One longer while x is positive, back to 0 when it is not."""
    length = jnp.where(x > 0, length + 1, 0)
    return length, length


def moving_window(window: Any, x: Any) -> Any:
    """Drop the oldest, append the newest."""
    window = jnp.concatenate([window[1:], x[None]])
    return window, window.mean(axis=0)


def running_variance(state: Any, x: Any) -> Any:
    """Update count, mean and sum of squares by one x (Welford)."""
    count, mean, squares = state
    count = count + 1
    delta = x - mean
    mean = mean + delta / count
    squares = squares + delta * (x - mean)
    return (count, mean, squares), {"mean": mean, "variance": squares / count}


def kalman(belief: Any, measurement: Any, *, drift: Any = 0.01, noise: Any = 1.0) -> Any:
    """Grow less sure, then move towards the measurement by the gain."""
    mean, variance = belief
    variance = variance + drift
    gain = variance / (variance + noise)
    mean = mean + gain * (measurement - mean)
    variance = (1 - gain) * variance
    return (mean, variance), mean


def fibonacci(carry: Any, _: Any) -> Any:
    """Shift the pair by one."""
    a, b = carry
    return (b, a + b), a


def _counts(x: Aval | None, _values: Values) -> Any:
    shape = () if x is None else x.shape
    return {"positive": np.zeros(shape, np.int32), "seen": np.zeros((), np.int32)}


def _no_streak(x: Aval | None, _values: Values) -> Any:
    return np.zeros(() if x is None else x.shape, np.int32)


def _window(x: Aval | None, values: Values) -> Any:
    return np.zeros((int(values["width"]), *(() if x is None else x.shape)), number_dtype(x))


def _nothing_seen(x: Aval | None, _values: Values) -> Any:
    return np.zeros((), np.int32), filled(0, x, float_dtype(x)), filled(0, x, float_dtype(x))


def _unsure(x: Aval | None, _values: Values) -> Any:
    return filled(0, x, float_dtype(x)), filled(1, None, float_dtype(x))


def _first_pair(_x: Aval | None, _values: Values) -> Any:
    return 0, 1


STEPS = (
    Step(
        id="count_positive",
        title="Counter in a dict",
        group=GROUP,
        formula="positive′ = positive + [x > 0], seen′ = seen + 1, y = positive′ / seen′",
        story="A carry may be any pytree. A dict gives each number a name; its keys must be the same after every step.",
        carry_doc="a dict: `positive` (int32, shaped like x) and `seen` (int32)",
        x_doc="the next number, any shape",
        y_doc="the share of positive numbers so far",
        fn=count_positive,
        init=_counts,
        xs=(3, -1, 4, -1, 5, -9, 2),
        length=7,
        leaves={"carry['positive']": "positive", "carry['seen']": "seen"},
    ),
    Step(
        id="streak",
        title="Streak",
        group=GROUP,
        formula="c′ = c + 1 if x > 0 else 0, y = c′",
        story="A carry that starts over. The choice is made by `jnp.where`: a Python `if` cannot look at x, which has "
        "no value yet when the step is traced.",
        carry_doc="length of the streak, int32, shaped like x",
        x_doc="the next number, any shape; positive continues the streak",
        y_doc="the streak up to here",
        fn=streak,
        init=_no_streak,
        xs=(1, 1, 0, 1, 1, 1, 0, 1),
        length=8,
        leaves={"carry": "streak"},
    ),
    Step(
        id="moving_window",
        title="Moving window",
        group=GROUP,
        formula="w′ = [w₁, …, w₋₁, x], y = mean(w′)",
        story="A carry cannot grow, so a window of the last W values has W places from the start. The zeros of init "
        "count in the first W − 1 means.",
        carry_doc="the last W values, oldest first",
        x_doc="the next number, any shape",
        y_doc="the mean of the window",
        fn=moving_window,
        init=_window,
        xs=(1, 2, 3, 4, 5, 6, 7, 8),
        length=8,
        params=(
            Param("width", "width W", 3, 1, 16, 1, "how many values the window holds", whole=True, argument=False),
        ),
        leaves={"carry": "window"},
    ),
    Step(
        id="running_variance",
        title="Mean and variance (Welford)",
        group=GROUP,
        formula="δ = x − m, m′ = m + δ/n′, s′ = s + δ·(x − m′), y = (m′, s′/n′)",
        story="Mean and variance in one pass over the data, in a tuple of three. Summing x² instead would cancel to "
        "nothing for numbers far from 0.",
        carry_doc="(count: int32, mean, sum of squared deviations), the last two shaped like x",
        x_doc="the next number, any shape",
        y_doc="a dict: mean and variance up to here",
        fn=running_variance,
        init=_nothing_seen,
        xs=(2, 4, 4, 4, 5, 5, 7, 9),
        length=8,
        leaves={"carry[0]": "count", "carry[1]": "mean", "carry[2]": "squares"},
    ),
    Step(
        id="kalman",
        title="Kalman filter (1-D)",
        group=GROUP,
        formula="p = p + q, k = p/(p + r), m′ = m + k·(z − m), p′ = (1 − k)·p, y = m′",
        story="What is a constant, seen through noise? The carry is a belief: a mean, and how unsure it is. "
        "The gain falls by itself as the filter becomes sure.",
        carry_doc="(mean shaped like x, variance: one number)",
        x_doc="the next measurement z, any shape",
        y_doc="the mean after it",
        fn=kalman,
        init=_unsure,
        xs=(1.2, 0.7, 1.1, 0.9, 1.4, 0.8, 1.0, 1.3, 0.6, 1.0),
        length=10,
        params=(
            Param("drift", "drift q", 0.01, 0.0, 1.0, 0.01, "variance gained at each step"),
            Param("noise", "noise r", 1.0, 0.01, 10.0, 0.1, "variance of a measurement"),
        ),
        leaves={"carry[0]": "mean", "carry[1]": "variance"},
    ),
    Step(
        id="fibonacci",
        title="Fibonacci",
        group=GROUP,
        formula="(a, b)′ = (b, a + b), y = a",
        story="No xs at all: `length` says how often. The pair is the memory that the recurrence needs. In int32 the "
        "47th number comes out negative, without a word.",
        carry_doc="(a, b): two numbers in a row",
        x_doc="nothing",
        y_doc="the Fibonacci numbers",
        fn=fibonacci,
        init=_first_pair,
        length=10,
        x=XKind.NONE,
        dtype="int32",
        leaves={"carry[0]": "a", "carry[1]": "b"},
    ),
)
