import jax

key = jax.random.key(0)


def step(position, step_key):
    position = position + jax.random.normal(step_key)
    return position, position


position, path = jax.lax.scan(step, 0.0, jax.random.split(key, 4))
print(path)
