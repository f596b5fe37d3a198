"""More programs without a fault: each comes near to a mistake that the catalogue knows, and does not make it.

Longer than 500 lines because it is data, as in clean.py.
"""

from __future__ import annotations

NEAR: dict[str, str] = {
    "scan-or-cell-01": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x, c), 0., np.linspace(0, 1, 200))
""",
    "scan-or-cell-02": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x, c * x), jnp.zeros(3), np.random.default_rng(0).normal(size=(50, 3)))
""",
    "scan-or-cell-03": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (jnp.maximum(c, x), x), -jnp.inf, jnp.array([3., -1., 4.]))
""",
    "scan-or-cell-04": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (jnp.minimum(c, x), x), np.inf, jnp.array([3., -1., 4.]))
""",
    "scan-or-cell-05": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
ks = jax.random.split(jax.random.key(0), 6)
r = lax.scan(lambda c, k: (c + jax.random.normal(k), c), 0., ks)
""",
    "scan-or-cell-06": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
def f(c, _):
    k, p = c
    k, s = jax.random.split(k)
    p = p + jax.random.normal(s)
    return (k, p), p
r = lax.scan(f, (jax.random.key(0), 0.), None, length=5)
""",
    "scan-or-cell-07": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
def f(c, _):
    k, p = c
    k, s = jax.random.split(k)
    p = p + jax.random.normal(s)
    return (k, p), p
r = lax.scan(f, (jax.random.PRNGKey(0), 0.), None, length=5)
""",
    "scan-or-cell-08": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
def f(c, x):
    a, b = c
    return (b, a + b), a
r = lax.scan(f, (jnp.int32(0), jnp.int32(1)), None, length=20)
""",
    "scan-or-cell-09": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
def f(c, x):
    a, b = c
    return (b, a + b), a
r = lax.scan(f, (0, 1), None, length=20)
""",
    "scan-or-cell-10": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
x = jnp.arange(16.).reshape(4, 4)
r = lax.scan(lambda c, r: (c + r, c.sum()), jnp.zeros(4), x)
""",
    "scan-or-cell-11": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
A = jnp.eye(3) * .9
r = lax.scan(lambda h, x: (A @ h + x, h), jnp.zeros(3), jnp.ones((3, 3)))
""",
    "scan-or-cell-12": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
xs = jnp.ones((4, 4, 4))
W = jnp.full((4, 4), .1)
r = lax.scan(lambda h, x: (jnp.tanh(x @ W + h @ W),) * 2, jnp.zeros((4, 4)), xs)
""",
    "scan-or-cell-13": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
c = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
r = lax.scan(lambda c, x: cell(c, x), c, jnp.ones((2, 2, 3)))
""",
    "scan-or-cell-14": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
cell = nnx.LSTMCell(4, 4, rngs=nnx.Rngs(0))
c = cell.initialize_carry((4, 4), rngs=nnx.Rngs(1))
r = lax.scan(lambda c, x: cell(c, x), c, jnp.ones((4, 4, 4)))
""",
    "scan-or-cell-15": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
c = cell.initialize_carry((3,), rngs=nnx.Rngs(1))
c, y = cell(c, jnp.ones(3))
""",
    "scan-or-cell-16": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
c = cell.initialize_carry((2, 5, 3), rngs=nnx.Rngs(1))
c, y = cell(c, jnp.ones((2, 5, 3)))
""",
    "scan-or-cell-17": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
c = (jnp.zeros((1, 4)), jnp.zeros((1, 4)))
c, y = cell(c, jnp.ones((1, 3)))
""",
    "scan-or-cell-18": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
cell = nnx.GRUCell(3, 2, rngs=nnx.Rngs(0))
h = jnp.zeros((2, 2))
h, y = cell(h, jnp.ones((2, 3)))
h, y = cell(h, jnp.ones((2, 3)))
""",
    "scan-or-cell-19": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
