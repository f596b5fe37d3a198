import jax
import jax.numpy as jnp

positions = jnp.linspace(0.0, 1.0, 6)
velocities = jnp.diff(positions)


def energy(total, sample):
    total = total + sample["x"] ** 2 + sample["v"] ** 2
    return total, total


total, curve = jax.lax.scan(energy, 0.0, {"x": positions, "v": velocities})
print(curve)
