import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))


def step(state, x):
    h, n = state
    _, out = cell(h, x)
    n = n + 0.5
    return (out, n), out


init = (jnp.zeros((2, 4)), jnp.int32(0))
final, ys = jax.lax.scan(step, init, jnp.ones((7, 2, 3)))
