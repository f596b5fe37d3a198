import jax

duration, dt = 2.9, 1.0


def fall(velocity, _):
    velocity = velocity - 9.81 * dt
    return velocity, velocity


velocity, path = jax.lax.scan(fall, 0.0, length=duration / dt)
print(path)
