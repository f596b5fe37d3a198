import jax
import numpy as np


def step(position, _):
    position = position + np.random.normal()
    return position, position


position, path = jax.lax.scan(step, 0.0, None, length=4)
print(path)
