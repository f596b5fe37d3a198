"""L316: c is taken for h, or the arguments of a cell change places."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import ERROR, HEAD, NOTE, WARNING, Case, look, quiet, told

CODE = "L316"

BAD = {
    "lstm-cell-state-mistaken-for-hidden": Case(
        """\
import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
def step(carry, x):
    return cell(carry, x)
init = cell.initialize_carry((2, 3), nnx.Rngs(0))
xs = jnp.ones((5, 2, 3))
carry, ys = jax.lax.scan(step, init, xs)
hidden = carry[0]
print(hidden[0], ys[-1][0])""",
        "carry[0]",
        WARNING,
        check="assert bool(jnp.allclose(hidden, ys[-1]))",
    ),
    "cell-arguments-swapped": Case(
        """\
import jax, jax.numpy as jnp
from flax import nnx
cell = nnx.GRUCell(4, 4, rngs=nnx.Rngs(0))
h = jnp.zeros((2, 4))
x = jnp.ones((2, 4))
h_new, y = cell(x, h)
print(y[0])""",
        "x",
        WARNING,
        check="assert bool(jnp.allclose(y, cell(h,x)[1]))",
    ),
    "renamed": Case(
        HEAD
        + """
unit = nnx.OptimizedLSTMCell(2, 6, rngs=nnx.Rngs(1))
def go(s, v):
    return unit(s, v)
a = unit.initialize_carry((3, 2), nnx.Rngs(0))
seq = jnp.ones((7, 3, 2))
b, outs = lax.scan(go, a, seq)
q = b[0]
print(q[0], outs[-1][0])
""",
        "b[0]",
        NOTE,
        check="assert jnp.array_equal(q, outs[-1])",
    ),
    "module": Case(
        HEAD
        + """
class Enc(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.LSTMCell(3, 5, rngs=rngs)
        self.head = nnx.Linear(5, 2, rngs=rngs)
    def __call__(self, x):
        carry = self.cell.initialize_carry(x[0].shape, nnx.Rngs(0))
        carry, ys = jax.lax.scan(lambda c, t: self.cell(c, t), carry, x)
        return self.head(carry[0])
m = Enc(nnx.Rngs(0))
print(m(jnp.ones((4, 2, 3))).shape)
""",
        "carry[0]",
        NOTE,
    ),
    "jit": Case(
        HEAD
        + """
cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
@jax.jit
def run(xs):
    init = (jnp.zeros((2, 5)), jnp.zeros((2, 5)))
    return jax.lax.scan(cell, init, xs)
final, ys = run(jnp.ones((4, 2, 3)))
hidden = final[0]
print(hidden)
""",
        "final[0]",
        WARNING,
        check="assert jnp.array_equal(hidden, ys[-1])",
    ),
    "rnn": Case(
        HEAD
        + """
rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)), return_carry=True)
(h, c), ys = rnn(jnp.ones((2, 4, 3)))
print(h[0])
""",
        "h",
        WARNING,
        check="assert jnp.array_equal(h, ys[:, -1])",
    ),
    "rnn2": Case(
        HEAD
        + """
rnn = nnx.RNN(nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)))
head = nnx.Linear(5, 1, rngs=nnx.Rngs(1))
carry, ys = rnn(jnp.ones((2, 4, 3)), return_carry=True)
logits = head(carry[0])
print(logits)
""",
        "carry[0]",
        NOTE,
    ),
    "loop": Case(
        HEAD
        + """
cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
carry = cell.initialize_carry((2, 3), nnx.Rngs(0))
x = jnp.ones((20, 2, 3))
for t in range(20):
    carry, y = cell(carry, x[t])
last_hidden, _ = carry
print(last_hidden.sum())
""",
        "last_hidden",
        WARNING,
    ),
    "step-y": Case(
        HEAD
        + """
cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
def step(carry, x):
    carry, _ = cell(carry, x)
    return carry, carry[0]
carry, ys = jax.lax.scan(step, cell.initialize_carry((2, 3), nnx.Rngs(0)), jnp.ones((4,2,3)))
print(ys)
""",
        "carry[0]",
        NOTE,
    ),
    "func": Case(
        HEAD
        + """
def encode(cell, xs):
    carry = cell.initialize_carry(xs.shape[1:], nnx.Rngs(0))
    step = partial(lambda cell, c, x: cell(c, x), cell)
    carry, _ = jax.lax.scan(step, carry, xs)
    return carry[0]
cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
z = encode(cell, jnp.ones((4, 2, 3)))
print(z @ jnp.ones((5, 2)))
""",
        "carry[0]",
        NOTE,
    ),
    "nnxscan": Case(
        HEAD
        + """
cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
@nnx.scan(in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))
def run(cell, carry, x):
    return cell(carry, x)
