import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=jax.random.key(0))
memory, out = cell(jnp.zeros((2, 4)), jnp.ones((2, 3)))
