import jax
import jax.numpy as jnp

x = jnp.ones((3, 3))
weights = jnp.array([1.0, 10.0, 100.0])  # one for each feature


def step(total, x_t):
    y = jnp.sum(x_t * weights)
    return total + y, y


total, ys = jax.lax.scan(step, 0.0, x)
print(ys)  # [111, 111, 111]
