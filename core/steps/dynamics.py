"""Steps that are a system moving through time: the carry is its state."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from core.base.avals import Aval
from core.steps.step import Param, Step, Values, XKind, filled, float_dtype

GROUP = "Move"


def leaky_integrator(voltage: Any, current: Any, *, tau: Any = 5.0, dt: Any = 1.0) -> Any:
    """Leak towards 0, rise with the current (one Euler step)."""
    voltage = voltage + dt * (current - voltage / tau)
    return voltage, voltage


def logistic_map(population: Any, _: Any, *, rate: Any = 3.9) -> Any:
    """Grow, and starve where it is crowded."""
    population = rate * population * (1 - population)
    return population, population


def rotation(point: Any, angle: Any) -> Any:
    """Turn the point around the origin."""
    x, y = point
    cos, sin = jnp.cos(angle), jnp.sin(angle)
    point = jnp.stack([cos * x - sin * y, sin * x + cos * y])
    return point, point


def random_walk(position: Any, key: Any, *, stride: Any = 1.0) -> Any:
    """Move by a random amount, drawn with this step's own key."""
    noise = jax.random.normal(key, position.shape, position.dtype)
    position = position + stride * noise
    return position, position


def gradient_descent(state: Any, _: Any, *, rate: Any = 0.1, momentum: Any = 0.8) -> Any:
    """One step downhill on (w - 3)², with momentum."""
    w, velocity = state
    loss, slope = jax.value_and_grad(lambda w: (w - 3.0) ** 2)(w)
    velocity = momentum * velocity - rate * slope
    return (w + velocity, velocity), loss


def tanh_rnn(h: Any, x: Any, *, w_in: Any, w_rec: Any, bias: Any) -> Any:
    """Mix the input and the hidden state, squash."""
    h = jnp.tanh(x @ w_in + h @ w_rec + bias)
    return h, h


def _at_rest(x: Aval | None, _values: Values) -> Any:
    return filled(0, x, float_dtype(x))


def _origin(_x: Aval | None, _values: Values) -> Any:
    return 0.0


def _few(_x: Aval | None, _values: Values) -> Any:
    return 0.2


def _east(x: Aval | None, _values: Values) -> Any:
    return np.array([1, 0], float_dtype(x))


def _uphill(_x: Aval | None, _values: Values) -> Any:
    return 0.0, 0.0


def _hidden(x: Aval | None, values: Values) -> Any:
    batch = () if x is None else x.shape[:-1]
    return np.zeros((*batch, int(values["hidden"])), float_dtype(x))


def _weights(_step: Step, x: Aval | None, values: Values) -> dict[str, Any]:
    """Seeded weights, ``w_in`` (F, H) and ``w_rec`` (H, H), scaled by 1/√fan-in; in NumPy, which compiles nothing."""
    features, hidden = (x.shape[-1] if x is not None and x.shape else 1), int(values["hidden"])
    random, dtype = np.random.default_rng(0), float_dtype(x)
    # One draw for all that a cell could ask for would move with H: each matrix has its own, row by row.
    return {
        "w_in": (random.standard_normal((features, hidden)) / np.sqrt(features)).astype(dtype),
        "w_rec": (random.standard_normal((hidden, hidden)) / np.sqrt(hidden)).astype(dtype),
        "bias": np.zeros(hidden, dtype),
    }


