import jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
state = jnp.zeros((2, 4))
h, y = cell(state, jnp.ones((2, 3)))
