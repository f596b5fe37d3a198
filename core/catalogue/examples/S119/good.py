import jax
import jax.numpy as jnp


def step(position, action):
    position = position + action
    penalty = jnp.where(action > 1.0, 1.0, 0.0)
    return position, penalty


final, penalties = jax.lax.scan(step, 0.0, jnp.array([5.0, 0.0, 0.0]))
print(penalties.sum())
