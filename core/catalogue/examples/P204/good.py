import jax
import jax.numpy as jnp


def step(c, x):
    c = c + x
    return c, c


carry, ys = jax.lax.scan(step, 0.0, jnp.arange(5.0))
log = list(ys)
print(carry, len(log))
