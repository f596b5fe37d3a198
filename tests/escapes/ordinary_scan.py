"""Ordinary programs, as people write them late in the evening: scans of all kinds. They must run unchanged."""

from __future__ import annotations

PROGRAMS: dict[str, str] = {}

PROGRAMS["running_mean_dict_carry"] = """
import jax
import jax.numpy as jnp

def step(state, x):
    n = state["n"] + 1
    mean = state["mean"] + (x - state["mean"]) / n
    return {"n": n, "mean": mean}, mean

xs = jnp.array([3.0, -1.0, 4.0, 1.5])
state, means = jax.lax.scan(step, {"n": 0, "mean": 0.0}, xs)
assert jnp.allclose(state["mean"], xs.mean())
print(f"n={state['n']} mean={float(state['mean']):.3f}", means.shape)
"""

PROGRAMS["fibonacci_underscore"] = """
from jax import lax
import jax.numpy as jnp

def fib(carry, _):
    a, b = carry
    return (b, a + b), a

_, seq = lax.scan(fib, (jnp.int32(0), jnp.int32(1)), None, length=12)
for i, v in enumerate(seq):
    print(i, int(v), end="; ")
print()
"""

PROGRAMS["kalman_namedtuple"] = """
from typing import NamedTuple, Tuple
import jax, jax.numpy as jnp

class State(NamedTuple):
    mean: jax.Array
    var: jax.Array
    steps: int = 0

    def widen(self, q):
        return self._replace(var=self.var + q)

def kalman(s: State, z: jax.Array) -> Tuple[State, jax.Array]:
    s = s.widen(0.1)
    gain = s.var / (s.var + 0.5)
    new = State(mean=s.mean + gain * (z - s.mean), var=(1 - gain) * s.var, steps=s.steps + 1)
    return new, new.mean

init = State(jnp.zeros(()), jnp.ones(()))
final, means = jax.lax.scan(kalman, init, jnp.linspace(0, 1, 6))
print(final._asdict(), final._fields, means)
"""

PROGRAMS["dataclass_registered"] = """
import dataclasses
from dataclasses import dataclass
import jax
import jax.numpy as jnp

@jax.tree_util.register_dataclass
@dataclass
class Particle:
    pos: jax.Array
    vel: jax.Array

    def moved(self, dt):
        return dataclasses.replace(self, pos=self.pos + dt * self.vel)

def step(p, force):
    p = Particle(pos=p.pos, vel=p.vel + 0.1 * force)
    p = p.moved(0.1)
    return p, p.pos

p0 = Particle(jnp.zeros(2), jnp.array([1.0, 0.0]))
p, track = jax.lax.scan(step, p0, jnp.ones((5, 2)))
print(p.pos, p.vel, track[-1], dataclasses.asdict(p)["vel"].shape)
"""

PROGRAMS["flax_struct"] = """
import jax, jax.numpy as jnp
from flax import struct

@struct.dataclass
class Env:
    pos: jax.Array
    t: jax.Array
    limit: int = struct.field(pytree_node=False, default=3)

    @property
    def done(self):
        return self.t >= self.limit

def step(env, action):
    env = env.replace(pos=env.pos + jnp.where(env.done, 0.0, action), t=env.t + 1)
    return env, (env.pos, env.done)

env = Env(pos=jnp.zeros(()), t=jnp.int32(0))
env, (path, done) = jax.lax.scan(step, env, jnp.ones(5))
print(path, done, env.limit)
"""

PROGRAMS["registered_class"] = """
import jax, jax.numpy as jnp
from jax.tree_util import register_pytree_node_class

@register_pytree_node_class
class Box:
    def __init__(self, lo, hi):
        self.lo, self.hi = lo, hi
    def tree_flatten(self):
        return (self.lo, self.hi), None
    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)
    def __repr__(self):
        return f"Box({self.lo}, {self.hi})"

def step(b, x):
    return Box(jnp.minimum(b.lo, x), jnp.maximum(b.hi, x)), b.hi - b.lo

box, widths = jax.lax.scan(step, Box(jnp.inf, -jnp.inf), jnp.array([2., 5., -1.]))
print(box, widths.shape)
"""

