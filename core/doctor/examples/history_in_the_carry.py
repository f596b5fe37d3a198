import jax
import jax.numpy as jnp


def collatz(path, _):
    n = path[-1]
    n = jnp.where(n % 2 == 0, n // 2, 3 * n + 1)
    path = jnp.concatenate([path, n[None]])
    return path, n


path, steps = jax.lax.scan(collatz, jnp.array([27]), length=12)
print(path)
