import jax
import jax.numpy as jnp

rain = jnp.array([0.0, 2.5, 0.5, 4.0])


def fill_up(level, fallen):
    level = 0.9 * level + fallen
    return level, level


level, levels = jax.lax.scan(fill_up, jnp.zeros((), int), rain)
print(levels)
