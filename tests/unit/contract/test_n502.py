"""N502: a gradient that is not finite, through a value that is."""

from __future__ import annotations

import numpy as np
import pytest

from core.base.violation import Severity
from core.doctor.instrument import Prepare
from tests.unit.contract.keys_support import HEAD, LANGUAGES, NNX, code_at, fixed, found, only, ran, silent

BAD = {
    "norm": HEAD
    + """\
def loss(v):
    return jnp.linalg.norm(v)
print(jax.value_and_grad(loss)(jnp.zeros(3)))
""",
    "norm_along_an_axis": HEAD
    + """\
g = jax.jit(jax.grad(lambda m: jnp.sum(jnp.linalg.norm(m, axis=-1))))
print(g(jnp.array([[0., 0.], [3., 4.]])))
""",
    "distance": HEAD
    + """\
def dist(a, b):
    return jnp.sqrt(jnp.sum((a - b) ** 2))
print(jax.grad(dist)(jnp.ones(2), jnp.ones(2)))
""",
    "division_before_where": HEAD
    + """\
def f(x, n):
    ratio = x / n
    return jnp.where(n == 0, 0.0, ratio).sum()
print(jax.grad(f, argnums=(0, 1))(jnp.ones(3), jnp.array([0.0, 1.0, 2.0])))
""",
    "training_step": HEAD
    + """\
@jax.jit
def train(w, x):
    def loss(w):
        h = x @ w
        return jnp.mean(jnp.where(h > 0, jnp.sqrt(h), 0.0))
    value, grads = jax.value_and_grad(loss)(w)
    return w - 0.1 * grads, value
w = jnp.ones(3)
x = jnp.array([[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]])
for _ in range(3):
    w, v = train(w, x)
print(w)
""",
    "vmap": HEAD
    + """\
def f(x):
    return jnp.where(x < 1.0, jnp.arccos(x), 0.0)
print(jax.vmap(jax.grad(f))(jnp.array([0.0, 1.0, 2.0])))
""",
    "vjp": HEAD
    + """\
y, back = jax.vjp(lambda v: jnp.sqrt(v).sum(), jnp.array([0.0, 1.0]))
print(y, back(1.0))
""",
    "power": HEAD
    + """\
print(jax.grad(lambda x: (x ** 2).sum() ** 0.5)(jnp.zeros(2)))
""",
    "nnx_grad": NNX
    + """\
model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
def loss(m, x):
    y = m(x) - m(x)
    return jnp.linalg.norm(y)
grads = nnx.grad(loss)(model, jnp.ones((3, 2)))
print(grads)
""",
    "gradient_in_a_scan": HEAD
    + """\
def energy(p):
    r = jnp.sqrt(jnp.sum(p ** 2))
    return 0.5 * r
def descend(p, _):
    g = jax.grad(energy)(p)
    return p - 0.1 * g, g
print(jax.lax.scan(descend, jnp.zeros(2), None, length=4))
""",
    "method_in_a_scan": HEAD
    + """\
class Model:
    def __init__(self, eps): self.eps = eps
    def step(self, h, x):
        gate = jnp.where(x != 0, 1.0 / x, 0.0)
        return h * 0.5 + gate, h
    def loss(self, s, xs):
        return jax.lax.scan(self.step, 0.0, s * xs)[0]
m = Model(0.1)
print(jax.grad(m.loss)(1.0, jnp.array([1.0, 0.0, 2.0, 4.0])))
""",
    "overflow": HEAD
    + """\
print(jax.grad(lambda x: jnp.where(x < 50.0, jnp.exp(x), 0.0))(100.0))
""",
    "standard_deviation": HEAD
    + """\
print(jax.grad(lambda x: jnp.std(x))(jnp.ones(3)))
""",
    "nnx_training": NNX
    + """\
import optax
model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
opt = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
@nnx.jit
def train(model, opt, x):
    def loss(m):
        y = m(x)
        return jnp.where(x.sum() > 0, jnp.log(x.sum() * y.sum()), 0.0)
    v, g = nnx.value_and_grad(loss)(model)
    opt.update(model, g)
    return v
for _ in range(2):
    print(train(model, opt, jnp.zeros((3, 2))))
print(model.kernel[...])
""",
}

