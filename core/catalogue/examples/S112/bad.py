import jax
import jax.numpy as jnp

x = jnp.ones((3, 3))
weights = jnp.array([1.0, 10.0, 100.0])  # one for each feature


def step(total, inputs):
    x_t, w = inputs
    y = jnp.sum(x_t * w)
    return total + y, y


total, ys = jax.lax.scan(step, 0.0, (x, weights))
print(ys)  # [3, 30, 300]: step t saw the t-th weight only
