import jax
import jax.numpy as jnp

moves = jnp.array([[1.0, 0.5], [0.5, -1.0], [2.0, 0.0], [-1.5, 1.0]])  # east and north, four moves


def walk(place, move):
    place = place + move
    return place, place


place, track = jax.lax.scan(walk, 0.0, moves)
print(place)