cell = nnx.SimpleCell(2, 2, rngs=nnx.Rngs(0))
h = jnp.zeros((2, 2))
h, y = cell(h, jnp.ones((2, 2)))
""",
    "scan-or-cell-21": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
rngs = nnx.Rngs(params=0, carry=1)
cell = nnx.LSTMCell(3, 4, rngs=rngs)
c = cell.initialize_carry((2, 3), rngs=rngs)
c, y = cell(c, jnp.ones((2, 3)))
""",
    "scan-or-cell-22": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x[0] * x[1], x[0]), 0., (jnp.arange(4.), jnp.ones(4)))
""",
    "scan-or-cell-23": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x[0] * x[1], x[0]), 0., [jnp.arange(4.), jnp.arange(4.) ** 2])
""",
    "scan-or-cell-24": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x['a'].sum() - x['b'], None), 0., {'a': jnp.ones((4, 2)), 'b': jnp.arange(4.)})
""",
    "scan-or-cell-25": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, i: (c.at[i].set(i * 2.), None), jnp.zeros(5), jnp.arange(5))
""",
    "scan-or-cell-26": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, i: (c.at[i].set(i), None), jnp.zeros(5, jnp.int32), jnp.arange(5))
""",
    "scan-or-cell-27": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c ^ x, c), False, jnp.array([True, False, True]))
""",
    "scan-or-cell-28": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c * jnp.uint32(1664525) + jnp.uint32(1013904223), c), jnp.uint32(7), None, length=9)
""",
    "scan-or-cell-29": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (3.9 * c * (1 - c), c), 0.2, None, length=200)
""",
    "scan-or-cell-30": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x, c), jnp.float32(0), jnp.ones(4), unroll=True)
""",
    "scan-or-cell-31": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x, c), jnp.float32(0), jnp.ones(4), unroll=2, length=4)
""",
    "scan-or-cell-32": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
def outer(c, row):
    s, _ = lax.scan(lambda a, b: (a + b, None), 0., row)
    return c + s, s
r = lax.scan(outer, 0., jnp.ones((3, 5)))
""",
    "scan-or-cell-33": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
from typing import NamedTuple
class S(NamedTuple):
    m: jax.Array
    n: jax.Array
def f(s, x):
    return S(s.m + x, s.n + 1), s.m
r = lax.scan(f, S(jnp.float32(0), jnp.int32(0)), jnp.ones(4))
""",
    "scan-or-cell-34": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: ((), c), (), jnp.ones(3)) if False else lax.scan(lambda c, x: (c, x), None, jnp.ones(3))
""",
    "scan-or-cell-35": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (0.9 * c + 0.1 * x, c), np.float64(0.), np.sin(np.arange(100)))
""",
    "scan-or-cell-36": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x, c), np.float32(0), np.arange(10, dtype=np.float32))
""",
    "scan-or-cell-37": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x, c), 0, jnp.arange(10))
""",
    "scan-or-cell-38": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x, c), jnp.int32(0), np.arange(10))
""",
    "scan-or-cell-39": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c * 0.5 + x, c), jnp.zeros((), jnp.bfloat16), jnp.ones(6, jnp.bfloat16))
""",
    "scan-or-cell-40": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + jnp.where(jnp.isnan(x), 0., x), c), 0., jnp.array([1., jnp.nan, 2.]))
""",
    "scan-or-cell-41": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
q = jnp.array([1., 2., 3.])
r = lax.scan(lambda c, x: (c + x @ q, c), 0., jnp.ones((3, 3)))
""",
    "scan-or-cell-42": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = jax.vmap(lambda s: lax.scan(lambda c, x: (c + x, c), 0., s))(jnp.ones((3, 5)))
""",
    "scan-or-cell-43": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = jax.grad(lambda w: lax.scan(lambda c, x: (jnp.tanh(w * c + x), c), 0., jnp.ones(5))[0])(.5)
""",
    "scan-or-cell-44": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
@jax.jit
def run(xs):
    return lax.scan(lambda c, x: (c + x, c), 0., xs)
r = run(jnp.ones(4))
""",
    "scan-or-cell-45": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (jnp.roll(c, -1).at[-1].set(x), c.mean()), jnp.zeros(3), jnp.arange(7.))
""",
    "scan-or-cell-46": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
