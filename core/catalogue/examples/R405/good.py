import jax


def step(position, key):
    position = position + jax.random.normal(key)
    return position, position


position, path = jax.lax.scan(step, 0.0, jax.random.split(jax.random.key(0), 4))
print(path)
