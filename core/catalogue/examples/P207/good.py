import jax
import jax.numpy as jnp


@jax.jit
def decay(x, rate):
    return x - rate * x


x = jnp.array([1.0, 2.0])
slow = decay(x, 0.1)
fast = decay(x, 0.5)
print(slow, fast)