def f(c, x):
    n, m, M = c
    n = n + 1
    d = x - m
    m = m + d / n
    return (n, m, M + d * (x - m)), m
r = lax.scan(f, (0., 0., 0.), jnp.array([1., 5., 2.]))
""",
    "scan-or-cell-47": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + 1, c * 1.), 0, None, length=5)
""",
    "scan-or-cell-48": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
dt = 1e-3
r = lax.scan(lambda c, x: ((c[0] + dt * c[1], c[1] - dt * c[0]), c[0]), (1., 0.), None, length=500)
""",
    "scan-or-cell-49": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c * 0.999, c), 1.0, None, length=500)
""",
    "scan-or-cell-50": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, x: (c + x, c), np.float64(0.5), np.full(20, .25))
""",
    "scan-or-cell-51": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda c, t: (c + 0.01 * jnp.sin(t), c), 1.0, np.arange(0, 5, .01))
""",
    "scan-or-cell-52": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax
r = lax.scan(lambda s, x: ((s[0] + x, s[1] * 1.), s[0]), (jnp.zeros((4, 3)), jnp.ones(())), jnp.ones((4, 4, 3)))
""",
    "near-a-mistake-01": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(c, x, *, train=True):
    if train:
        c = c + x
    if x.ndim == 0 and c is not None:
        c = c * 1
    return c, c
r = jax.lax.scan(f, 0., jnp.ones(3))
print(r)
""",
    "near-a-mistake-02": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(c, x):
    parts = []
    for i in range(x.shape[0]):
        parts.append(x[i] * i)
    return c + jnp.stack(parts).sum(), c
r = jax.lax.scan(f, 0., jnp.ones((3, 2)))
print(r)
""",
    "near-a-mistake-03": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(c, x):
    print('tracing with', x.shape, x.dtype)
    return c + x, c
r = jax.lax.scan(f, 0., jnp.ones(3))
print(r)
""",
    "near-a-mistake-04": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
log = []
for t in range(4):
    log.append(t * 1.0)
r = jax.lax.scan(lambda c, x: (c + x, c), 0., jnp.array(log))
log.append(float(r[0]))
print(log)
""",
    "near-a-mistake-05": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(c, x):
    jax.debug.print('c {c}', c=c)
    return c + x, c
r = jax.lax.scan(f, 0., jnp.ones(3))
print(r)
""",
    "near-a-mistake-06": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
traces = []
@jax.jit
def f(x):
    traces.append(1)
    return x * 2
f(1.0); f(2.0)
print('compiled', len(traces))
""",
    "near-a-mistake-07": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
key = jax.random.key(0)
k1, k2 = jax.random.split(key)
a = jax.random.normal(k1, (3,))
b = jax.random.normal(k2, (3,))
print(a, b)
""",
    "near-a-mistake-08": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
key = jax.random.key(0)
def f(c, t):
    return c + jax.random.normal(jax.random.fold_in(key, t)), c
r = jax.lax.scan(f, 0., jnp.arange(4))
print(r)
""",
    "near-a-mistake-09": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(c, k):
    return c + jax.random.normal(k), c
r = jax.lax.scan(f, 0., jax.random.split(jax.random.key(0), 4))
print(r)
""",
    "near-a-mistake-10": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(carry, _):
    key, h = carry
    key, sub = jax.random.split(key)
    h = h + jax.random.normal(sub)
    return (key, h), h
r = jax.lax.scan(f, (jax.random.PRNGKey(0), 0.), None, length=4)
print(r)
""",
    "near-a-mistake-11": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
model_a = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
model_b = nnx.Linear(2, 3, rngs=nnx.Rngs(0))
print(jnp.allclose(model_a.kernel[...], model_b.kernel[...]))
""",
    "near-a-mistake-12": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
v = jnp.arange(4.)
print(v[-1], v[:10], v[jnp.array([0, 3])], v.at[9].get(mode='fill', fill_value=0.))
""",
    "near-a-mistake-13": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
v = jnp.zeros(4)
v = v.at[1].set(2.)
w = np.zeros(3)
w[0] = 1.
print(v, w)
""",
    "near-a-mistake-14": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(buf, i):
    return buf.at[i].set(i * 1., mode='drop'), buf[i - 1]
