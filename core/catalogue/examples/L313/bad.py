import jax
import jax.numpy as jnp
from flax import nnx


def step(h, x):
    cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
    return cell(h, x)


h, ys = jax.lax.scan(step, jnp.zeros((2, 4)), jnp.ones((5, 2, 3)))
