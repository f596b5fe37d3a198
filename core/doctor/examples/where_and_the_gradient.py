import jax
import jax.numpy as jnp

counts = jnp.array([3.0, 0.0, 5.0, 1.0])


def entropy(rate):
    def step(total, n):
        p = rate * n
        total = total - jnp.where(p > 0, p * jnp.log(p), 0.0)
        return total, total

    total, _ = jax.lax.scan(step, 0.0, counts)
    return total


print(entropy(0.1), jax.grad(entropy)(0.1))
