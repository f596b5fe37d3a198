"""L323: copies made by nnx.vmap have the same weights."""

from __future__ import annotations

import pytest

from tests.unit.contract.cell_scripts import HEAD, WARNING, Case, look, quiet, told

CODE = "L323"

BAD = {
    "none": Case(
        HEAD
        + """
@nnx.vmap(in_axes=None, out_axes=0, axis_size=4)
def make(rngs):
    return nnx.GRUCell(3, 4, rngs=rngs)
cells = make(nnx.Rngs(0))
""",
        "make(nnx.Rngs(0))",
        WARNING,
    ),
    "tuple": Case(
        HEAD
        + """
@nnx.vmap(in_axes=(None, 0), out_axes=0)
def make(rngs, i):
    return nnx.Linear(3, 4, rngs=rngs)
layers = make(nnx.Rngs(0), jnp.arange(3))
""",
        "make(nnx.Rngs(0), jnp.arange(3))",
        WARNING,
    ),
    "call": Case(
        HEAD
        + """
class Block(nnx.Module):
    def __init__(self, rngs):
        self.a = nnx.Linear(3, 3, rngs=rngs); self.cell = nnx.LSTMCell(3, 4, rngs=rngs)
build = nnx.vmap(Block, in_axes=(None,), axis_size=5)
def main():
    r = nnx.Rngs(params=3)
    return build(r)
b = main()
""",
        "build(r)",
        WARNING,
    ),
    "axes": Case(
        HEAD
        + """
make = nnx.vmap(lambda r: nnx.LSTMCell(3, 4, rngs=r), in_axes=(nnx.StateAxes({...: None}),), axis_size=2)
c = make(nnx.Rngs(0))
""",
        "make(nnx.Rngs(0))",
        WARNING,
    ),
    "seed": Case(
        HEAD
        + """
c = nnx.vmap(lambda i: nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))(jnp.arange(3))
""",
        "nnx.vmap(lambda i: nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))(jnp.arange(3))",
        WARNING,
        fixed=False,
    ),
    "partial": Case(
        HEAD
        + """
@partial(nnx.vmap, in_axes=None, axis_size=4)
def make(rngs):
    return nnx.GRUCell(3, 4, rngs=rngs)
cells = make(nnx.Rngs(0))
""",
        "make(nnx.Rngs(0))",
        WARNING,
    ),
}

FINE = {
    "ok": HEAD
    + """
@nnx.split_rngs(splits=4)
@nnx.vmap(in_axes=0, out_axes=0)
def make(rngs):
    return nnx.GRUCell(3, 4, rngs=rngs)
a = make(nnx.Rngs(0))
b = nnx.vmap(lambda k: nnx.GRUCell(3, 4, rngs=nnx.Rngs(k)))(jax.random.split(jax.random.key(0), 3))
z = nnx.vmap(lambda: nnx.Linear(3, 4, kernel_init=nnx.initializers.ones, rngs=nnx.Rngs(0)), axis_size=3)()
one = nnx.vmap(lambda r: nnx.GRUCell(3, 4, rngs=r), in_axes=None, axis_size=1)(nnx.Rngs(0))
ys = nnx.vmap(lambda c, x: c(jnp.zeros(4), x)[1], in_axes=(None, 0))(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), jnp.ones((2, 3)))
""",
}


@pytest.mark.parametrize("name", BAD)
def test_it_is_found_and_a_fix_holds(name: str) -> None:
    told(BAD[name], CODE)


@pytest.mark.parametrize("name", FINE)
def test_near_misses_are_silent(name: str) -> None:
    quiet(FINE[name], CODE)


def test_fixed_copies_differ() -> None:
    source = look(BAD["none"].text).sources[0][0]
    names: dict[str, object] = {}
    exec(source + "\nkernel = cells.dense_h.kernel[...]\nfar = float(abs(kernel[0] - kernel[1]).max())", names)
    assert names["far"] > 0.01
