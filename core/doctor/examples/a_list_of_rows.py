import jax
import jax.numpy as jnp

monday = jnp.array([3.0, 4.0, 5.0])
tuesday = jnp.array([6.0, 7.0, 8.0])


def add_up(total, day):
    total = total + day.sum()
    return total, total


total, totals = jax.lax.scan(add_up, 0.0, [monday, tuesday])
print(totals.shape, "for two days")
