import jax.numpy as jnp
from flax import nnx

rngs = nnx.Rngs(0)
cell = nnx.LSTMCell(3, 4, rngs=rngs)
carry = cell.initialize_carry((2, 3), rngs, carry_init=nnx.initializers.normal(0.1))
carry, out = cell(carry, jnp.ones((2, 3)))
