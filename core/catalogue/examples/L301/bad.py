import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
state = jnp.full((2, 4), 0.5)
frames = jnp.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 1.0]])

state, out = cell(state, frames)