r = jax.lax.scan(f, jnp.zeros(4), jnp.arange(4))
print(r)
""",
    "near-a-mistake-15": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(x):
    safe = jnp.where(x > 0, x, 1.)
    return jnp.where(x > 0, jnp.sqrt(safe), 0.).sum()
print(jax.grad(f)(jnp.array([0., 4.])))
""",
    "near-a-mistake-16": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
print(jax.grad(lambda x: jnp.sqrt(x).sum())(jnp.array([1., 4.])))
""",
    "near-a-mistake-17": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
@partial(jax.jit, static_argnames='n')
def run(n):
    return jax.lax.scan(lambda c, _: (c + 1, c), 0, None, length=n)
print(run(n=4), run(n=5))
""",
    "near-a-mistake-18": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
@jax.jit
def run(x):
    return jax.lax.scan(lambda c, v: (c + v, c), 0., x, length=x.shape[0])[0], jnp.arange(x.shape[0])
print(run(jnp.ones(4)))
""",
    "near-a-mistake-19": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
scale = 2.0
@jax.jit
def f(x):
    return x * scale
print(f(1.0), f(2.0))
""",
    "near-a-mistake-20": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
scale = 2.0
@jax.jit
def f(x, s):
    return x * s
print(f(1.0, scale))
scale = 3.0
print(f(1.0, scale))
""",
    "near-a-mistake-21": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
r = jax.lax.associative_scan(jnp.maximum, jnp.array([1., 3., 2.]))
s = jax.lax.associative_scan(lambda a, b: a * b, jnp.full(9, 1.1))
print(r, s)
""",
    "near-a-mistake-22": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def comb(a, b):
    (m1, c1), (m2, c2) = a, b
    return m1 * m2, m2 * c1 + c2
r = jax.lax.associative_scan(comb, (jnp.full(6, .9), jnp.arange(6.)))
print(r)
""",
    "near-a-mistake-23": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
mats = jax.random.normal(jax.random.key(0), (5, 3, 3)) * .5
r = jax.lax.associative_scan(lambda a, b: jnp.einsum('...ij,...jk->...ik', a, b), mats)
print(r.shape)
""",
    "near-a-mistake-24": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(c, x):
    a, b = c
    return (b, a + b), a
r = jax.lax.scan(f, (0., 1.), None, length=8)
print(r)
""",
    "near-a-mistake-25": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(h, x):
    h = jnp.tanh(h + x)
    return h, h
final, hs = jax.lax.scan(f, 0., jnp.ones(3))
print(final, hs)
""",
    "near-a-mistake-26": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(prev, x):
    return x, x - prev
last, diffs = jax.lax.scan(f, 0., jnp.array([1., 3., 6.]))
print(diffs)
""",
    "near-a-mistake-27": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
carry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
(c, h), ys = jax.lax.scan(lambda s, x: cell(s, x), carry, jnp.ones((5, 2, 3)))
print(jnp.allclose(h, ys[-1]), jnp.abs(c).max())
""",
    "near-a-mistake-28": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
class Enc(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.GRUCell(3, 4, rngs=rngs)
        self.out = nnx.Linear(4, 2, rngs=rngs)
    def __call__(self, xs):
        h = self.cell.initialize_carry((xs.shape[1], 3), rngs=nnx.Rngs(0))
        h, ys = jax.lax.scan(lambda h, x: self.cell(h, x), h, xs)
        return self.out(h)
print(Enc(nnx.Rngs(0))(jnp.ones((5, 2, 3))).shape)
""",
    "near-a-mistake-29": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
model = nnx.Sequential(nnx.Linear(3, 4, rngs=nnx.Rngs(1)), drop)
model.eval()
print(model(jnp.ones((2, 3))))
model.train()
print(model(jnp.ones((2, 3))).shape)
""",
    "near-a-mistake-30": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jnp.ones((2, 5, 3))
lengths = jnp.array([2, 5])
(c, h), ys = rnn(x, seq_lengths=lengths)
print(h.shape)
""",
    "near-a-mistake-31": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)))
x = jnp.ones((2, 5, 3))
both = rnn(x) + rnn(x, reverse=True, keep_order=True)
print(both.shape)
""",
    "near-a-mistake-32": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
bi = nnx.Bidirectional(nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))), nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(1))))
print(bi(jnp.ones((2, 5, 3))).shape)
""",
    "near-a-mistake-33": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
@nnx.split_rngs(splits=5)
@nnx.vmap(in_axes=0, out_axes=0)
def make(rngs):
    return nnx.Linear(3, 4, rngs=rngs)
layers = make(nnx.Rngs(0))
print(layers.kernel[...].shape)
""",
    "near-a-mistake-34": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
