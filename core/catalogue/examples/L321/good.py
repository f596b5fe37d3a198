import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(1, 3, rngs=nnx.Rngs(0))
x = jnp.array([[[1.0], [99.0], [3.0], [4.0]]])
mask = jnp.array([[True, False, True, True]])


def step(h, inputs):
    x_t, keep = inputs
    new, y = cell(h, x_t)
    return jnp.where(keep[:, None], new, h), y


carry, ys = jax.lax.scan(step, jnp.zeros((1, 3)), (jnp.swapaxes(x, 0, 1), mask.T))
# A mask without holes is a length.
padding = jnp.array([[True, True, False, False]])
_, again = nnx.RNN(cell, return_carry=True)(x, seq_lengths=padding.sum(1))
