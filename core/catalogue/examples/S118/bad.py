import jax
import jax.numpy as jnp


def step(carry, x):
    h, activation = carry
    h = activation(h + x)
    return (h, activation), h


final, ys = jax.lax.scan(step, (jnp.array(0.0), jnp.tanh), jnp.ones(3))
print(ys)
