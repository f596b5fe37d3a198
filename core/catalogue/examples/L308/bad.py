import jax
import jax.numpy as jnp
from flax import nnx

frames = jnp.ones((5, 2, 3))
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
init = cell.initialize_carry(frames.shape, rngs=nnx.Rngs(1))


def step(carry, frame):
    return cell(carry, frame)


final, ys = jax.lax.scan(step, init, frames)
