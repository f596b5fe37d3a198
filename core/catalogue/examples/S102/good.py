import jax
import jax.numpy as jnp

readings = jnp.array([20.5, 21.0, 23.5, 22.0])


def smooth(state, reading):
    mean = state["mean"] + 0.3 * (reading - state["mean"])
    return {"mean": mean, "last": reading}, mean


state, means = jax.lax.scan(smooth, {"mean": readings[0], "last": readings[0]}, readings)
print(state, means)
