import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
carry = cell.initialize_carry((2, 3))
carry, out = cell(carry, jnp.ones((2, 3)))
