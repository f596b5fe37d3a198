import jax
import jax.numpy as jnp

deposits = jnp.array([10.0, 20.0, -5.0])


def step(balance, deposit):
    return balance + deposit, {"before": balance * 1, "after": balance + deposit}


final, history = jax.lax.scan(step, 100.0, deposits)
print(history["before"], history["after"])  # [100, 110, 130] and [110, 130, 125]
