"""Clean programs of many kinds: no error and no warning appears on any of them, before the plot or after it.

This list is the product's honour: a false alarm costs as much trust as a miss. Notes are allowed. Each entry is a
program somebody would write; what a rule might stumble over in it stands beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax import lax

from core.base.outcome import Outcome
from core.contract.engine import check, check_late
from core.contract.subject import ScanCall
from tests.unit.contract.scan_support import run

T = np.linspace(0.0, 6.0, 40)
NOISE = np.random.default_rng(0).normal(size=(40, 3))
KEYS = jax.random.split(jax.random.key(0), 12)


class Moments(NamedTuple):
    """Welford's running moments."""

    count: Any
    mean: Any
    m2: Any


@jax.tree_util.register_dataclass
@dataclass
class Ball:
    """A state with named parts."""

    height: Any
    speed: Any


def running_sum(c: Any, x: Any) -> Any:
    c = c + x
    return c, c


def welford(c: Moments, x: Any) -> Any:
    count = c.count + 1
    mean = c.mean + (x - c.mean) / count
    return Moments(count, mean, c.m2 + (x - c.mean) * (x - mean)), mean


def kalman(c: Any, z: Any) -> Any:
    m, p = c
    p = p + 0.01
    k = p / (p + 0.5)
    return (m + k * (z - m), (1 - k) * p), m


def rotation(c: Any, _: Any) -> Any:
    a = jnp.array([[np.cos(0.1), -np.sin(0.1)], [np.sin(0.1), np.cos(0.1)]])
    return a @ c, c


def window(c: Any, x: Any) -> Any:
    c = jnp.concatenate([c[1:], x[None]])
    return c, c.mean()


def adam(c: Any, _: Any) -> Any:
    w, m, v, t = c
    g = 2 * (w - 3.0)
    m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g, t + 1
    w = w - 0.1 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return (w, m, v, t), jnp.sum((w - 3.0) ** 2)


def lcg(c: Any, _: Any) -> Any:
    c = c * jnp.uint32(1664525) + jnp.uint32(1013904223)
    return c, c >> jnp.uint32(8)


def softmax_online(c: Any, x: Any) -> Any:
    top, total = c
    new = jnp.maximum(top, x)
    return (new, total * jnp.exp(top - new) + jnp.exp(x - new)), None


def viterbi(c: Any, x: Any) -> Any:
    scores = c[:, None] + jnp.log(jnp.array([[0.7, 0.3], [0.4, 0.6]]))
    return jnp.max(scores, axis=0) + x, jnp.argmax(scores, axis=0)


def masked(c: Any, inp: Any) -> Any:
    x, keep = inp
    new = jnp.tanh(c + x)
    return jnp.where(keep[:, None], new, c), c


def random_walk(c: Any, key: Any) -> Any:
    return c + jax.random.normal(key, c.shape), c


def carried_key(c: Any, x: Any) -> Any:
    key, sub = jax.random.split(c[0])
    return (key, c[1] + x * jax.random.normal(sub)), c[1]


def nested(c: Any, row: Any) -> Any:
    total, partial = lax.scan(running_sum, 0.0, row)
    return c + total, partial


def branches(c: Any, x: Any) -> Any:
    return lax.cond(x > 0, lambda: c + x, lambda: c - 1.0), c


def power(c: Any, _: Any) -> Any:
    c = jnp.array([[2.0, 1.0], [1.0, 3.0]]) @ c
    return c / jnp.linalg.norm(c), None


def bounce(b: Ball, dt: Any) -> Any:
    speed = b.speed - 9.81 * dt
    height = b.height + speed * dt
    return Ball(jnp.maximum(height, 0.0), jnp.where(height < 0, -0.8 * speed, speed)), height


def histogram(c: Any, i: Any) -> Any:
    return c.at[i].add(1), None


