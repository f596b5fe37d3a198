import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.SimpleCell(5, 4, rngs=nnx.Rngs(0))


def step(h, x):
    return cell(h, x)


final, ys = jax.lax.scan(step, jnp.zeros((2, 4)), jnp.ones((6, 2, 5)))
