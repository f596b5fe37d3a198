import jax
import jax.numpy as jnp

largest = 0.0


def step(total, x):
    global largest
    largest = jnp.maximum(largest, x)
    return total + x, None


total, _ = jax.lax.scan(step, 0.0, jnp.array([1.0, 4.0, 2.0]))
print(total / largest)
