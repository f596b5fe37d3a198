import jax
import jax.numpy as jnp

losses = jnp.array([0.9, 0.7, 0.6])
warmup = 1


def average(mean, loss):
    mean = 0.5 * mean + 0.5 * loss
    return mean, mean


mean, curve = jax.lax.scan(average, losses[0], losses[warmup:])
print(mean, curve)
