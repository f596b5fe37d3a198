import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))


def step(carry, x):
    (c, h), y = cell(carry, x)
    return (h, c), y


init = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
final, ys = jax.lax.scan(step, init, jnp.ones((5, 2, 3)))