STEPS = (
    Step(
        id="leaky_integrator",
        title="Leaky integrator",
        group=GROUP,
        formula="v′ = v + dt·(x − v/τ), y = v′",
        story="A neuron's membrane, a bucket with a hole: it adds up what comes in and forgets with time constant τ. "
        "With dt above 2τ the Euler step overshoots and blows up.",
        carry_doc="the voltage, shaped like x",
        x_doc="the current flowing in, any shape",
        y_doc="the voltage",
        fn=leaky_integrator,
        init=_at_rest,
        xs=(1, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0),
        length=12,
        params=(
            Param("tau", "time constant τ", 5.0, 0.1, 50.0, 0.5, "steps until an impulse has fallen to about a third"),
            Param("dt", "time step dt", 1.0, 0.01, 10.0, 0.1, "how much time passes in a step"),
        ),
        leaves={"carry": "v"},
    ),
    Step(
        id="logistic_map",
        title="Logistic map",
        group=GROUP,
        formula="c′ = r·c·(1 − c), y = c′",
        story="One line, and chaos: at r = 3.9 two runs that differ in the last bit have nothing in common after 50 "
        "steps. No xs: `length` says how often.",
        carry_doc="the population, a number between 0 and 1",
        x_doc="nothing",
        y_doc="the population",
        fn=logistic_map,
        init=_few,
        length=30,
        x=XKind.NONE,
        params=(Param("rate", "growth r", 3.9, 0.0, 4.0, 0.01, "up to 3 it settles, beyond 3.57 it is chaotic"),),
        leaves={"carry": "population"},
    ),
    Step(
        id="rotation",
        title="2-D rotation",
        group=GROUP,
        formula="c′ = R(x)·c, y = c′, with R(x) = [[cos x, −sin x], [sin x, cos x]]",
        story="A point that is turned by x at each step. The carry is a vector while x is a number: they need not be "
        "alike, only the carry before and after.",
        carry_doc="a point (2,)",
        x_doc="the angle of this turn in radians, one number",
        y_doc="the point after it",
        fn=rotation,
        init=_east,
        xs=(0.5236,) * 12,
        length=12,
        x=XKind.SCALAR,
        leaves={"carry": "point"},
    ),
    Step(
        id="random_walk",
        title="Random walk",
        group=GROUP,
        formula="c′ = c + s·ε, ε ~ N(0, 1) from key x, y = c′",
        story="Randomness in a scan: split the key *before* it and let each step use its own, "
        "`xs = jax.random.split(key, T)`. One key for all steps would draw the same number T times.",
        carry_doc="the position, one number",
        x_doc="a PRNG key",
        y_doc="the position",
        fn=random_walk,
        init=_origin,
        length=20,
        x=XKind.KEY,
        params=(Param("stride", "stride s", 1.0, 0.0, 10.0, 0.1, "standard deviation of one step"),),
        leaves={"carry": "position"},
    ),
    Step(
        id="gradient_descent",
        title="Gradient descent with momentum",
        group=GROUP,
        formula="v′ = μ·v − η·f′(w), w′ = w + v′, y = f(w), with f(w) = (w − 3)²",
        story="A training loop is a scan too: the carry is the parameter and the optimiser's state, ys are the losses. "
        "`jax.grad` inside a step is fine.",
        carry_doc="(w, velocity): two numbers",
        x_doc="nothing",
        y_doc="the loss before the step",
        fn=gradient_descent,
        init=_uphill,
        length=30,
        x=XKind.NONE,
        params=(
            Param("rate", "learning rate η", 0.1, 0.0, 2.0, 0.01, "too large a rate overshoots further each time"),
            Param("momentum", "momentum μ", 0.8, 0.0, 1.0, 0.01, "how much of the velocity stays"),
        ),
        leaves={"carry[0]": "w", "carry[1]": "velocity"},
    ),
    Step(
        id="tanh_rnn",
        title="Tanh RNN",
        group=GROUP,
        formula="h′ = tanh(x·Wₓ + h·Wₕ + b), y = h′",
        story="The simplest recurrent network, with small seeded weights. The weights are no part of the carry: they "
        "are the same at every step.",
        carry_doc="hidden state h (H,)",
        x_doc="features (F,)",
        y_doc="the hidden state",
        fn=tanh_rnn,
        init=_hidden,
        xs=((1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (0, 0)),
        length=6,
        x=XKind.VECTOR,
        batched=True,
        params=(
            Param("hidden", "hidden width H", 4, 1, 64, 1, "numbers in the hidden state", whole=True, argument=False),
        ),
        leaves={"carry": "h"},
        arguments=_weights,
    ),
)
