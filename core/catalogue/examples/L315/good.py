import jax
import jax.numpy as jnp
from flax import linen as nn
from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
h, y = cell(jnp.zeros((2, 4)), jnp.ones((2, 3)))
# Linen's own way: the weights are apart.
layer = nn.Dense(4)
variables = layer.init(jax.random.key(0), jnp.ones((2, 3)))
print(layer.apply(variables, jnp.ones((2, 3))).shape)
