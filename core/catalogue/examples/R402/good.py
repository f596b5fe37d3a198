import jax


def step(carry, _):
    key, position = carry
    key, sub = jax.random.split(key)
    position = position + jax.random.normal(sub)
    return (key, position), position


carry, path = jax.lax.scan(step, (jax.random.key(0), 0.0), None, length=4)
print(path)
