import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))


def step(carry, x):
    # Kept as (h, c) on purpose, and turned round before each call.
    h, c = carry
    (c, h), y = cell((c, h), x)
    return (h, c), y


c, h = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
final, ys = jax.lax.scan(step, (h, c), jnp.ones((5, 2, 3)))
