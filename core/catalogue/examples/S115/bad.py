import jax
import jax.numpy as jnp

batch, steps, features = 2, 5, 3
xs = jnp.ones((batch, steps, features))


def step(h, x):
    h = jnp.tanh(h + x)
    return h, h


final, hs = jax.lax.scan(step, jnp.zeros((batch, features)), xs)  # scans over the two examples
