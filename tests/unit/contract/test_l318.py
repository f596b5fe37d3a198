"""L318: a stochastic layer is not told its mode, or has no rngs."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, WARNING, Case, look, quiet, told

CODE = "L318"

BAD = {
    "no rngs": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5)
    def __call__(self, x):
        return self.drop(self.a(x))
net = Net(nnx.Rngs(0))
print(net(jnp.ones((2, 3))))
""",
        "self.drop(self.a(x))",
        ERROR,
    ),
    "no rngs jit": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5)
    def __call__(self, x):
        return self.drop(self.a(x))
net = Net(nnx.Rngs(0))
print(nnx.jit(lambda m, x: m(x))(net, jnp.ones((2, 3))))
""",
        "self.drop(self.a(x))",
        ERROR,
    ),
    "stream": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

r = nnx.Rngs(params=0)
d = nnx.Dropout(0.5, rngs=r)
print(d(jnp.ones((2, 3))))
""",
        "nnx.Dropout(0.5, rngs=r)",
        ERROR,
    ),
    "int": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

d = nnx.Dropout(0.5, rngs=0)
print(d(jnp.ones((2, 3))))
""",
        "nnx.Dropout(0.5, rngs=0)",
        ERROR,
    ),
    "bn": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

d = nnx.BatchNorm(3)
print(d(jnp.ones((2, 3))))
""",
        "nnx.BatchNorm(3)",
        ERROR,
    ),
    "mode none": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

d = nnx.BatchNorm(3, use_running_average=None, rngs=nnx.Rngs(0))
print(d(jnp.ones((2, 3))))
""",
        "d(jnp.ones((2, 3)))",
        ERROR,
    ),
    "attn": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

a = nnx.MultiHeadAttention(2, 8, 8, dropout_rate=0.5, decode=False, rngs=nnx.Rngs(0))
print(a(jnp.ones((1, 3, 8))))
""",
        "a(jnp.ones((1, 3, 8)))",
        ERROR,
    ),
    "eval": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.b = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, x):
        return self.b(self.drop(nnx.relu(self.a(x))))
net = Net(nnx.Rngs(0))
opt = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (8, 3)); y = x.sum(1, keepdims=True)
@nnx.jit
def train(net, opt, x, y):
    loss, g = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
    opt.update(net, g)
    return loss
for _ in range(3):
    train(net, opt, x, y)
pred = net(x)
print(pred[0])
""",
        "net(x)",
        WARNING,
    ),
    "eval bn": Case(
        HEAD
        + """\
import optax
from flax import linen as nn

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.BatchNorm(4, rngs=rngs)
        self.b = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, x):
        return self.b(self.drop(nnx.relu(self.a(x))))
net = Net(nnx.Rngs(0))
opt = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (8, 3)); y = x.sum(1, keepdims=True)
@nnx.jit
def train(net, opt, x, y):
    loss, g = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
    opt.update(net, g)
    return loss
for _ in range(3):
    train(net, opt, x, y)
pred = net(x)
print(pred[0])
""",
        "net(x)",
        WARNING,
    ),
}

FINE = {
    "eval given": HEAD
    + """\
import optax
from flax import linen as nn

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.b = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, x):
        return self.b(self.drop(nnx.relu(self.a(x))))
net = Net(nnx.Rngs(0))
opt = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (8, 3)); y = x.sum(1, keepdims=True)
@nnx.jit
def train(net, opt, x, y):
    loss, g = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
    opt.update(net, g)
    return loss
for _ in range(3):
    train(net, opt, x, y)
net.eval()
pred = net(x)
print(pred[0])
""",
    "mc": HEAD
    + """\
import optax
from flax import linen as nn

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.b = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, x):
        return self.b(self.drop(nnx.relu(self.a(x))))
net = Net(nnx.Rngs(0))
opt = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (8, 3)); y = x.sum(1, keepdims=True)
@nnx.jit
def train(net, opt, x, y):
    loss, g = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
    opt.update(net, g)
    return loss
for _ in range(3):
    train(net, opt, x, y)
pred = jnp.stack([net(x) for _ in range(4)]).mean(0)
print(pred[0])
""",
    "loss": HEAD
    + """\
import optax
from flax import linen as nn

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.b = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, x):
        return self.b(self.drop(nnx.relu(self.a(x))))
net = Net(nnx.Rngs(0))
opt = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (8, 3)); y = x.sum(1, keepdims=True)
@nnx.jit
def train(net, opt, x, y):
    loss, g = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
    opt.update(net, g)
    return loss
for _ in range(3):
    train(net, opt, x, y)
print(train(net, opt, x, y))
""",
    "det": HEAD
    + """\
import optax
from flax import linen as nn

d = nnx.Dropout(0.5); b = nnx.BatchNorm(3, use_running_average=True, rngs=nnx.Rngs(0))
print(d(jnp.ones((2, 3)), deterministic=True), b(jnp.ones((2, 3))))
d = nnx.Dropout(0.5, rngs=nnx.Rngs(0)); print(d(jnp.ones((2, 3))))
""",
    "no dropout": HEAD
    + """\
import optax
from flax import linen as nn

class Net(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.0, rngs=rngs)
        self.b = nnx.Linear(4, 1, rngs=rngs)
    def __call__(self, x):
        return self.b(self.drop(nnx.relu(self.a(x))))
net = Net(nnx.Rngs(0))
opt = nnx.Optimizer(net, optax.sgd(0.1), wrt=nnx.Param)
x = jax.random.normal(jax.random.key(0), (8, 3)); y = x.sum(1, keepdims=True)
@nnx.jit
def train(net, opt, x, y):
    loss, g = nnx.value_and_grad(lambda m: ((m(x) - y) ** 2).mean())(net)
    opt.update(net, g)
    return loss
for _ in range(3):
    train(net, opt, x, y)
print(net(x)[0])
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_the_answers_are_still_after_the_fix() -> None:
    source = look(BAD["eval"].text).sources[0][0]
    names: dict[str, object] = {}
    exec(source + "\nfar = float(abs(net(x) - net(x)).max())", names)
    assert names["far"] == 0
