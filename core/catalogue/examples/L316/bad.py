import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))


def step(carry, x):
    return cell(carry, x)


init = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
carry, ys = jax.lax.scan(step, init, jnp.ones((5, 2, 3)))
hidden = carry[0]
print(hidden[0], ys[-1][0])
