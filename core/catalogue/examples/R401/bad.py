import jax

key = jax.random.key(0)


def step(position, _):
    position = position + jax.random.normal(key)
    return position, position


position, path = jax.lax.scan(step, 0.0, None, length=4)
print(path)
