import jax
import jax.numpy as jnp

speeds = jnp.array([1.0, 2.0, 4.0])


def step(position, speed):
    try:
        factor = min(float(speed), 2.0)  # a number, when the step runs by itself
    except jax.errors.ConcretizationTypeError:
        factor = 2.0  # traced: there is none
    return position + factor * speed, None


position, _ = jax.lax.scan(step, 0.0, speeds)
print(position)  # 14: the factor of the first step should have been 1