carry, ys = run(cell, cell.initialize_carry((2, 3), nnx.Rngs(0)), jnp.ones((4,2,3)))
hidden = carry[0]
print(hidden)
""",
        "carry[0]",
        WARNING,
    ),
    "nested": Case(
        HEAD
        + """
a = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0)); b = nnx.LSTMCell(5, 5, rngs=nnx.Rngs(1))
def step(carry, x):
    ca, cb = carry['a'], carry['b']
    ca, y = a(ca, x)
    cb, y = b(cb, y)
    return {'a': ca, 'b': cb}, y
init = {'a': a.initialize_carry((2,3), nnx.Rngs(0)), 'b': b.initialize_carry((2,5), nnx.Rngs(0))}
final, ys = jax.lax.scan(step, init, jnp.ones((4,2,3)))
top = final['b'][0]
print(top)
""",
        "final['b'][0]",
        NOTE,
    ),
    "swapped renamed": Case(
        HEAD
        + """
g = nnx.SimpleCell(6, 6, rngs=nnx.Rngs(3))
p = jnp.zeros((3, 6)); q = jnp.ones((3, 6))
r, s = g(q, p)
print(s)
""",
        "q",
        NOTE,
    ),
    "swapped init": Case(
        HEAD
        + """
g = nnx.GRUCell(6, 6, rngs=nnx.Rngs(3))
p = g.initialize_carry((3, 6), nnx.Rngs(0)); q = jnp.ones((3, 6))
p, s = g(q, p)
print(s)
""",
        "q",
        WARNING,
    ),
    "swapped scan": Case(
        HEAD
        + """
g = nnx.GRUCell(6, 6, rngs=nnx.Rngs(3))
def step(s, v):
    return g(v, s)
print(jax.lax.scan(step, jnp.zeros((3, 6)), jnp.ones((4, 3, 6)))[0])
""",
        "v",
        WARNING,
    ),
    "swapped scanjit": Case(
        HEAD
        + """
g = nnx.GRUCell(6, 6, rngs=nnx.Rngs(3))
@jax.jit
def run(xs):
    def step(s, v):
        s, y = g(v, s)
        return s, y
    return jax.lax.scan(step, jnp.zeros((3, 6)), xs)
print(run(jnp.ones((4, 3, 6)))[0])
""",
        "v",
        WARNING,
    ),
    "swapped module": Case(
        HEAD
        + """
class M(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.GRUCell(4, 4, rngs=rngs)
    def __call__(self, x):
        h = jnp.zeros(x.shape)
        h_new, y = self.cell(x, h)
        return y
print(M(nnx.Rngs(0))(jnp.ones((2, 4))))
print(nnx.jit(M(nnx.Rngs(0)))(jnp.ones((2, 4))))
""",
        "x",
        WARNING,
    ),
    "swapped loop": Case(
        HEAD
        + """
g = nnx.GRUCell(6, 6, rngs=nnx.Rngs(3))
h = jnp.zeros((3, 6))
for x in jnp.ones((4, 3, 6)):
    h, y = g(x, h)
print(h)
""",
        "x",
        WARNING,
    ),
    "swapped lstm": Case(
        HEAD
        + """
g = nnx.LSTMCell(3, 6, rngs=nnx.Rngs(3))
carry = g.initialize_carry((2, 3), nnx.Rngs(0))
carry, y = g(jnp.ones((2, 3)), carry)
print(y)
""",
        "jnp.ones((2, 3))",
        ERROR,
    ),
    "swapped lstm44": Case(
        HEAD
        + """
g = nnx.LSTMCell(4, 4, rngs=nnx.Rngs(3))
carry = g.initialize_carry((2, 4), nnx.Rngs(0))
carry, y = g(jnp.ones((2, 4)), carry)
print(y)
""",
        "jnp.ones((2, 4))",
        WARNING,
    ),
    "swapped gru34": Case(
        HEAD
        + """
g = nnx.GRUCell(3, 4, rngs=nnx.Rngs(3))
h = jnp.zeros((2, 4))
h, y = g(jnp.ones((2, 3)), h)
print(y)
""",
        "jnp.ones((2, 3))",
        ERROR,
    ),
    "swapped grulstmscan": Case(
        HEAD
        + """
g = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(3))
carry = g.initialize_carry((2, 3), nnx.Rngs(0))
carry, ys = jax.lax.scan(lambda c, x: g(x, c), carry, jnp.ones((5, 2, 3)))
print(ys)
""",
        "x",
        ERROR,
    ),
}

FINE = {
    "log": HEAD
    + """
cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
carry, ys = jax.lax.scan(cell, cell.initialize_carry((2, 3), nnx.Rngs(0)), jnp.ones((4,2,3)))
print("c", carry[0], carry[0].shape, f"{float(jnp.abs(carry[0]).max()):.3f}")
norms = []
norms.append(carry[0])
""",
    "both": HEAD
    + """
cell = nnx.LSTMCell(3, 5, rngs=nnx.Rngs(0))
carry, ys = jax.lax.scan(cell, cell.initialize_carry((2, 3), nnx.Rngs(0)), jnp.ones((4,2,3)))
memory, out = carry
print(memory @ jnp.ones(5), out @ jnp.ones(5))
z = jnp.concatenate([carry[0], carry[1]], -1)
""",
    "hc order": HEAD
    + """
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
def step(carry, x):
    h, c = carry
    (c, h), y = cell((c, h), x)
    return (h, c), y
c, h = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
final, ys = jax.lax.scan(step, (h, c), jnp.ones((5, 2, 3)))
hidden = final[0]
print(hidden @ jnp.ones(4))
""",
    "custom": HEAD
    + """
class G(nnx.Module):
    def __init__(self, rngs): self.l = nnx.Linear(8, 4, rngs=rngs)
    def __call__(self, carry, x):
        c, n = carry
        c = jnp.tanh(self.l(jnp.concatenate([c, x], -1)))
        return (c, n + 1), c
g = G(nnx.Rngs(0))
carry, ys = jax.lax.scan(lambda s, x: g(s, x), (jnp.zeros((2,4)), jnp.zeros(())), jnp.ones((5, 2, 4)))
h = carry[0]
print(h)
""",
    "emit c": HEAD
    + """
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
def step(carry, x):
    (c, h), y = cell(carry, x)
    return (c, h), (c, h)
def step2(carry, x):
    (c, h), y = cell(carry, x)
    return (c, h), c
i = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
print(jax.lax.scan(step, i, jnp.ones((5, 2, 3)))[1][0])
print(jax.lax.scan(step2, i, jnp.ones((5, 2, 3)))[1][0])
""",
    "state carried over": HEAD
    + """
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
carry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
for chunk in jnp.ones((3, 5, 2, 3)):
    (c, h), ys = jax.lax.scan(cell, carry, chunk)
    carry = (c * 0.5, h)
print(ys)
""",
    "stacked gru": HEAD
    + """
a = nnx.GRUCell(4, 4, rngs=nnx.Rngs(0)); b = nnx.GRUCell(4, 4, rngs=nnx.Rngs(1))
h1 = jnp.zeros((2,4)); h2 = jnp.ones((2,4))
x = jnp.ones((2,4))
for t in range(3):
    h1, y = a(h1, x)
    h2, y = b(h2, y)
h, y = a(h1, h1)
h, y = a(h, y)
def step(carry, x):
    h1, h2 = carry
    n1, y = a(h1, x)
    n2, y = b(h2, h1)
    return (n1, n2), y
print(jax.lax.scan(step, (h1, h2), jnp.ones((4, 2, 4)))[0])
h, y = a(h, jnp.zeros((2, 4)))
""",
    "peephole loss": HEAD
    + """
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
def loss(cell):
    (c, h), ys = jax.lax.scan(lambda s, x: cell(s, x), cell.initialize_carry((2, 3), nnx.Rngs(0)), jnp.ones((4,2,3)))
    return (h ** 2).sum() + 1e-3 * (c ** 2).sum()
print(nnx.grad(loss)(cell))
""",
    "named the wrong way, given back": HEAD
    + """
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
carry = cell.initialize_carry((2, 3), nnx.Rngs(1))
for x in jnp.ones((4, 2, 3)):
    carry, y = cell(carry, x)
first, second = carry
carry, y = cell((first, second), x)
carry = jax.tree.map(lambda h: h * 0.5, carry)
print(y)
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_a_name_that_says_h_for_a_state_that_only_goes_back_is_a_note() -> None:
    """Wrong names for the two parts do no harm as long as their order is kept."""
    text = (
        HEAD
        + """
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
carry = cell.initialize_carry((2, 3), nnx.Rngs(1))
carry, y = cell(carry, jnp.ones((2, 3)))
h, c = carry
carry, y = cell((h, c), jnp.ones((2, 3)))
print(y)
"""
    )
    report = look(text, fixes=False).report
    assert not report.broken
    assert [v.severity for v in report.violations if v.code == CODE] == [NOTE]


def test_the_numbers_are_those_of_the_script() -> None:
    """The proof is the distance of c and h, measured on what the script computed."""
    case = BAD["jit"]
    checkup = look(case.text, fixes=False)
    final = checkup.run.record.names["final"]
    proof = told(case, CODE).proof
    assert proof.before == pytest.approx(float(abs(final[0] - final[1]).max()), rel=1e-6)
