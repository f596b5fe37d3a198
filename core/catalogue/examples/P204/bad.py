import jax
import jax.numpy as jnp

log = []


def step(c, x):
    c = c + x
    log.append(c)
    return c, None


carry, _ = jax.lax.scan(step, 0.0, jnp.arange(5.0))
print(carry, len(log))
