import jax
import jax.numpy as jnp

readings = jnp.array([100, 100, 100], jnp.int8)


def step(total, x):
    return total + x, x


total, _ = jax.lax.scan(step, 0, readings)
print(total)  # 44: the total took the dtype of one reading
