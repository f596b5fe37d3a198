"""Programs without a fault, of many kinds: the Doctor must find neither error nor warning in any, and change nothing.

Each is a script of its own; what it prints is compared with what plain Python prints.
Longer than 500 lines because it is data: one program after the other, easier to read through than forty files.
"""

from __future__ import annotations

CLEAN: dict[str, str] = {
    "cumulative-sum": """
import jax
import jax.numpy as jnp

def step(carry, x):
    total, count = carry
    total = total + x
    count = count + 1
    return (total, count), total / count

carry, ys = jax.lax.scan(step, (jnp.array(0.0), jnp.array(0)), jnp.array([1.0, 2.0, 3.0, 4.0, 5.0]))
print(carry, ys)
assert carry[0] == 15.0
""",
    "lstm-over-time": """
import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(in_features=3, hidden_features=4, rngs=nnx.Rngs(0))
x = jnp.ones((5, 2, 3))
carry = cell.initialize_carry((2, 3), nnx.Rngs(1))

def step(carry, x_t):
    carry, y = cell(carry, x_t)
    return carry, y

carry, ys = jax.lax.scan(step, carry, x)
print(ys.shape, ys[-1, 0])
""",
    "python-loop-over-a-cell": """
import jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
h = cell.initialize_carry((2, 3), nnx.Rngs(1))
for t in range(6):
    h, y = cell(h, jnp.full((2, 3), float(t)))
print(y)
""",
    "rnn": """
import jax.numpy as jnp
from flax import nnx

rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
carry, ys = rnn(jnp.ones((2, 7, 3)))
print(carry[0].shape, ys.shape)
""",
    "bidirectional": """
import jax.numpy as jnp
from flax import nnx

forward = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
backward = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(1)))
both = nnx.Bidirectional(forward, backward)
print(both(jnp.ones((2, 5, 3))).shape)
""",
    "nested": """
import jax
import jax.numpy as jnp

def outer(c, row):
    def inner(d, x):
        return d * 0.5 + x, d
    d, _ = jax.lax.scan(inner, c, row)
    return d, d

final, rows = jax.lax.scan(outer, 0.0, jnp.arange(12.0).reshape(4, 3))
print(final, rows)
""",
    "jit-vmap-grad": """
import jax
import jax.numpy as jnp

def loss(w, xs):
    def step(h, x):
        h = jnp.tanh(w * h + x)
        return h, h
    h, hs = jax.lax.scan(step, jnp.zeros(()), xs)
    return jnp.sum(hs ** 2)

xs = jnp.linspace(0.0, 1.0, 8)
print(jax.jit(loss)(0.5, xs))
print(jax.grad(loss)(0.5, xs))
print(jax.vmap(loss, in_axes=(0, None))(jnp.arange(3.0), xs))
print(jax.jit(jax.vmap(jax.grad(loss), in_axes=(0, None)))(jnp.arange(3.0), xs))
""",
    "closed-over-tracers": """
import jax
import jax.numpy as jnp

@jax.jit
def run(w, b, xs):
    w = w * 2.0
    return jax.lax.scan(lambda h, x: (h @ w + b * x, h.sum()), jnp.ones(3), xs)

print(run(jnp.eye(3), jnp.float32(0.5), jnp.arange(4.0)))
""",
    "named-tuple-carry": """
from typing import NamedTuple
import jax
import jax.numpy as jnp

class State(NamedTuple):
    position: jax.Array
    velocity: jax.Array

def step(s, force):
    v = s.velocity + 0.1 * force
    return State(s.position + 0.1 * v, v), s.position

final, path = jax.lax.scan(step, State(jnp.zeros(2), jnp.ones(2)), jnp.ones((5, 2)))
print(final, path.shape)
""",
    "dict-carry": """
import jax
import jax.numpy as jnp

def step(s, x):
    return {**s, "mean": s["mean"] + (x - s["mean"]) / (s["n"] + 1), "n": s["n"] + 1}, None

final, ys = jax.lax.scan(step, {"mean": jnp.array(0.0), "n": jnp.array(0.0)}, jnp.array([2.0, 4.0, 6.0]))
print(final, ys)
""",
    "keys-in-xs": """
import jax
import jax.numpy as jnp

def step(x, key):
    x = x + 0.1 * jax.random.normal(key, x.shape)
    return x, x

keys = jax.random.split(jax.random.key(0), 5)
final, path = jax.lax.scan(step, jnp.zeros(2), keys)
print(path)
""",
    "key-in-carry": """
import jax
import jax.numpy as jnp

def step(carry, _):
    key, x = carry
    key, sub = jax.random.split(key)
    x = x + jax.random.normal(sub)
    return (key, x), x

(key, x), path = jax.lax.scan(step, (jax.random.key(3), jnp.array(0.0)), None, length=6)
print(path)
""",
    "old-style-key-in-carry": """
import jax
import jax.numpy as jnp

def step(key, _):
    key, sub = jax.random.split(key)
    return key, jax.random.uniform(sub)

key, draws = jax.lax.scan(step, jax.random.PRNGKey(0), None, length=4)
print(draws)
""",
    "reverse-and-unroll": """
import jax
import jax.numpy as jnp

def step(g, rd):
    r, d = rd
    g = r + 0.9 * g * (1.0 - d)
    return g, g

rewards = jnp.array([1.0, 0.0, 0.0, 1.0, 0.5, 0.25])
done = jnp.array([0.0, 0.0, 0.0, 1.0, 0.0, 0.0])
_, returns = jax.lax.scan(step, jnp.array(0.0), (rewards, done), reverse=True, unroll=2)
print(returns)
""",
    "length-without-xs": """
import jax
import jax.numpy as jnp

def newton(x, _):
    x = x - (x * x - 2.0) / (2.0 * x)
    return x, x

root, steps = jax.lax.scan(newton, jnp.array(1.0), length=6)
print(root, steps)
""",
    "associative-scan": """
import jax
import jax.numpy as jnp

print(jax.lax.associative_scan(jnp.add, jnp.arange(5.0)))
print(jax.lax.associative_scan(jnp.maximum, jnp.array([3.0, 1.0, 4.0, 1.0, 5.0])))
""",
    "where-and-cond": """
import jax
import jax.numpy as jnp

def step(c, x):
    c = jnp.where(c > 3.0, c - 3.0, c)
    c = jax.lax.cond(x > 1.0, lambda v: v + x, lambda v: v, c)
    return c, c

final, ys = jax.lax.scan(step, jnp.array(0.0), jnp.array([2.0, 2.0, 0.5, 2.0]))
print(ys)
""",
    "dynamic-slice": """
import jax
import jax.numpy as jnp

series = jnp.array([1.0, 2.0, 3.0, 4.0, 5.0])

def step(previous, i):
    mean = jax.lax.dynamic_slice_in_dim(series, i, 3).mean()
    return mean, mean - previous

print(jax.lax.scan(step, 0.0, jnp.arange(3)))
""",
    "at-set-in-carry": """
import jax
import jax.numpy as jnp

def step(buffer, ix):
    i, x = ix
    buffer = buffer.at[i].set(x)
    return buffer, buffer.sum()

print(jax.lax.scan(step, jnp.zeros(4), (jnp.arange(4), jnp.arange(4.0) ** 2)))
""",
    "masked-lstm": """
import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(2, 3, rngs=nnx.Rngs(0))
x = jnp.ones((4, 5, 2))
lengths = jnp.array([2, 4, 1, 3, 4])

def step(carry, inputs):
    x_t, t = inputs
    new, y = cell(carry, x_t)
    keep = (t < lengths)[:, None]
    carry = jax.tree.map(lambda n, o: jnp.where(keep, n, o), new, carry)
    return carry, y

carry, ys = jax.lax.scan(step, cell.initialize_carry((5, 2), nnx.Rngs(1)), (x, jnp.arange(4)))
print(carry[1])
""",
    "nnx-scan-plain": """
import jax.numpy as jnp
from flax import nnx

@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))
def run(c, x):
    c = 0.5 * c + x
    return c, c * 2.0

print(run(jnp.array(0.0), jnp.arange(4.0)))
""",
    "nnx-scan-with-a-module": """
import jax.numpy as jnp
from flax import nnx

class Model(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.GRUCell(3, 4, rngs=rngs)
        self.head = nnx.Linear(4, 2, rngs=rngs)

    def __call__(self, xs):
        def step(model, h, x):
            h, y = model.cell(h, x)
            return h, model.head(y)
        h = jnp.zeros((xs.shape[1], 4))
        scan = nnx.scan(step, in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))
        return scan(self, h, xs)

model = Model(nnx.Rngs(0))
h, out = model(jnp.ones((5, 2, 3)))
print(h.shape, out.shape)
""",
    "class-with-a-step-method": """
import jax
import jax.numpy as jnp

class Filter:
    def __init__(self, decay):
        self.decay = decay
        self.calls = 0

    def _step(self, level, x):
        level = self.decay * level + (1.0 - self.decay) * x
        return level, level

    def __call__(self, xs):
        self.calls += 1
        return jax.lax.scan(self._step, jnp.zeros(xs.shape[1:]), xs)[1]

smooth = Filter(0.9)
print(smooth(jnp.ones((4, 2))), smooth.calls)
""",
    "partial-and-lambda": """
from functools import partial
import jax
import jax.numpy as jnp

def step(rate, c, x):
    return c + rate * (x - c), c

print(jax.lax.scan(partial(step, 0.1), 0.0, jnp.arange(5.0)))
print(jax.lax.scan(lambda c, x: (c * x, c), 1.0, jnp.arange(1.0, 5.0)))
""",
    "checkpointed-step": """
import jax
import jax.numpy as jnp

@jax.checkpoint
def step(h, x):
    h = jnp.sin(h) + x
    return h, h

def f(h):
    return jax.lax.scan(step, h, jnp.arange(4.0))[0]

print(jax.value_and_grad(f)(0.3))
""",
    "training-loop": """
import jax
import jax.numpy as jnp
from flax import nnx
import optax

class Tagger(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.LSTMCell(2, 4, rngs=rngs))
        self.out = nnx.Linear(4, 1, rngs=rngs)

    def __call__(self, x):
        return self.out(self.rnn(x))

model = Tagger(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
x = jnp.ones((3, 5, 2))
y = jnp.zeros((3, 5, 1))

@nnx.jit
def train(model, optimizer, x, y):
    def loss(model):
        return jnp.mean((model(x) - y) ** 2)
    value, grads = nnx.value_and_grad(loss)(model)
    optimizer.update(model, grads)
    return value

for _ in range(3):
    value = train(model, optimizer, x, y)
print(f"{float(value):.5f}")
""",
    "optimiser-in-a-scan": """
import jax
import jax.numpy as jnp

def descend(w, batch):
    x, y = batch
    gradient = jax.grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
    return w - 0.1 * gradient, jnp.abs(gradient).max()

x = jax.random.normal(jax.random.key(0), (6, 8, 3))
w, norms = jax.lax.scan(descend, jnp.zeros(3), (x, x @ jnp.array([1.0, -2.0, 0.5])))
print(norms)
""",
    "scan-in-a-python-loop": """
import jax
import jax.numpy as jnp

def step(c, x):
    return c + x, c

state = jnp.array(0.0)
for epoch in range(10):
    state, ys = jax.lax.scan(step, state, jnp.arange(4.0))
print(state)
""",
    "own-counter-and-log": """
import jax
import jax.numpy as jnp

log = []
runs = 0

def run(xs):
    global runs
    runs += 1
    total, ys = jax.lax.scan(lambda c, x: (c + x, c), 0.0, xs)
    log.append(float(total))
    return ys

for n in (2, 3, 4):
    run(jnp.ones(n))
print(runs, log)
""",
    "comprehensions-and-stars": """
import jax
import jax.numpy as jnp

def step(carry, x):
    *rest, last = carry
    new = [last + x, *rest]
    return tuple(new), sum(v for v in new)

carry, ys = jax.lax.scan(step, tuple(jnp.array(float(i)) for i in range(3)), jnp.ones(4))
print([float(c) for c in carry], {k: v for k, v in zip("ab", ys.tolist())})
""",
    "complex-and-bool": """
import jax
import jax.numpy as jnp

def step(c, x):
    z, seen = c
    z = z * 1j + x
    return (z, seen | (x > 1.0)), jnp.abs(z)

print(jax.lax.scan(step, (jnp.array(0j), jnp.array(False)), jnp.array([0.5, 1.5])))
""",
    "bfloat16-throughout": """
import jax
import jax.numpy as jnp

w = jnp.eye(3, dtype=jnp.bfloat16)
def step(h, x):
    h = jnp.tanh(h @ w + x)
    return h, h

h, hs = jax.lax.scan(step, jnp.zeros(3, jnp.bfloat16), jnp.ones((4, 3), jnp.bfloat16))
print(h.dtype, hs.shape)
""",
    "double-precision": """
import jax
import jax.numpy as jnp
jax.config.update("jax_enable_x64", True)

def step(c, x):
    return c + x, c

c, ys = jax.lax.scan(step, jnp.float64(0.0), jnp.full(10, 0.1))
print(c.dtype, float(c))
""",
    "debug-print": """
import jax
import jax.numpy as jnp

def step(c, x):
    jax.debug.print("c = {c}", c=c, ordered=True)
    return c + x, c

jax.lax.scan(step, 0.0, jnp.arange(3.0))
jax.effects_barrier()
""",
    "empty-sequence": """
import jax
import jax.numpy as jnp

c, ys = jax.lax.scan(lambda c, x: (c + x, c), jnp.array(1.0), jnp.zeros((0,)))
print(c, ys.shape)
""",
    "viterbi": """
import jax
import jax.numpy as jnp

def forward(score, emission):
    options = score[:, None] + jnp.log(jnp.array([[0.7, 0.3], [0.4, 0.6]]))
    return options.max(0) + emission, options.argmax(0)

emissions = jnp.log(jnp.array([[0.9, 0.2], [0.1, 0.8], [0.9, 0.2]]))
final, back = jax.lax.scan(forward, jnp.log(jnp.array([0.5, 0.5])) + emissions[0], emissions[1:])
last = final.argmax()
_, path = jax.lax.scan(lambda s, b: (b[s], b[s]), last, back, reverse=True)
print(path, last)
""",
    "custom-derivative": """
import jax
import jax.numpy as jnp

@jax.custom_vjp
def clip(x):
    return jnp.clip(x, -1.0, 1.0)

clip.defvjp(lambda x: (clip(x), None), lambda _, g: (g,))

def total(a):
    return jax.lax.scan(lambda c, x: (clip(c + a * x), None), 0.0, jnp.ones(3))[0]

print(jax.grad(total)(0.2))
""",
    "scan-of-scan-results": """
import jax
import jax.numpy as jnp

def cumsum(xs):
    return jax.lax.scan(lambda c, x: (c + x,) * 2, jnp.zeros_like(xs[0]), xs)[1]

print(cumsum(cumsum(jnp.arange(5.0))))
""",
    "time-major-rnn": """
import jax.numpy as jnp
from flax import nnx

rnn = nnx.RNN(nnx.SimpleCell(3, 4, rngs=nnx.Rngs(0)), time_major=True)
print(rnn(jnp.ones((7, 2, 3))).shape)
""",
    "stacked-cells": """
import jax
import jax.numpy as jnp
from flax import nnx

first = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
second = nnx.LSTMCell(4, 5, rngs=nnx.Rngs(1))

def step(carry, x):
    one, two = carry
    one, h = first(one, x)
    two, h = second(two, h)
    return (one, two), h

init = (first.initialize_carry((2, 3), nnx.Rngs(2)), second.initialize_carry((2, 4), nnx.Rngs(3)))
carry, ys = jax.lax.scan(step, init, jnp.ones((6, 2, 3)))
print(ys.shape)
""",
}
