import jax


def step(carry, _):
    key, position = carry
    position = position + jax.random.normal(key)
    key, _ = jax.random.split(key)
    return (key, position), position


carry, path = jax.lax.scan(step, (jax.random.key(0), 0.0), None, length=4)
print(path)
