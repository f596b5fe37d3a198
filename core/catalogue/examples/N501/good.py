import jax
import jax.numpy as jnp

probabilities = jnp.array([0.5, 0.25, 0.0, 0.5])


def step(total, p):
    return total + jnp.log(jnp.maximum(p, 1e-6)), None


total, _ = jax.lax.scan(step, 0.0, probabilities)
print(total)
