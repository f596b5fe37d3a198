import jax
import jax.numpy as jnp

xs = jnp.array([1.0, 2.0, 3.0, 4.0, 5.0])
smooth = jax.lax.associative_scan(lambda a, b: 0.9 * a + 0.1 * b, xs)
print(smooth)
