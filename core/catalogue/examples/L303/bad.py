import jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
memory = jnp.zeros(4)
memory, out = cell(memory, jnp.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]]))
