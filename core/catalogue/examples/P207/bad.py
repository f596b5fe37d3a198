import jax
import jax.numpy as jnp

rate = 0.1


@jax.jit
def decay(x):
    return x - rate * x


x = jnp.array([1.0, 2.0])
slow = decay(x)
rate = 0.5
fast = decay(x)
print(slow, fast)
