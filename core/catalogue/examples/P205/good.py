import jax
import jax.numpy as jnp


def step(buf, x):
    buf = buf.at[0].set(x)
    return buf, buf.sum()


buf, sums = jax.lax.scan(step, jnp.zeros(3), jnp.arange(4.0))
