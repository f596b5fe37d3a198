import jax
import jax.numpy as jnp

prices = jnp.array([10.0, 11.0, 9.0, 12.0])


def highest(best, price):
    return jnp.maximum(best, price)


last, path = jax.lax.scan(highest, prices[0], prices)
print(path)