USED = {
    "norm": "jnp.linalg.norm(v)",
    "norm_along_an_axis": "jnp.linalg.norm(m, axis=-1)",
    "distance": "jnp.sqrt(jnp.sum((a - b) ** 2))",
    "division_before_where": "x / n",
    "training_step": "jnp.sqrt(h)",
    "vmap": "jnp.arccos(x)",
    "vjp": "jnp.sqrt(v)",
    "power": "(x ** 2).sum() ** 0.5",
    "nnx_grad": "jnp.linalg.norm(y)",
    "gradient_in_a_scan": "jnp.sqrt(jnp.sum(p ** 2))",
    "method_in_a_scan": "1.0 / x",
    "overflow": "jnp.exp(x)",
    "standard_deviation": "jnp.std(x)",
    "nnx_training": "jnp.log(x.sum() * y.sum())",
}
GOOD = {
    "guarded": HEAD
    + """\
def step(c, x):
    safe = jnp.where(x > 0, x, 1.0)
    y = jnp.where(x > 0, jnp.log(safe), 0.0)
    return c + y, y
init = 0.0
xs = jnp.array([1.0, 0.0, 2.0])
g = jax.grad(lambda s: jax.lax.scan(step, init, s * xs)[0])(1.0)
print(g)""",
    "value_not_finite": HEAD
    + """\
print(jax.grad(lambda x: jnp.log(x))(0.0), jnp.log(0.0))
""",
    "no_gradient_there": HEAD
    + """\
print(jax.grad(jnp.linalg.norm)(jnp.ones(3)), jnp.log(jnp.zeros(2)))
""",
    "came_in": HEAD
    + """\
print(jax.grad(lambda x: (x * x).sum())(jnp.array([jnp.nan, 1.0])))
""",
    "masked_softmax": HEAD
    + """\
def f(s):
    s = jnp.where(jnp.array([True, False, True]), s, -jnp.inf)
    return jax.nn.softmax(s)[0]
print(jax.grad(f)(jnp.arange(3.0)))
""",
}

#: jax-ml/jax#1052.
REPORT = (
    HEAD
    + """\
def step(c, x):
    y = jnp.where(x > 0, jnp.log(x), 0.0)
    return c + y, y
init = 0.0
xs = jnp.array([1.0, 0.0, 2.0])
g = jax.grad(lambda s: jax.lax.scan(step, init, s * xs)[0])(1.0)
print(g)"""
)


@pytest.mark.parametrize("name", BAD)
def test_n502_the_expression_is_named(name: str) -> None:
    violation, _ = only(BAD[name], "N502")
    assert code_at(BAD[name], violation) == USED[name]
    assert violation.severity is Severity.WARNING
    assert violation.proof is not None
    assert violation.proof.before >= 1


@pytest.mark.parametrize("name", GOOD)
def test_no_gradient_or_no_finite_value_is_no_fault(name: str) -> None:
    assert not found(GOOD[name], "N502")[0]
    silent(GOOD[name], "N502")


@pytest.mark.parametrize("name", [n for n in BAD if n != "standard_deviation"])
def test_a_fix_is_found(name: str) -> None:
    text, _ = fixed(BAD[name], "N502")
    ran(text)


def test_the_fixed_report_has_the_right_gradient() -> None:
    text, _ = fixed(REPORT, "N502")
    assert abs(float(ran(text)["g"]) - 2.0) < 1e-5


FUNCTIONS = {
    "norm": ("jnp.linalg.norm(v)", "[0.0, 0.0]"),
    "norm_of_rows": ("jnp.linalg.norm(v.reshape(2, 2), axis=1).sum()", "[0.0, 0.0, 3.0, 4.0]"),
    "norm_of_order_two": ("jnp.linalg.norm(v, 2)", "[0.0, 0.0]"),
    "root": ("jnp.sqrt(v).sum()", "[0.0, 4.0]"),
    "power": ("(v ** 0.5).sum()", "[0.0, 4.0]"),
    "masked_log": ("jnp.where(v > 0, jnp.log(v), -1.0).sum()", "[0.0, 4.0]"),
    "masked_division": ("jnp.where(v == 0, 7.0, 1.0 / v).sum()", "[0.0, 4.0]"),
    "angle": ("jnp.arctan2(v[0], v[1])", "[0.0, 0.0]"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_fix_leaves_the_value_as_it_is(name: str) -> None:
    body, at = FUNCTIONS[name]
    script = HEAD + f"def f(v):\n    return {body}\nat = jnp.array({at})\ng = jax.grad(f)(at)\n"
    script += "there, elsewhere = f(at), (f(at + 1.0), jax.grad(f)(at + 1.0))\n"
    before, after = ran(script), ran(fixed(script, "N502")[0])
    assert not np.isfinite(before["g"]).all()
    assert np.isfinite(after["g"]).all()
    assert float(before["there"]) == float(after["there"])
    for one, two in zip(before["elsewhere"], after["elsewhere"], strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_where_a_scan_says_it_too_it_is_said_once() -> None:
    codes = [v.code for v in only(BAD["gradient_in_a_scan"], "N502")[1].report.broken]
    assert codes == ["N502"]


@pytest.mark.parametrize("prepare", LANGUAGES, ids=["python", "sandbox"])
def test_both_languages_say_the_same(prepare: Prepare) -> None:
    for name in ("training_step", "nnx_training", "vjp"):
        assert code_at(BAD[name], only(BAD[name], "N502", prepare=prepare)[0]) == USED[name]