PROGRAMS["nested_scan"] = """
import jax.numpy as jnp
from jax import lax, vmap, jit

@jit
def table(rows):
    def outer(total, row):
        def inner(acc, v):
            acc = acc * 0.5 + v
            return acc, acc
        last, trace = lax.scan(inner, jnp.float32(0), row)
        return total + last, trace
    return lax.scan(outer, 0.0, rows)

total, traces = table(jnp.arange(12.0).reshape(3, 4))
print(total, traces)
"""

PROGRAMS["random_walks_vmap"] = """
import jax, jax.numpy as jnp
from functools import partial

def walk(key, length, sigma=1.0):
    def step(pos, k):
        pos = pos + sigma * jax.random.normal(k)
        return pos, pos
    return jax.lax.scan(step, 0.0, jax.random.split(key, length))

keys = jax.random.split(jax.random.key(7), 3)
ends, paths = jax.vmap(partial(walk, length=4, sigma=0.5))(keys)
mean, std = paths.mean(axis=0), paths.std(axis=0)
print(ends.shape, paths.shape, jnp.round(mean, 3), jnp.round(std, 3))
"""

PROGRAMS["gradient_through_scan"] = """
import jax
import jax.numpy as jnp

def rollout(theta, x0, n=6):
    def f(x, _):
        x = jnp.tanh(theta * x)
        return x, x
    return jax.lax.scan(f, x0, None, length=n)[0]

g = jax.grad(rollout)(1.3, 0.4)
v, g2 = jax.value_and_grad(lambda th: rollout(th, 0.4) ** 2)(1.3)
h = jax.hessian(rollout)(1.3, 0.4)
print(g, v, g2, h)
"""

PROGRAMS["cond_and_switch"] = """
import jax.numpy as jnp
from jax import lax

ops = [lambda c: c + 1.0, lambda c: c * 2.0, lambda c: -c]

def step(c, op):
    c = lax.switch(op, ops, c)
    c = lax.cond(c > 10.0, lambda v: v - 10.0, lambda v: v, c)
    return c, c

final, trace = lax.scan(step, 3.0, jnp.array([0, 1, 1, 2, 0]))
print(final, trace)
i, s = lax.while_loop(lambda t: t[0] < 5, lambda t: (t[0] + 1, t[1] + t[0]), (0, 0))
print(i, s, lax.fori_loop(0, 4, lambda i, a: a + i, 0))
"""

PROGRAMS["reverse_and_unroll"] = """
import jax, jax.numpy as jnp
rewards = jnp.array([1.0, 0.0, 2.0, 0.5])
gamma = 0.9
_, returns = jax.lax.scan(lambda g, r: (r + gamma * g, r + gamma * g), 0.0, rewards, reverse=True)
_, fast = jax.lax.scan(lambda g, r: (r + gamma * g, r + gamma * g), 0.0, rewards, reverse=True, unroll=2)
assert jnp.allclose(returns, fast)
print(returns)
"""

PROGRAMS["step_object_and_partial"] = '''
from functools import partial
import jax, jax.numpy as jnp

class Leaky:
    """A step with parameters of its own."""
    def __init__(self, decay):
        self.decay = decay
        self.__calls = 0
    def __call__(self, c, x):
        self.__calls += 1
        c = self.decay * c + x
        return c, c
    @property
    def calls(self):
        return self.__calls

def step(c, x, *, scale, bias=0.0):
    return c + scale * x + bias, None

leaky = Leaky(0.5)
c, ys = jax.lax.scan(leaky, 0.0, jnp.ones(3))
c2, none = jax.lax.scan(partial(step, scale=2.0), 0.0, jnp.ones(3))
print(c, ys, c2, none, leaky.calls >= 1)
'''