def collatz(c: Any, _: Any) -> Any:
    return jnp.where(c % 2 == 0, c // 2, 3 * c + 1), c


def bisect(c: Any, _: Any) -> Any:
    low, high = c
    mid = (low + high) / 2
    return (jnp.where(mid * mid < 2, mid, low), jnp.where(mid * mid < 2, high, mid)), mid


def damped(c: Any, x: Any, *, decay: Any, gain: Any) -> Any:
    return decay * c + gain * x, c


def conv(c: Any, x: Any) -> Any:
    c = jnp.roll(c, 1).at[0].set(x)
    return c, jnp.dot(c, jnp.array([0.25, 0.5, 0.25]))


LSTM = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
GRU = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
PAIR = (jnp.zeros((2, 4)), jnp.zeros((2, 4)))
W = jnp.array(np.random.default_rng(1).normal(size=(3, 3)) / 3, jnp.float32)
ZERO_KEY = jax.random.key(7)


def call(step: Callable[..., Any], init: Any, xs: Any = None, **kwargs: Any) -> ScanCall:
    return ScanCall(step, init, xs, **kwargs)


CLEAN: dict[str, ScanCall] = {
    "the guide's case": call(running_sum, 0.0, jnp.array([1.0, 2.0, 3.0])),
    "float64 xs of NumPy": call(running_sum, 0.0, T),
    "float64 init and xs of NumPy": call(running_sum, np.float64(0), np.random.default_rng(3).normal(size=200)),
    "float64 matrix of NumPy": call(lambda c, x: (jnp.tanh(W @ c + x), c), np.zeros(3), NOISE),
    "int64 xs of NumPy": call(running_sum, 0, np.arange(10)),
    "large whole numbers that fit": call(running_sum, 0, np.array([10**9, -(10**9), 2 * 10**9])),
    "weak float": call(lambda c, x: (0.9 * c + 0.1 * x, c), 0.0, jnp.ones(300)),
    "weak int with floats": call(running_sum, 0, jnp.array([0.5, 1.5])),
    "weak int with small bytes": call(running_sum, 0, jnp.array([1, 2, 3], jnp.int8)),
    "strong int with bytes": call(running_sum, jnp.int32(0), jnp.full(5, 100, jnp.int8)),
    "counter": call(lambda c, _: (c + 1, c), 0, None, length=500),
    "float counter": call(lambda c, _: (c + 1, None), 0.0, None, length=500),
    "count and total": call(lambda c, x: ({"n": c["n"] + 1, "t": c["t"] + x}, c["t"]), {"n": 0, "t": 0.0}, T),
    "Welford (NamedTuple)": call(welford, Moments(0, 0.0, 0.0), T),
    "a dataclass": call(bounce, Ball(1.0, 0.0), np.full(100, 0.01)),
    "Fibonacci below 2³¹": call(lambda c, _: ((c[1], c[0] + c[1]), c[0]), (0, 1), None, length=45),
    "factorial below 2³¹": call(lambda c, x: (c * x, c), 1, jnp.arange(1, 13)),
    "Kalman filter": call(kalman, (np.float64(0), np.float64(1)), 1 + NOISE[:, 0]),
    "rotation": call(rotation, jnp.array([1.0, 0.0]), None, length=200),
    "moving window": call(window, jnp.zeros(4), jnp.arange(9.0)),
    "square sequence, T == F": call(lambda c, x: (jnp.tanh(W @ c + x), c), jnp.zeros(3), jnp.eye(3)),
    "square sequence, matrix carry": call(lambda c, x: (c + jnp.outer(x, x), None), jnp.zeros((3, 3)), jnp.eye(3)),
    "time-major batch": call(lambda c, x: (jnp.tanh(c + x), c), jnp.zeros((2, 3)), jnp.ones((5, 2, 3))),
    "time-major batch, B == T": call(lambda c, x: (jnp.tanh(c + x), c), jnp.zeros((4, 3)), jnp.ones((4, 4, 3))),
    "all sizes equal": call(lambda c, x: (jnp.tanh(c @ W + x), c), jnp.zeros((3, 3)), jnp.ones((3, 3, 3))),
    "batch of one": call(lambda c, x: (jnp.tanh(c + x), c), jnp.zeros((1, 3)), jnp.ones((5, 1, 3))),
    "declared time-major": call(running_sum, jnp.zeros((5, 3)), jnp.ones((2, 5, 3)), axes={"xs": "TBF"}),
    "LSTM": call(lambda c, x: LSTM(c, x), PAIR, jnp.ones((5, 2, 3))),
    "LSTM, B == T": call(lambda c, x: LSTM(c, x), PAIR, jnp.ones((2, 2, 3))),
    "GRU in reverse": call(lambda c, x: GRU(c, x), jnp.zeros((2, 4)), jnp.ones((5, 2, 3)), reverse=True),
    "mask in xs": call(masked, jnp.zeros((2, 3)), (jnp.ones((5, 2, 3)), jnp.arange(10).reshape(5, 2) < 7)),
    "mask in xs, all sizes equal": call(masked, jnp.zeros((3, 3)), (jnp.ones((3, 3, 3)), jnp.ones((3, 3), bool))),
    "weight for each step, T != F": call(lambda c, i: (c + i[0] * i[1], None), jnp.zeros(3), (NOISE, T)),
    "weight for each step, T == F": call(lambda c, i: (c + i[0] * i[1], None), jnp.zeros(3), (jnp.eye(3), jnp.ones(3))),
    "two sequences, unpacked": call(lambda c, x: (c + x[0] * x[1], x[0]), 0.0, (T, T[::-1])),
    "two sequences in a list, unpacked": call(lambda c, x: (c + (lambda a, b: a * b)(*x), None), 0.0, [T, T + 1]),
    "sequences in a dict": call(lambda c, x: (c + x["u"] @ x["v"], None), 0.0, {"u": NOISE, "v": NOISE + 1}),
    "None inside xs": call(lambda c, x: (c + x[0], None), 0.0, (T, None)),
    "keys in xs": call(random_walk, jnp.zeros(3), KEYS),
    "keys in xs, float64 init": call(random_walk, np.zeros(2), KEYS),
    "key in the carry": call(carried_key, (ZERO_KEY, 0.0), T),
    "raw keys in xs": call(random_walk, jnp.zeros(2), jax.random.split(jax.random.PRNGKey(0), 5)),
    "bfloat16 throughout": call(
        lambda c, x: (jnp.tanh(c * 0.5 + x), c), jnp.zeros(3, jnp.bfloat16), jnp.ones((9, 3), jnp.bfloat16)
    ),
    "bfloat16 average": call(lambda c, x: (c * 0.9 + x * 0.1, None), jnp.bfloat16(0), jnp.ones(60, jnp.bfloat16)),
    "bfloat16 xs, float32 total": call(lambda c, x: (c + x, None), jnp.float32(0), jnp.ones(300, jnp.bfloat16)),
    "float16": call(running_sum, jnp.float16(0), jnp.ones(20, jnp.float16)),
    "bool xs": call(lambda c, x: (c + x, c), 0, jnp.array([True, False, True])),
    "bool carry": call(lambda c, x: (c | (x > 5), c), False, T),
    "complex": call(lambda c, x: (c * 1j + x, c), 0j, T),
    "reverse": call(running_sum, 0.0, T, reverse=True),
    "unroll": call(running_sum, 0.0, T, unroll=4),
    "unroll fully": call(running_sum, 0.0, T, unroll=True),
    "length beside xs": call(running_sum, 0.0, T, length=40),
    "nested scan": call(nested, 0.0, NOISE),
    "branches": call(branches, 0.0, T - 3),
    "empty": call(running_sum, 0.0, jnp.zeros(0)),
    "empty batch": call(running_sum, jnp.zeros((0, 3)), jnp.zeros((4, 0, 3))),
    "one step": call(running_sum, 0.0, jnp.ones(1)),
    "running maximum from -inf": call(lambda c, x: (jnp.maximum(c, x), c), -jnp.inf, T),
    "running minimum from +inf": call(lambda c, x: (jnp.minimum(c, x), None), np.full(3, np.inf), NOISE),
    "running maximum from the smallest int": call(
        lambda c, x: (jnp.maximum(c, x), None), jnp.iinfo(jnp.int32).min, jnp.arange(5)
    ),
    "log-sum-exp from -inf": call(lambda c, x: (jnp.logaddexp(c, x), None), -jnp.inf, T),
    "online softmax from -inf": call(softmax_online, (-jnp.inf, 0.0), T),
    "Viterbi from an impossible state": call(viterbi, jnp.array([0.0, -jnp.inf]), NOISE[:, :2]),
    "NaN left out": call(lambda c, x: (c + jnp.where(jnp.isnan(x), 0, x), None), 0.0, np.array([1.0, np.nan, 2.0])),
    "guarded log": call(lambda c, x: (c + jnp.where(x > 0, jnp.log(jnp.where(x > 0, x, 1)), 0), None), 0.0, T),
    "masked output of -inf": call(lambda c, x: (c + x, jnp.where(x > 1, x, -jnp.inf)), 0.0, T),
    "logistic map": call(lambda c, _: (3.9 * c * (1 - c), c), 0.3, None, length=60),
    "logistic map, float64 init": call(lambda c, _: (3.99 * c * (1 - c), c), np.float64(0.3), None, length=60),
    "Newton": call(lambda c, _: (0.5 * (c + 2 / c), c), np.float64(1), None, length=30),
    "bisection": call(bisect, (np.float64(1), np.float64(2)), None, length=60),
    "power iteration": call(power, jnp.ones(2), None, length=60),
    "Adam": call(adam, (np.zeros(2), np.zeros(2), np.zeros(2), 0), None, length=100),
    "decay to nothing": call(lambda c, _: (c * 0.5, c), np.float64(1), None, length=140),
    "product of small factors": call(lambda c, x: (c * x, c), 1.0, 1 + 1e-3 * NOISE[:, 0]),
    "generator of random numbers": call(lcg, jnp.uint32(1), None, length=30),
    "hash": call(
        lambda c, x: ((c ^ x) * jnp.uint32(16777619), None), jnp.uint32(2166136261), jnp.arange(9, dtype=jnp.uint32)
    ),
    "sum modulo": call(lambda c, x: ((c * 31 + x) % 10007, None), 0, jnp.arange(50)),
    "Collatz": call(collatz, 27, None, length=100),
    "histogram": call(histogram, jnp.zeros(5, int), jnp.array([0, 3, 3, 1])),
    "filter": call(conv, jnp.zeros(3), T),
    "parameters": call(damped, 0.0, T, params={"decay": 0.9, "gain": jnp.float32(0.1)}),
    "constant leaf": call(lambda c, x: ((c[0] + x * c[1], c[1]), c[0]), (0.0, np.float64(0.1)), T),
    "nothing carried": call(lambda c, x: (c, jnp.sin(x)), (), T),
    "nothing returned": call(lambda c, x: (c + x, ()), 0.0, T),
    "jitted step": call(jax.jit(running_sum), 0.0, T),
    "vmapped step": call(jax.vmap(running_sum), jnp.zeros(3), NOISE),
    "checkpointed step": call(jax.checkpoint(lambda c, x: (jnp.tanh(c + x), None)), 0.0, T),
    "time in xs": call(lambda c, i: (c + i[0] * i[1], None), jnp.zeros(3), (NOISE, jnp.arange(40))),
    "equal steps of time": call(lambda c, dt: (c - dt * c, c), 1.0, np.diff(np.linspace(0, 1, 101))),
    "time stamps from their start": call(lambda c, t: (t, t - c), 0.0, (1.7e9 + np.arange(10.0)) - 1.7e9),
    "offset and noise": call(lambda c, x: (0.9 * c + 0.1 * x, c), np.float64(1013.0), 1013 + NOISE[:, 0]),
}


def test_there_are_enough_of_them() -> None:
    assert len(CLEAN) >= 40


@pytest.mark.parametrize("name", CLEAN)
def test_clean(name: str) -> None:
    program = CLEAN[name]
    run(program)
    report = check(program)
    assert report.outcome is Outcome.OK, [(v.code, v.severity, v.message) for v in report.violations] or report.error
    late = check_late(program)
    assert not [v for v in late if v.severity.breaks], [(v.code, v.message) for v in late]
