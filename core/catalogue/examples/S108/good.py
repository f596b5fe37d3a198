import jax
import jax.numpy as jnp

tokens = jnp.array([3.0, 1.0, 4.0, 1.0, 5.0, 9.0])
steps = tokens.size - 1


def count(total, token):
    total = total + token
    return total, total


total, sums = jax.lax.scan(count, 0.0, tokens[:steps], length=steps)
print(sums)
