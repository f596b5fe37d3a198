import jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
memory = jnp.zeros((2, 4))
memory, out = cell(memory, jnp.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]]))

# One example alone needs no batch axis on either side.
alone, out = cell(jnp.zeros(4), jnp.array([1.0, 2.0, 3.0]))
