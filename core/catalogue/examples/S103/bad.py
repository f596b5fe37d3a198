import jax
import jax.numpy as jnp

signal = jnp.sin(jnp.arange(12.0))


def remember(window, sample):
    window = jnp.append(window, sample)
    return window, window.mean()


window, averages = jax.lax.scan(remember, jnp.zeros(4), signal)
print(averages)
