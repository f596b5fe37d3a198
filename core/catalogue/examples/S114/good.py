import jax
import jax.numpy as jnp

rewards = jnp.array([1.0, 0.0, 2.0])


def step(following, reward):
    value = reward + 0.5 * following
    return value, value


_, values = jax.lax.scan(step, 0.0, rewards[::-1])
returns = values[::-1]  # turned round twice, by hand: returns[t] belongs to rewards[t]
print(returns)  # [1.5, 1, 2]