PROGRAMS["welford"] = """
import jax, jax.numpy as jnp
import numpy as np

def welford(carry, x):
    count, mean, m2 = carry
    count = count + 1
    delta = x - mean
    mean = mean + delta / count
    m2 = m2 + delta * (x - mean)
    return (count, mean, m2), m2 / count

data = np.array([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], dtype=np.float32)
(count, mean, m2), variances = jax.lax.scan(welford, (0.0, 0.0, 0.0), jnp.asarray(data))
np.testing.assert_allclose(np.asarray(mean), data.mean(), rtol=1e-5)
np.testing.assert_allclose(np.asarray(m2 / count), data.var(), rtol=1e-5)
print(int(count), mean.item(), float(m2 / count))
"""

PROGRAMS["associative_scan"] = """
import jax, jax.numpy as jnp
def combine(l, r):
    a1, b1 = l
    a2, b2 = r
    return a1 * a2, a2 * b1 + b2
a = jnp.array([0.5, 0.9, 0.1, 0.7]); b = jnp.arange(4.0)
_, h = jax.lax.associative_scan(combine, (a, b))
def step(c, ab):
    c = ab[0] * c + ab[1]
    return c, c
_, ref = jax.lax.scan(step, 0.0, (a, b))
assert jnp.allclose(h, ref), (h, ref)
print(h)
"""

PROGRAMS["checkpointed"] = """
import jax, jax.numpy as jnp

@jax.checkpoint
def step(c, x):
    y = jnp.sin(c) + x
    return y, y

@jax.jit
def loss(c0):
    c, ys = jax.lax.scan(step, c0, jnp.linspace(0.0, 1.0, 8))
    return (ys ** 2).sum()

print(loss(0.3), jax.grad(loss)(0.3))
print(jax.grad(lambda c: jax.remat(lambda v: v ** 3)(c))(2.0))
"""

PROGRAMS["lotka_volterra_rk4"] = """
import jax
import jax.numpy as jnp

def lv(y, a=1.1, b=0.4, d=0.1, g=0.4):
    prey, pred = y
    return jnp.array([a * prey - b * prey * pred, d * prey * pred - g * pred])

def rk4(y, dt):
    k1 = lv(y)
    k2 = lv(y + dt / 2 * k1)
    k3 = lv(y + dt / 2 * k2)
    k4 = lv(y + dt * k3)
    y = y + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y, y

y, path = jax.lax.scan(rk4, jnp.array([10.0, 10.0]), jnp.full(20, 0.05))
print("end", y, "max prey", path[:, 0].max(), "at", int(path[:, 0].argmax()))
"""

PROGRAMS["game_of_life"] = """
import jax, jax.numpy as jnp
grid = jnp.zeros((6, 6), jnp.int32).at[1, 2].set(1).at[2, 3].set(1).at[3, 1:4].set(1)

def life(g, _):
    n = sum(jnp.roll(g, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if (i, j) != (0, 0))
    g = ((n == 3) | ((g == 1) & (n == 2))).astype(jnp.int32)
    return g, g.sum()

grid, alive = jax.lax.scan(life, grid, None, length=4)
for row in grid.tolist():
    print("".join(".#"[v] for v in row))
print(alive)
"""

PROGRAMS["hmm_forward"] = """
import jax, jax.numpy as jnp
from jax.scipy.special import logsumexp
from jax.nn import log_softmax

A = log_softmax(jnp.array([[2.0, 0.0], [0.0, 1.0]]), axis=1)
B = log_softmax(jnp.array([[1.0, 0.0, 0.0], [0.0, 0.0, 2.0]]), axis=1)
pi = jnp.log(jnp.array([0.6, 0.4]))
obs = jnp.array([0, 2, 1, 2])

def forward(alpha, o):
    alpha = logsumexp(alpha[:, None] + A, axis=0) + B[:, o]
    return alpha, alpha

alpha0 = pi + B[:, obs[0]]
alpha, alphas = jax.lax.scan(forward, alpha0, obs[1:])
print("log p =", logsumexp(alpha), alphas.shape)
"""

