import jax
import jax.numpy as jnp


def step(c, x):
    c = jnp.where(c > 3, c - 3, c)
    return c + x, None


final, _ = jax.lax.scan(step, 0.0, jnp.array([2.0, 2.0, 2.0]))
