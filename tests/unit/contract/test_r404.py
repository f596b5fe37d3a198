"""R404: state of a module changed in a scan that does not carry it."""

from __future__ import annotations

import numpy as np
import pytest

from core.base.violation import Severity
from core.doctor.instrument import Prepare
from tests.unit.contract.keys_support import LANGUAGES, NNX, code_at, fixed, found, only, ran, silent

RAISED = {
    "dropout": NNX
    + """\
drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
def step(c, x):
    return c + drop(x).sum(), x
print(jax.lax.scan(step, 0.0, jnp.ones((3, 4))))
""",
    "batch_norm_in_a_model": NNX
    + """\
class Net(nnx.Module):
    def __init__(self, rngs):
        self.lin = nnx.Linear(4, 4, rngs=rngs)
        self.bn = nnx.BatchNorm(4, rngs=rngs)
    def __call__(self, x):
        return self.bn(self.lin(x))
net = Net(nnx.Rngs(0))
def step(h, x):
    h = h + net(x)
    return h, h.sum()
final, sums = jax.lax.scan(step, jnp.zeros((2, 4)), jnp.ones((3, 2, 4)))
print(final.shape, sums)
""",
    "rngs": NNX
    + """\
rngs = nnx.Rngs(0)
def step(c, x):
    return c + jax.random.normal(rngs()), x
print(jax.lax.scan(step, 0.0, jnp.ones((3, 4))))
""",
    "counter": NNX
    + """\
class Count(nnx.Module):
    def __init__(self): self.n = nnx.Variable(jnp.array(0))
    def __call__(self, x):
        self.n[...] += 1
        return x
m = Count()
def step(c, x):
    return c + m(x), x
print(jax.lax.scan(step, 0.0, jnp.ones(3)))
""",
}

WHERE = {
    "dropout": "drop(x)",
    "batch_norm_in_a_model": "self.bn(self.lin(x))",
    "rngs": "rngs()",
    "counter": "self.n[...]",
}
SILENT = {
    "dropout": NNX
    + """\
drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
@nnx.scan(in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))
def step(drop, c, x):
    y = drop(x)
    return c + y.sum(), y
print(step(drop, jnp.float32(0.), jnp.ones((3, 8))))
""",
    "batch_norm": NNX
    + """\
class Net(nnx.Module):
    def __init__(self, rngs):
        self.bn = nnx.BatchNorm(4, rngs=rngs)
    def __call__(self, c, x):
        y = self.bn(x)
        return c + y.sum(), y
def run(net, xs):
    fn = nnx.scan(Net.__call__, in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))
    return fn(net, jnp.float32(0.), xs)
print(run(Net(nnx.Rngs(0)), jnp.arange(24.).reshape(3, 2, 4))[0])
""",
    "in_nnx_jit": NNX
    + """\
@nnx.jit
def run(drop, xs):
    @nnx.scan(in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))
    def step(drop, c, x):
        return c + drop(x).sum(), c
    return step(drop, jnp.zeros(()), xs)
print(run(nnx.Dropout(0.5, rngs=nnx.Rngs(0)), jnp.ones((3, 8))))
""",
}

USED = {"dropout": "drop(x)", "batch_norm": "self.bn(x)", "in_nnx_jit": "drop(x)"}
GOOD = {
    "module_in_the_carry": NNX
    + """\
drop = nnx.Dropout(0.5, rngs=nnx.Rngs(0))
@nnx.scan(in_axes=(nnx.Carry, 0), out_axes=(nnx.Carry, 0))
def step(s, x):
    drop, c = s
    y = drop(x)
    return (drop, c + y.sum()), y
print(step((drop, jnp.float32(0.)), jnp.ones((3, 8)))[1])
""",
    "state_axes": NNX
    + """\
bn = nnx.BatchNorm(4, rngs=nnx.Rngs(0))
@nnx.scan(in_axes=(nnx.StateAxes({nnx.BatchStat: nnx.Carry, ...: None}), nnx.Carry, 0), out_axes=(nnx.Carry, 0))
def step(bn, c, x):
    y = bn(x)
    return c + y.sum(), y
print(step(bn, jnp.float32(0.), jnp.arange(24.).reshape(3, 2, 4))[0])
""",
    "eval_mode": NNX
    + """\
class Net(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.LSTMCell(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.bn = nnx.BatchNorm(4, rngs=rngs)
net = Net(nnx.Rngs(0))
net.eval()
def step(net, c, x):
    c, y = net.cell(c, x)
    return c, net.bn(net.drop(y))
c0 = net.cell.initialize_carry((2, 3), nnx.Rngs(1))
print(nnx.scan(step, in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))(net, c0, jnp.ones((5, 2, 3)))[1].shape)
print(jax.lax.scan(lambda c, x: (net.cell(c, x)[0], net.drop(x)), c0, jnp.ones((5, 2, 3)))[1].shape)
""",
}


@pytest.mark.parametrize("name", RAISED)
def test_r404_raised_is_named_where_the_state_changes(name: str) -> None:
    violation, _ = only(RAISED[name], "R404")
    assert code_at(RAISED[name], violation) == WHERE[name]
    assert violation.severity is Severity.ERROR
    assert violation.jax_said is not None
    assert violation.jax_said.startswith("TraceContextError")


@pytest.mark.parametrize("name", SILENT)
def test_r404_silent_is_named_where_the_state_is_used(name: str) -> None:
    violation, _ = only(SILENT[name], "R404")
    assert code_at(SILENT[name], violation) == USED[name]
    assert violation.severity is Severity.WARNING
    assert violation.silent


@pytest.mark.parametrize("name", GOOD)
def test_state_that_is_carried_or_not_changed_is_no_fault(name: str) -> None:
    assert not found(GOOD[name], "R404")[0]
    silent(GOOD[name], "R404")


@pytest.mark.parametrize("name", ["dropout", "batch_norm_in_a_model"])
def test_a_raised_one_runs_with_its_fix(name: str) -> None:
    text, _ = fixed(RAISED[name], "R404")
    ran(text)


def test_the_fix_of_a_silent_one_draws_other_masks() -> None:
    script = SILENT["dropout"].replace("print(step(", "out = (step(")
    assert len(np.unique(np.asarray(ran(script)["out"][1]), axis=0)) == 1
    text, _ = fixed(script, "R404")
    assert len(np.unique(np.asarray(ran(text)["out"][1]), axis=0)) > 1


@pytest.mark.parametrize("prepare", LANGUAGES, ids=["python", "sandbox"])
def test_both_languages_say_the_same(prepare: Prepare) -> None:
    assert only(SILENT["batch_norm"], "R404", prepare=prepare)[0].path == "bn.mean"
    assert only(RAISED["dropout"], "R404", prepare=prepare)[0].path == "drop"
