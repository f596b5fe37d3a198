import jax
import jax.numpy as jnp


def step(total, x):
    y = jnp.where(x > 0, jnp.log(x), 0.0)
    return total + y, y


def loss(scale):
    return jax.lax.scan(step, 0.0, scale * jnp.array([1.0, 0.0, 2.0]))[0]


print(jax.value_and_grad(loss)(1.0))
