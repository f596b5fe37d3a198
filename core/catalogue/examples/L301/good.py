import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
state = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
frames = jnp.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]])

state, out = cell(state, frames)