@nnx.jit
def train(model, x):
    def loss(m):
        return (m(x) ** 2).mean()
    l, g = nnx.value_and_grad(loss)(model)
    return l
m = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
print(train(m, jnp.ones((4, 3))))
""",
    "near-a-mistake-35": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
import optax
m = nnx.Linear(3, 1, rngs=nnx.Rngs(0))
opt = nnx.Optimizer(m, optax.sgd(.1), wrt=nnx.Param)
for i in range(3):
    l, g = nnx.value_and_grad(lambda m: (m(jnp.ones((2, 3))) ** 2).mean())(m)
    opt.update(m, g)
print(l)
""",
    "near-a-mistake-36": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
xs = np.random.default_rng(0).normal(size=(5, 2)).astype(np.float32)
r = jax.lax.scan(lambda c, x: (c + x, c), jnp.zeros(2), xs)
print(r[0].shape)
""",
    "near-a-mistake-37": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def f(c, x):
    y = jax.lax.cond(x > 0, lambda a: a + 1, lambda a: a - 1, c)
    return y, jnp.where(x > 0, c, y)
r = jax.lax.scan(f, 0., jnp.array([1., -1.]))
print(r)
""",
    "near-a-mistake-38": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
cfg = {'steps': 3}
class Sim:
    def __init__(self, dt):
        self.dt = dt
        self.calls = 0
    def step(self, s, _):
        x, v = s
        return (x + self.dt * v, v - self.dt * x), x
    def run(self):
        self.calls += 1
        return jax.lax.scan(self.step, (1., 0.), None, length=cfg['steps'])
s = Sim(.1)
print(s.run()[1], s.calls)
""",
    "near-a-mistake-39": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
f = jax.jit(lambda s, x: s + x, donate_argnums=0)
s = jnp.zeros(3)
for i in range(3):
    s = f(s, 1.0)
print(s)
""",
    "near-a-mistake-40": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def outer(c, row):
    def inner(a, v):
        return a + v, a * v
    c, ys = jax.lax.scan(inner, c, row)
    return c, ys.sum()
r = jax.lax.scan(outer, 0., jnp.ones((3, 4)))
print(r)
""",
    "near-a-mistake-41": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
key = jax.random.key(0)
key, k1 = jax.random.split(key)
x = jax.random.normal(k1, (4, 3))
key, k2 = jax.random.split(key)
w = jax.random.normal(k2, (3,))
print(x @ w)
""",
    "near-a-mistake-42": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
@jax.vmap
def f(x):
    return jax.lax.scan(lambda c, v: (c + v, c), 0., x)[0]
