"""L311: lengths that the padding itself was made with, and that the layer is not told."""

from __future__ import annotations

import pytest

from core.base.violation import Violation
from core.doctor.check import check_script

HEAD = """import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
raw = jax.random.normal(jax.random.key(0), (2, 6, 3))
rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
"""
LENGTHS = "lengths = jnp.array([3, 6])\n"
PADDED = LENGTHS + "x = jnp.where(jnp.arange(6)[None, :, None] < lengths[:, None, None], raw, 0.0)\n"
MASKED = LENGTHS + "mask = jnp.arange(6)[None, :] < lengths[:, None]\nx = raw * mask[..., None]\n"
FILLED = """seqs = [np.ones((3, 3)), np.ones((6, 3))]
lengths = [len(s) for s in seqs]
x = np.zeros((2, max(lengths), 3), np.float32)
for i, (s, n) in enumerate(zip(seqs, lengths)):
    x[i, :n] = s
x = jnp.asarray(x)
"""
STACKED = """lengths = jnp.array([3, 6])
rows = []
for row, n in zip(raw, lengths):
    rows.append(jnp.where(jnp.arange(6)[:, None] < n, row, 0.0))
x = jnp.stack(rows)
"""
NET = """class Net(nnx.Module):
    def __init__(self, rngs):
        self.rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=rngs), return_carry=True)
    def __call__(self, x):
        h, ys = self.rnn(x)
        return h
print(Net(nnx.Rngs(0))(x))
"""
LAYER = "(c, h), ys = rnn(x)\nprint(h)\n"
SCAN = "h, ys = jax.lax.scan(lambda h, v: cell(h, v), jnp.zeros((2, 4)), x.swapaxes(0, 1))\nprint(h)\n"
MASKED_STEP = """def step(h, inp):
    t, v = inp
    new, y = cell(h, v)
    h = jnp.where((t < lengths)[:, None], new, h)
    return h, h
h, ys = jax.lax.scan(step, jnp.zeros((2, 4)), (jnp.arange(6), x.swapaxes(0, 1)))
print(h)
"""

BAD = {
    "where": PADDED + LAYER,
    "a mask": MASKED + LAYER,
    "filled row by row": FILLED + LAYER,
    "stacked": STACKED + LAYER,
    "a scan": PADDED + SCAN,
    "in a module": PADDED + NET,
}
GOOD = {
    "told": PADDED + "(c, h), ys = rnn(x, seq_lengths=lengths)\nprint(h)\n",
    "each its own last": PADDED + "_, ys = rnn(x)\nprint(ys[jnp.arange(2), lengths - 1])\n",
    "masked afterwards": MASKED + "_, ys = rnn(x)\nprint((ys * mask[..., None]).sum())\n",
    "divided by them": PADDED + "_, ys = rnn(x)\nprint(ys.sum(1) / lengths[:, None])\n",
    "no padding": LENGTHS + "x = raw * lengths[:, None, None]\n" + LAYER,
    "masked in the step": PADDED + MASKED_STEP,
    "targets are made with them": PADDED
    + PADDED.replace("x =", "y =")
    + "_, ys = rnn(x)\nprint((ys[..., :3] - y).sum())\n",
    "returned": LENGTHS
    + "def pad():\n    x = jnp.where(jnp.arange(6)[None, :, None] < lengths[:, None, None], raw, 0.0)\n"
    "    return x, lengths\nx, n = pad()\n_, ys = rnn(x)\nprint(ys[jnp.arange(2), n - 1])\n",
}


def found(text: str) -> tuple[Violation, ...]:
    checkup = check_script(HEAD + text)
    assert checkup.report.error is None
    assert checkup.run is not None
    assert not checkup.run.problems
    checkup.close()
    return tuple(v for v in checkup.report.violations if v.code == "L311" or v.severity.breaks)


@pytest.mark.parametrize("name", BAD)
def test_to_pad_with_them_is_no_use_of_them(name: str) -> None:
    (violation,) = found(BAD[name])
    assert (violation.code, str(violation.severity)) == ("L311", "warning")
    assert violation.proof is not None
    assert violation.proof.before > 0
    assert bool(violation.fixes) is (name != "in a module")  # there the lengths have no name


@pytest.mark.parametrize("name", GOOD)
def test_what_is_a_use(name: str) -> None:
    assert found(GOOD[name]) == ()
