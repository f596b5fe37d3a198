"""Ordinary programs: modules, cells, training loops."""

from __future__ import annotations

PROGRAMS: dict[str, str] = {}

PROGRAMS["lstm_module_over_time"] = """
import jax, jax.numpy as jnp
from flax import nnx

class Tagger(nnx.Module):
    def __init__(self, d_in, hidden, classes, *, rngs: nnx.Rngs):
        self.cell = nnx.LSTMCell(d_in, hidden, rngs=rngs)
        self.head = nnx.Linear(hidden, classes, rngs=rngs)
        self.hidden = hidden

    def __call__(self, x):  # (B, T, F)
        carry = self.cell.initialize_carry(x[:, 0].shape, rngs=nnx.Rngs(0))
        def step(carry, x_t):
            carry, h = self.cell(carry, x_t)
            return carry, self.head(h)
        carry, logits = jax.lax.scan(step, carry, jnp.swapaxes(x, 0, 1))
        return carry, logits.swapaxes(0, 1)

model = Tagger(3, 5, 2, rngs=nnx.Rngs(0))
(c, h), logits = model(jnp.ones((2, 4, 3)))
print(c.shape, h.shape, logits.shape, model.cell.hidden_features, model.head.kernel.shape)
print(jnp.round(logits[0, -1], 4), model.head.kernel.value.dtype, model.head.bias[...].shape)
"""

PROGRAMS["rnn_training_optax"] = """
import jax, jax.numpy as jnp, optax
from flax import nnx

class Net(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(1, 4, rngs=rngs))
        self.out = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, x):
        return self.out(self.rnn(x))

net = Net(nnx.Rngs(1))
opt = nnx.Optimizer(net, optax.adam(1e-2), wrt=nnx.Param)
x = jnp.sin(jnp.arange(0.0, 3.0, 0.25))[None, :, None]

@nnx.jit
def train_step(net, opt, x):
    def loss_fn(m):
        return jnp.mean((m(x[:, :-1]) - x[:, 1:]) ** 2)
    loss, grads = nnx.value_and_grad(loss_fn)(net)
    opt.update(net, grads)
    return loss

losses = [float(train_step(net, opt, x)) for _ in range(5)]
assert losses[-1] < losses[0]
print(["%.4f" % l for l in losses], int(opt.step.value))
"""

PROGRAMS["mlp_pure_jax"] = """
import jax
import jax.numpy as jnp
import optax

def init_layer(key, m, n, scale=0.1):
    w_key, b_key = jax.random.split(key)
    return {"w": scale * jax.random.normal(w_key, (m, n)), "b": jnp.zeros((n,))}

def init(key, sizes):
    keys = jax.random.split(key, len(sizes) - 1)
    return [init_layer(k, m, n) for k, m, n in zip(keys, sizes[:-1], sizes[1:])]

def forward(params, x):
    *hidden, last = params
    for layer in hidden:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ last["w"] + last["b"]

def loss(params, batch):
    x, y = batch
    return optax.l2_loss(forward(params, x), y).mean()

params = init(jax.random.key(0), [2, 8, 1])
tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(3e-3))
opt_state = tx.init(params)

@jax.jit
def update(params, opt_state, batch):
    l, grads = jax.value_and_grad(loss)(params, batch)
    updates, opt_state = tx.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, l

x = jax.random.uniform(jax.random.key(1), (16, 2))
batch = (x, x.sum(axis=1, keepdims=True))
for epoch in range(4):
    params, opt_state, l = update(params, opt_state, batch)
    if epoch % 2 == 0:
        print(f"epoch {epoch:02d} loss {l:.5f}")
print(jax.tree.map(jnp.shape, params))
"""

