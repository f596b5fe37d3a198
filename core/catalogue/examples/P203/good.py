import jax
import jax.numpy as jnp

largest = 0.0


def step(carry, x):
    total, largest = carry
    largest = jnp.maximum(largest, x)
    return (total + x, largest), None


(total, largest), _ = jax.lax.scan(step, (0.0, largest), jnp.array([1.0, 4.0, 2.0]))
print(total / largest)
