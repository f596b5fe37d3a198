import jax
import jax.numpy as jnp


def step(total, pair):
    part, whole = pair
    share = jnp.where(whole > 0, part / jnp.where(whole > 0, whole, 1.0), 0.0)
    return total + share, None


total, _ = jax.lax.scan(step, 0.0, (jnp.array([1.0, 0.0, 3.0]), jnp.array([2.0, 0.0, 4.0])))
print(total)
