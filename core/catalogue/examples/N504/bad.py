import jax
import numpy as np


def step(clock, dt):
    return clock + dt, None


clock, _ = jax.lax.scan(step, np.float64(1.0), np.full(1000, 1e-8))
print(clock)  # 1.0: float32 has no 1.00000001