PROGRAMS["training_loop_as_scan"] = """
import jax, jax.numpy as jnp, optax
schedule = optax.cosine_decay_schedule(0.1, 20)
tx = optax.sgd(schedule, momentum=0.9)
params = {"w": jnp.array([2.0, -3.0])}
def loss_fn(p, x):
    return jnp.sum((p["w"] - x) ** 2)
def step(carry, x):
    p, s = carry
    l, g = jax.value_and_grad(loss_fn)(p, x)
    u, s = tx.update(g, s)
    p = optax.apply_updates(p, u)
    return (p, s), l
(params, state), losses = jax.lax.scan(step, (params, tx.init(params)), jnp.zeros((10, 2)))
print(params["w"], losses[0], losses[-1], optax.global_norm(params))
"""

PROGRAMS["lstm_by_hand"] = """
import jax, jax.numpy as jnp
from jax.nn import sigmoid
from collections import namedtuple
LSTM = namedtuple("LSTM", ["Wx", "Wh", "b"])

def init_lstm(key, d, h):
    kx, kh = jax.random.split(key)
    return LSTM(jax.random.normal(kx, (d, 4 * h)) / d ** 0.5, jax.random.normal(kh, (h, 4 * h)) / h ** 0.5, jnp.zeros(4 * h))

def lstm(p, carry, x):
    c, h = carry
    i, f, g, o = jnp.split(x @ p.Wx + h @ p.Wh + p.b, 4, axis=-1)
    c = sigmoid(f + 1.0) * c + sigmoid(i) * jnp.tanh(g)
    h = sigmoid(o) * jnp.tanh(c)
    return (c, h), h

p = init_lstm(jax.random.PRNGKey(0), 3, 4)
B, T = 2, 5
xs = jnp.linspace(-1, 1, T * B * 3).reshape(T, B, 3)
carry0 = (jnp.zeros((B, 4)), jnp.zeros((B, 4)))
(c, h), hs = jax.lax.scan(lambda s, x: lstm(p, s, x), carry0, xs)
assert jnp.allclose(hs[-1], h)
grads = jax.grad(lambda q: jax.lax.scan(lambda s, x: lstm(q, s, x), carry0, xs)[1].sum())(p)
print(hs.shape, type(grads).__name__, grads.b.shape, jnp.isfinite(grads.Wx).all())
"""

PROGRAMS["rnn_seq_lengths_bidirectional"] = """
import jax.numpy as jnp
from flax import nnx
x = jnp.arange(24.0).reshape(2, 4, 3) / 10
lengths = jnp.array([2, 4])
fwd = nnx.RNN(nnx.GRUCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
carry, ys = fwd(x, seq_lengths=lengths)
assert jnp.allclose(carry[0], ys[0, 1]) and jnp.allclose(carry[1], ys[1, 3])
bi = nnx.Bidirectional(nnx.RNN(nnx.GRUCell(3, 5, rngs=nnx.Rngs(1))), nnx.RNN(nnx.GRUCell(3, 5, rngs=nnx.Rngs(2))))
print(carry.shape, ys.shape, bi(x).shape)
for cls in (nnx.SimpleCell, nnx.LSTMCell, nnx.OptimizedLSTMCell, nnx.GRUCell):
    print(cls.__name__, nnx.RNN(cls(3, 2, rngs=nnx.Rngs(0)))(x).shape)
"""

PROGRAMS["dropout_batchnorm"] = """
import jax, jax.numpy as jnp
from flax import nnx

class Block(nnx.Module):
    def __init__(self, d, rngs):
        self.lin = nnx.Linear(d, d, rngs=rngs)
        self.bn = nnx.BatchNorm(d, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
    def __call__(self, x):
        return self.drop(nnx.relu(self.bn(self.lin(x))))

m = Block(4, nnx.Rngs(params=0, dropout=1))
x = jax.random.normal(jax.random.key(0), (8, 4))
m.train(); a = m(x)
m.eval(); b = m(x)
print(a.shape, bool((a == 0).any()), b.shape, m.bn.mean.value.shape, m.drop.rate)
"""

