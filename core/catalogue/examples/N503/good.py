import jax
import jax.numpy as jnp

speeds = jnp.array([1.0, 2.0, 4.0])


def step(position, speed):
    return position + jnp.minimum(speed, 2.0) * speed, None


position, _ = jax.lax.scan(step, 0.0, speeds)
print(position)  # 13
