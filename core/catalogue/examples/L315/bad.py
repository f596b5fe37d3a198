import jax.numpy as jnp
from flax import linen as nn
from flax import nnx

cell = nn.GRUCell(3, 4, rngs=nnx.Rngs(0))
h, y = cell(jnp.zeros((2, 4)), jnp.ones((2, 3)))
