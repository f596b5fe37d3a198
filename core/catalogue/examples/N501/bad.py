import jax
import jax.numpy as jnp

probabilities = jnp.array([0.5, 0.25, 0.0, 0.5])


def step(total, p):
    return total + jnp.log(p), None


total, _ = jax.lax.scan(step, 0.0, probabilities)
print(total)  # -inf
