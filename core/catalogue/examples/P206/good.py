import jax
import jax.numpy as jnp

series = jnp.array([1.0, 4.0, 9.0, 16.0])


def step(t, _):
    return t + 1, series[t + 1] - series[t]


_, differences = jax.lax.scan(step, 0, None, length=3)
print(differences, series[-1])
