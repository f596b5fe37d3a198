import jax.numpy as jnp
from flax import nnx

cell = nnx.OptimizedLSTMCell(3, 4, rngs=nnx.Rngs(0))
carry = (jnp.ones((2, 4)), jnp.zeros((2, 4)))
carry, out = cell(carry, jnp.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]]))
