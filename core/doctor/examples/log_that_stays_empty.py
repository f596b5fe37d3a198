import jax
import jax.numpy as jnp

log = []


def pay_in(balance, amount):
    balance = 1.02 * balance + amount
    log.append(balance)
    return balance, balance


balance, history = jax.lax.scan(pay_in, 100.0, jnp.array([20.0, 0.0, -50.0, 10.0]))
print(len(log), "entries for", len(history), "years")