print(f(jnp.ones((3, 4))))
""",
    "near-a-mistake-43": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
def body(c, x):
    assert x.shape == (2,), x.shape
    return c + x.sum(), c
print(jax.lax.scan(body, 0., jnp.ones((3, 2))))
""",
    "near-a-mistake-44": """
import jax, jax.numpy as jnp
import numpy as np
from flax import nnx
from functools import partial
memo = {}
def weights(n):
    if n not in memo:
        memo[n] = np.ones(n) / n
    return memo[n]
def body(c, x):
    return c + (x * weights(x.shape[0])).sum(), c
print(jax.lax.scan(body, 0., jnp.ones((3, 2))))
""",
    "luong-in-loop-no-scan": """
import jax, jax.numpy as jnp
from flax import nnx
class Attend(nnx.Module):
    def __init__(self, d, rngs):
        self.enc = nnx.RNN(nnx.LSTMCell(3, d, rngs=rngs), return_carry=True)
        self.dec = nnx.LSTMCell(2, d, rngs=rngs)
        self.out = nnx.Linear(2 * d, 5, rngs=rngs)
    def __call__(self, src, src_len, tgt):
        carry, hs = self.enc(src, seq_lengths=src_len)
        keys_ok = jnp.arange(src.shape[1]) < src_len[:, None]
        outs = []
        for t in range(tgt.shape[1]):
            carry, h = self.dec(carry, tgt[:, t])
            s = jnp.where(keys_ok, jnp.einsum("bd,btd->bt", h, hs), -1e9)
            ctx = jnp.einsum("bt,btd->bd", jax.nn.softmax(s, -1), hs)
            outs.append(self.out(jnp.concatenate([h, ctx], -1)))
        return jnp.stack(outs, axis=1)
m = Attend(4, nnx.Rngs(0))
src = jax.random.normal(jax.random.key(0), (4, 4, 3))
print(m(src, jnp.array([4, 3, 2, 1]), jnp.ones((4, 4, 2))).shape)
""",
    "batched-key-mask-in-decoder": """
import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.GRUCell(4, 4, rngs=nnx.Rngs(0))
B, S = 4, 4
enc = jax.random.normal(jax.random.key(1), (B, S, 4))
src_lengths = jnp.array([4, 2, 3, 1])
src_mask = jnp.arange(S)[None, :] < src_lengths[:, None]
def step(h, x):
    h, y = cell(h, x)
    scores = jnp.einsum("bh,bsh->bs", y, enc)
    scores = jnp.where(src_mask, scores, -jnp.inf)
    context = jnp.einsum("bs,bsh->bh", jax.nn.softmax(scores), enc)
    return h, jnp.concatenate([y, context], -1)
h, out = jax.lax.scan(step, jnp.zeros((B, 4)), jax.random.normal(jax.random.key(2), (6, B, 4)))
print(out.shape)
""",
    "dual-path-rnn": """
import jax, jax.numpy as jnp
from flax import nnx
# within a chunk, then across chunks: (B, chunks, steps, F)
intra = nnx.RNN(nnx.GRUCell(4, 4, rngs=nnx.Rngs(0)))
inter = nnx.RNN(nnx.GRUCell(4, 4, rngs=nnx.Rngs(1)))
B, K, S = 2, 3, 5
x = jax.random.normal(jax.random.key(0), (B, K, S, 4))
y = intra(x.reshape(B * K, S, 4)).reshape(B, K, S, 4)
y = y.transpose(0, 2, 1, 3).reshape(B * S, K, 4)
z = inter(y).reshape(B, S, K, 4).transpose(0, 2, 1, 3)
print(z.shape)
""",
    "gru-d-missing-features": """
import jax, jax.numpy as jnp
from flax import nnx
# GRU-D: per-feature missingness; x and its mask are (B, T, F), all three equal
B = T = F = 3
x = jax.random.normal(jax.random.key(0), (B, T, F))
observed = jax.random.bernoulli(jax.random.key(1), 0.7, (B, T, F))
mean = x.mean((0, 1))
cell = nnx.GRUCell(2 * F, F, rngs=nnx.Rngs(0))
def step(carry, inp):
    h, last = carry
    x_t, m_t = inp
    last = jnp.where(m_t, x_t, last)
    x_hat = jnp.where(m_t, x_t, 0.5 * last + 0.5 * mean)
    h, y = cell(h, jnp.concatenate([x_hat, m_t.astype(jnp.float32)], -1))
    return (h, last), y
xs = (x.swapaxes(0, 1), observed.swapaxes(0, 1))
_, ys = jax.lax.scan(step, (jnp.zeros((B, F)), jnp.zeros((B, F))), xs)
print(ys.shape)
""",
    "packed-segments-reset": """
import jax, jax.numpy as jnp
from flax import nnx
# several short sequences packed into one row; the carry is reset where a new segment begins
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
seg = jnp.array([[0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 1, 1]])
first = jnp.concatenate([jnp.ones((2, 1), bool), seg[:, 1:] != seg[:, :-1]], 1)
x = jax.random.normal(jax.random.key(0), (2, 6, 3))
def step(h, inp):
    x_t, start = inp
    h = h * (1 - start)[:, None]
    return cell(h, x_t)
h, ys = jax.lax.scan(step, jnp.zeros((2, 4)), (x.swapaxes(0, 1), first.T.astype(jnp.float32)))
print(ys.swapaxes(0, 1).shape)
""",
    "packed-sequence-steps": """
import jax, jax.numpy as jnp
from flax import nnx
# packed like torch: sorted by length, at step t only the first n_t rows move on
cell = nnx.GRUCell(2, 3, rngs=nnx.Rngs(0))
lengths = [5, 3, 3, 1]
x = jax.random.normal(jax.random.key(0), (4, 5, 2))
h = jnp.zeros((4, 3))
for t in range(5):
    n = sum(l > t for l in lengths)
    new, _ = cell(h[:n], x[:n, t])
    h = h.at[:n].set(new)
print(h)
""",
    "rollout-reset-carry": """
import jax, jax.numpy as jnp
from flax import nnx
n_envs, H = 4, 4
cell = nnx.GRUCell(3, H, rngs=nnx.Rngs(0))
pi = nnx.Linear(H, 2, rngs=nnx.Rngs(1))
def env_step(s, a):
    s = s + 0.1 * a
    return s, jnp.abs(s).sum(-1) > 3.0
def step(carry, key):
    h, s, done = carry
    h = jnp.where(done[:, None], jnp.zeros_like(h), h)
    s = jnp.where(done[:, None], 0.0, s)
    h, y = cell(h, s)
    a = jax.random.categorical(key, pi(y))
    s, done = env_step(s, jax.nn.one_hot(a, 3))
    reward = jnp.where(done, -1.0, 1.0)
    return (h, s, done), (a, reward, done)
init = (jnp.zeros((n_envs, H)), jnp.zeros((n_envs, 3)), jnp.zeros(n_envs, bool))
_, (a, r, d) = jax.lax.scan(step, init, jax.random.split(jax.random.key(0), 12))
print(r.sum(0), d.shape)
""",
    "square-walkers-alive-ok": """
import jax, jax.numpy as jnp
from flax import nnx
n = 3
cell = nnx.GRUCell(3, 3, rngs=nnx.Rngs(0))
def step(carry, x):
    h, alive = carry
    new, y = cell(h, x)
    h = jnp.where(jnp.expand_dims(alive, -1), new, h)
    alive = alive & (y.max(-1) < 0.9)
    return (h, alive), y * alive[..., None]
(h, alive), ys = jax.lax.scan(step, (jnp.zeros((n, n)), jnp.ones(n, bool)), jax.random.normal(jax.random.key(0), (7, n, 3)))
print(alive)
""",
    "ddpm-mask-inpaint": """
import jax, jax.numpy as jnp
betas = jnp.linspace(1e-3, 0.02, 10)
abar = jnp.cumprod(1 - betas)
known = jnp.array([1.0, 1.0, 0.0, 0.0])       # which features are given
target = jnp.ones((4, 4))
def denoise(x, t):
    return x * 0.1
def step(carry, t):
    x, key = carry
    key, k1, k2 = jax.random.split(key, 3)
    eps = denoise(x, t)
    x = (x - betas[t] / jnp.sqrt(1 - abar[t]) * eps) / jnp.sqrt(1 - betas[t]) + jnp.sqrt(betas[t]) * jax.random.normal(k1, x.shape)
    noisy = jnp.sqrt(abar[t]) * target + jnp.sqrt(1 - abar[t]) * jax.random.normal(k2, x.shape)
    x = known * noisy + (1 - known) * x
    return (x, key), None
(x, _), _ = jax.lax.scan(step, (jax.random.normal(jax.random.key(0), (4, 4)), jax.random.key(1)), jnp.arange(9, -1, -1))
print(x)
""",
    "tbptt-scan-chunks": """
import jax, jax.numpy as jnp, optax
from flax import nnx
rnn = nnx.RNN(nnx.GRUCell(1, 4, rngs=nnx.Rngs(0)), return_carry=True)
head = nnx.Linear(4, 1, rngs=nnx.Rngs(1))
model = nnx.Dict(rnn=rnn, head=head)
opt = nnx.Optimizer(model, optax.adam(1e-2), wrt=nnx.Param)
wave = jnp.sin(jnp.linspace(0, 12, 61))[None, :, None]
chunks = [(wave[:, i:i + 20], wave[:, i + 1:i + 21]) for i in range(0, 60, 20)]
def loss_fn(model, h, x, y):
    h, ys = model["rnn"](x, initial_carry=h)
    return jnp.mean((model["head"](ys) - y) ** 2), h
for epoch in range(2):
    h = jnp.zeros((1, 4))
    for x, y in chunks:
        (l, h), g = nnx.value_and_grad(loss_fn, has_aux=True)(model, h, x, y)
        h = jax.lax.stop_gradient(h)
        opt.update(model, g)
print(l)
""",
    "streaming-asr": """
import jax, jax.numpy as jnp
from flax import nnx
class Streamer:
    def __init__(self, cell):
        self.rnn = nnx.RNN(cell, return_carry=True)
        self.state = None
    def push(self, audio):
        self.state, ys = self.rnn(audio, initial_carry=self.state)
        return ys
    def reset(self):
        self.state = None
s = Streamer(nnx.LSTMCell(2, 4, rngs=nnx.Rngs(0)))
for n in (3, 5, 1):
    print(s.push(jax.random.normal(jax.random.key(n), (1, n, 2))).shape)
s.reset()
print(s.push(jnp.ones((1, 2, 2))).shape)
""",
    "meta-rnn-hypernet-cell": """
import jax, jax.numpy as jnp
from flax import nnx
# a cell made of given weights in each step of an outer scan over tasks
gdef, state = nnx.split(nnx.GRUCell(2, 3, rngs=nnx.Rngs(0)))
tasks = jax.tree.map(lambda p: jnp.stack([p, 1.1 * p]), state)
x = jax.random.normal(jax.random.key(0), (5, 4, 2))
def per_task(_, st):
    cell = nnx.merge(gdef, st)
    h, ys = jax.lax.scan(lambda h, xt: cell(h, xt), jnp.zeros((4, 3)), x)
    return None, ys
_, out = jax.lax.scan(per_task, None, tasks)
print(out.shape)
""",
    "numpy-pad-sort": """
import numpy as np
import jax, jax.numpy as jnp
from flax import nnx
rng = np.random.default_rng(0)
seqs = [rng.normal(size=(n, 3)).astype(np.float32) for n in (4, 7, 2, 5)]
order = np.argsort([-len(s) for s in seqs])
seqs = [seqs[i] for i in order]
lens = np.array([len(s) for s in seqs])
batch = np.zeros((len(seqs), lens.max(), 3), np.float32)
for i, s in enumerate(seqs):
    batch[i, :len(s)] = s
rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
h, ys = rnn(jnp.asarray(batch), seq_lengths=jnp.asarray(lens))
h = h[np.argsort(order)]
print(h)
""",
    "lm-sampling-stop-token": """
import jax, jax.numpy as jnp
from flax import nnx
V, H, B = 6, 4, 4
embed = nnx.Embed(V, H, rngs=nnx.Rngs(0))
cell = nnx.GRUCell(H, H, rngs=nnx.Rngs(1))
out = nnx.Linear(H, V, rngs=nnx.Rngs(2))
END = 0
def step(carry, key):
    h, tok, done = carry
    h, y = cell(h, embed(tok))
    nxt = jax.random.categorical(key, out(y))
    nxt = jnp.where(done, END, nxt)
    done = done | (nxt == END)
    return (h, nxt, done), nxt
init = (jnp.zeros((B, H)), jnp.ones(B, int), jnp.zeros(B, bool))
(_, _, done), toks = jax.lax.scan(step, init, jax.random.split(jax.random.key(0), 8))
print(toks.T, done)
""",
}
