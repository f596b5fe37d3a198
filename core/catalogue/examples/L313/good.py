import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))


def step(h, x):
    return cell(h, x)


h, ys = jax.lax.scan(step, jnp.zeros((2, 4)), jnp.ones((5, 2, 3)))
