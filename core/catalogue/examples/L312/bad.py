import jax
import jax.numpy as jnp
from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
x = jax.random.normal(jax.random.key(0), (6, 4, 3))
mask = jnp.arange(6)[:, None] < jnp.array([6, 3, 2, 5])


def step(h, inputs):
    x_t, keep = inputs
    new, y = cell(h, x_t)
    return jnp.where(keep, new, h), y


h, ys = jax.lax.scan(step, jnp.zeros((4, 4)), (x, mask))
print(h)
