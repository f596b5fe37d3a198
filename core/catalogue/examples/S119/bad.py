import jax
import jax.numpy as jnp


def step(state, action):
    position = state["position"] + action
    penalty = jnp.where(action > 1.0, 1.0, 0.0)
    return {"position": position, "penalty": penalty}, position


final, path = jax.lax.scan(step, {"position": 0.0, "penalty": 0.0}, jnp.array([5.0, 0.0, 0.0]))
print(final["penalty"])