PROGRAMS["metropolis"] = """
import jax, jax.numpy as jnp
from jax import random

def log_prob(x):
    return -0.5 * (x - 1.0) ** 2

def kernel(carry, _):
    x, key, accepted = carry
    key, k1, k2 = random.split(key, 3)
    prop = x + 0.8 * random.normal(k1)
    ok = jnp.log(random.uniform(k2)) < log_prob(prop) - log_prob(x)
    x = jnp.where(ok, prop, x)
    return (x, key, accepted + ok), x

(x, key, acc), chain = jax.lax.scan(kernel, (0.0, random.PRNGKey(0), 0), length=50)
print(x, acc, chain.mean(), chain.shape, key.dtype)
"""

PROGRAMS["bfloat16_carry"] = """
import jax, jax.numpy as jnp
w = jax.random.normal(jax.random.key(0), (4, 4), jnp.bfloat16)

def step(h, x):
    h = jnp.tanh(jnp.dot(x, w, preferred_element_type=jnp.float32) + h.astype(jnp.float32)).astype(jnp.bfloat16)
    return h, h

h, hs = jax.lax.scan(step, jnp.zeros((2, 4), jnp.bfloat16), jnp.ones((3, 2, 4), jnp.bfloat16))
print(h.dtype, hs.shape, hs.dtype == jnp.bfloat16, jnp.finfo(jnp.bfloat16).bits)
"""

PROGRAMS["debug_print_in_scan"] = """
import jax, jax.numpy as jnp

def step(c, i):
    jax.debug.print("step {i}: c={c:.2f}", i=i, c=c, ordered=True)
    return c + i, c

c, ys = jax.lax.scan(step, 0.5, jnp.arange(3.0))
jax.effects_barrier()
jax.debug.print("done {} {x}", c, x=ys)
jax.effects_barrier()
"""

PROGRAMS["x64_switch"] = """
import jax
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp
import numpy as np

def step(t, dt):
    t = t + dt
    return t, t

t, ts = jax.lax.scan(step, np.float64(1.0), np.full(100, 1e-10))
print(t.dtype, f"{float(t):.12f}", jax.config.jax_enable_x64)
"""

PROGRAMS["greedy_decode"] = """
import jax, jax.numpy as jnp
V, H = 5, 3
k1, k2 = jax.random.split(jax.random.key(3))
params = {"emb": jax.random.normal(k1, (V, H)), "out": jax.random.normal(k2, (H, V))}

def decode(params, start, n):
    def step(carry, _):
        h, tok = carry
        h = jnp.tanh(h + params["emb"][tok])
        logits = h @ params["out"]
        tok = jnp.argmax(logits, -1)
        return (h, tok), (tok, jax.nn.one_hot(tok, V))
    (h, tok), (toks, hot) = jax.lax.scan(step, (jnp.zeros(H), start), None, length=n)
    return toks, hot

toks, hot = jax.jit(decode, static_argnums=2)(params, jnp.int32(1), 6)
print(toks, hot.sum(axis=1))
"""

PROGRAMS["truncated_bptt"] = """
import jax, jax.numpy as jnp
from jax import lax

def run(w, xs, chunk=4):
    h, losses = jnp.zeros(()), []
    for s in range(0, len(xs), chunk):
        part = xs[s:s + chunk]
        h, hs = lax.scan(lambda c, x: (jnp.tanh(w * c + x),) * 2, lax.stop_gradient(h), part)
        losses.append(jnp.mean(hs ** 2))
    return sum(losses) / len(losses)

xs = jnp.sin(jnp.arange(8.0))
loss, g = jax.value_and_grad(run)(0.7, xs)
print(f"{loss:.5f} {g:.5f}")
"""
