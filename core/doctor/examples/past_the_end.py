import jax
import jax.numpy as jnp

notes = jnp.array([60.0, 62.0, 64.0, 65.0, 67.0])  # five notes of a melody


def glide(pitch, t):
    target = jnp.take(notes, t + 1)
    pitch = pitch + 0.5 * (target - pitch)
    return pitch, pitch


final, line = jax.lax.scan(glide, notes[0], jnp.arange(5))
print(line)
