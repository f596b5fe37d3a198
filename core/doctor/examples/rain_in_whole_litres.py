import jax
import jax.numpy as jnp

rain = jnp.array([0.0, 2.5, 0.5, 4.0, 1.5])


def fill_up(barrel, fallen):
    barrel = 0.9 * barrel + fallen  # a tenth leaks away each day
    return barrel, barrel


level, levels = jax.lax.scan(fill_up, jnp.zeros((), int), rain)
print(levels)
