import jax
import jax.numpy as jnp

deposits = jnp.array([10.0, 20.0, -5.0])


def step(balance, deposit):
    balance = balance + deposit
    return balance, balance


final, history = jax.lax.scan(step, 100.0, deposits)
print(history)  # [110, 130, 125]: where it started, 100, is not in it
