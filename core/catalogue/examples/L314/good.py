import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
zeros = jnp.zeros((2, 4))


def step(carry, x):
    return cell(carry, x)


init = (zeros, zeros)
# The inputs may be of a narrower type than the carry.
final, ys = jax.lax.scan(step, init, jnp.ones((5, 2, 3), jnp.bfloat16))
