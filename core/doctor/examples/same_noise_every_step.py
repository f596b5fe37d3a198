import jax
import jax.numpy as jnp

key = jax.random.key(0)


def walk(position, _):
    stride = jax.random.normal(key, (2,))
    position = position + stride
    return position, position


final, track = jax.lax.scan(walk, jnp.zeros(2), length=8)
print(track)
