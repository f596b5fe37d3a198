import jax
import jax.numpy as jnp

update = jax.jit(lambda weights, gradient: weights - 0.1 * gradient, donate_argnums=0)
weights = jnp.array([1.0, 2.0])
weights = update(weights, jnp.array([1.0, 1.0]))
print(weights)
