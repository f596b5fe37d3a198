import jax
import jax.numpy as jnp


def step(total, x):
    total = total + x
    return total, total


xs = jax.random.normal(jax.random.key(0), (8,))
final, ys = jax.lax.scan(step, 0.0, xs)
