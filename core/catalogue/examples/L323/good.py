import jax.numpy as jnp
from flax import nnx


@nnx.split_rngs(splits=4)
@nnx.vmap(in_axes=0, out_axes=0)
def make(rngs):
    return nnx.GRUCell(3, 4, rngs=rngs)


cells = make(nnx.Rngs(0))
first = nnx.GRUCell(3, 4, rngs=nnx.Rngs(1))
h, y = first(jnp.zeros((2, 4)), jnp.ones((2, 3)))