PROGRAMS["split_merge_state"] = """
import jax, jax.numpy as jnp
from flax import nnx

class Counter(nnx.Module):
    def __init__(self):
        self.n = nnx.Variable(jnp.zeros((), jnp.int32))
        self.w = nnx.Param(jnp.ones(3))
    def __call__(self, x):
        self.n.value += 1
        return self.w * x

m = Counter()
graphdef, params, rest = nnx.split(m, nnx.Param, ...)

@jax.jit
def f(params, rest, x):
    m = nnx.merge(graphdef, params, rest)
    y = m(x)
    return y, nnx.state(m, nnx.Not(nnx.Param))

y, rest = f(params, rest, 2.0)
nnx.update(m, rest)
print(y, m.n.value, jax.tree.map(jnp.shape, nnx.state(m, nnx.Param)))
total = sum(p.size for p in jax.tree.leaves(nnx.state(m, nnx.Param)))
print("parameters:", total)
"""

PROGRAMS["layers_with_vmap_and_scan"] = """
import jax, jax.numpy as jnp
from flax import nnx

class Layer(nnx.Module):
    def __init__(self, rngs):
        self.lin = nnx.Linear(3, 3, rngs=rngs)
    def __call__(self, x):
        return jnp.tanh(self.lin(x))

@nnx.split_rngs(splits=4)
@nnx.vmap(in_axes=(0,), out_axes=0)
def make(rngs):
    return Layer(rngs)

layers = make(nnx.Rngs(0))

@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=nnx.Carry)
def forward(x, layer):
    return layer(x)

y = forward(jnp.ones((2, 3)), layers)
print(layers.lin.kernel.shape, y.shape)
"""

PROGRAMS["custom_variable_and_sequential"] = """
import jax.numpy as jnp
from flax import nnx

class Scale(nnx.Param): pass

class Affine(nnx.Module):
    def __init__(self, d: int, rngs: nnx.Rngs):
        self.scale = Scale(jnp.ones(d))
        self.mlp = nnx.Sequential(nnx.Linear(d, 4, rngs=rngs), nnx.relu, nnx.Linear(4, d, rngs=rngs))
        self.layers = nnx.List([nnx.LayerNorm(d, rngs=rngs) for _ in range(2)])
    def __call__(self, x):
        for ln in self.layers:
            x = ln(x)
        return self.scale * self.mlp(x)

m = Affine(3, rngs=nnx.Rngs(0))
print(m(jnp.ones((2, 3))).shape, len(m.layers), isinstance(m.scale, Scale), isinstance(m, nnx.Module))
for path, v in nnx.to_flat_state(nnx.state(m)):
    print(".".join(map(str, path)), v.shape)
"""

PROGRAMS["nnx_metrics_ema"] = """
import jax.numpy as jnp
from flax import nnx
metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), acc=nnx.metrics.Accuracy())
for i in range(3):
    logits = jnp.eye(3) * (i + 1)
    metrics.update(loss=jnp.float32(i), logits=logits, labels=jnp.array([0, 1, 1]))
out = metrics.compute()
print({k: round(float(v), 4) for k, v in out.items()})
metrics.reset()
avg = nnx.metrics.Average()
avg.update(values=jnp.array([1.0, 3.0]))
print(avg.compute())
"""

PROGRAMS["linen_cell"] = """
import jax, jax.numpy as jnp
import flax.linen as nn

class Model(nn.Module):
    features: int

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(self.features)(x)
        return nn.relu(x)

m = Model(features=4)
variables = m.init(jax.random.key(0), jnp.ones((2, 3)))
y = m.apply(variables, jnp.ones((2, 3)))
print(y.shape, jax.tree.map(jnp.shape, variables["params"]))

cell = nn.LSTMCell(features=5)
carry = cell.initialize_carry(jax.random.key(0), (2, 3))
v = cell.init(jax.random.key(1), carry, jnp.ones((2, 3)))
carry, out = jax.lax.scan(lambda c, x: cell.apply(v, c, x), carry, jnp.ones((6, 2, 3)))
print(out.shape, carry[0].shape)
"""

