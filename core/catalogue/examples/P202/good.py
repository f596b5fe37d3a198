import jax
import jax.numpy as jnp


def step(total, x):
    total = total + jnp.where(x > 0, x, 0).sum()
    return total, None


total, _ = jax.lax.scan(step, 0.0, jnp.array([[1.0, -2.0], [3.0, 4.0]]))
