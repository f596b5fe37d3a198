import jax
import jax.numpy as jnp

rewards = jnp.array([1.0, 0.0, 2.0])


def step(following, reward):
    value = reward + 0.5 * following
    return value, value


_, values = jax.lax.scan(step, 0.0, rewards, reverse=True)
returns = values[::-1]  # "it ran backwards, so turn it round": now returns[0] belongs to the last reward
print(returns)  # [2, 1, 1.5]