PROGRAMS["custom_vjp_clip"] = """
import jax, jax.numpy as jnp
from functools import partial

@partial(jax.custom_vjp, nondiff_argnums=(0,))
def clip_gradient(bound, x):
    return x

def fwd(bound, x):
    return x, None

def bwd(bound, _, g):
    return (jnp.clip(g, -bound, bound),)

clip_gradient.defvjp(fwd, bwd)

@jax.custom_jvp
def softsign(x):
    return x / (1 + jnp.abs(x))

@softsign.defjvp
def softsign_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return softsign(x), t / (1 + jnp.abs(x)) ** 2

def step(c, x):
    c = clip_gradient(0.5, 3.0 * c) + x
    return c, softsign(c)

f = lambda c: jax.lax.scan(step, c, jnp.ones(4))[1].sum()
print(f(0.1), jax.grad(f)(0.1), jax.jvp(softsign, (2.0,), (1.0,)))
"""

PROGRAMS["attention_embedding"] = """
import jax, jax.numpy as jnp
from flax import nnx
rngs = nnx.Rngs(0)
emb = nnx.Embed(num_embeddings=11, features=8, rngs=rngs)
att = nnx.MultiHeadAttention(num_heads=2, in_features=8, qkv_features=8, decode=False, rngs=rngs)
tokens = jnp.array([[1, 2, 3, 0]])
mask = nnx.make_causal_mask(tokens)
y = att(emb(tokens), mask=mask)
logits = emb.attend(y)
print(y.shape, logits.shape, emb.embedding.value.shape, jnp.argmax(logits, -1).shape)
conv = nnx.Conv(1, 2, kernel_size=(3,), rngs=rngs)
print(conv(jnp.ones((1, 6, 1))).shape, nnx.RMSNorm(8, rngs=rngs)(y).shape)
"""

PROGRAMS["train_state_class"] = """
from dataclasses import dataclass, field
from typing import Any, Callable, Optional
import time
import jax, jax.numpy as jnp, numpy as np, optax

@dataclass
class Config:
    lr: float = 0.05
    epochs: int = 3
    seed: int = 0
    sizes: list = field(default_factory=lambda: [3, 1])
    note: Optional[str] = None

    def __post_init__(self):
        assert self.epochs > 0, "no epochs"

class Trainer:
    history: list

    def __init__(self, cfg: Config, loss_fn: Callable[..., jax.Array]):
        self.cfg = cfg
        self.loss_fn = loss_fn
        self.tx = optax.sgd(cfg.lr)
        self.history = []
        self._step = jax.jit(self._update)

    def _update(self, params: Any, state: Any, batch):
        loss, grads = jax.value_and_grad(self.loss_fn)(params, *batch)
        updates, state = self.tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    def fit(self, params, data):
        state = self.tx.init(params)
        t0 = time.perf_counter()
        for epoch in range(self.cfg.epochs):
            for batch in data:
                params, state, loss = self._step(params, state, batch)
                self.history.append(float(loss))
        self.seconds = time.perf_counter() - t0
        return params

rng = np.random.default_rng(0)
X = rng.normal(size=(8, 3)).astype(np.float32)
w_true = np.array([1.0, -2.0, 0.5], dtype=np.float32)
data = [(X[i:i + 4], (X @ w_true)[i:i + 4]) for i in range(0, 8, 4)]
trainer = Trainer(Config(epochs=4), lambda w, x, y: jnp.mean((x @ w - y) ** 2))
w = trainer.fit(jnp.zeros(3), data)
print(len(trainer.history), trainer.history[-1] < trainer.history[0], np.round(np.asarray(w), 3), trainer.cfg)
del trainer
"""

PROGRAMS["streaming_inference"] = """
import jax, jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(2, 3, rngs=nnx.Rngs(0))

def stream(chunks):
    h = jnp.zeros((1, 3))
    for chunk in chunks:
        h, ys = jax.lax.scan(cell, h, chunk)
        yield ys[-1]

chunks = [jnp.ones((4, 1, 2)) * s for s in (0.1, 0.2, 0.3)]
outs = list(stream(chunks))
whole = jax.lax.scan(lambda h, x: cell(h, x), jnp.zeros((1, 3)), jnp.concatenate(chunks))[1]
assert jnp.allclose(outs[-1], whole[-1], atol=1e-6)
print(len(outs), outs[-1])
"""
