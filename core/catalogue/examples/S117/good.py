import jax
import jax.numpy as jnp


def step(total, x):
    total = total + x
    y = 2.0 * x
    return total, y


final, ys = jax.lax.scan(step, 0.0, jnp.array([1.0, 2.0, 3.0]))
print(final, ys)
