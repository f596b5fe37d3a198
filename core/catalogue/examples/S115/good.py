import jax
import jax.numpy as jnp

batch, steps, features = 2, 5, 3
xs = jnp.ones((batch, steps, features))


def step(h, x):
    h = jnp.tanh(h + x)
    return h, h


final, hs = jax.lax.scan(step, jnp.zeros((batch, features)), jnp.moveaxis(xs, 1, 0))
print(hs.shape)  # (5, 2, 3)
