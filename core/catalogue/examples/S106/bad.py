import jax


def grow(balance, _):
    balance = balance * 1.05
    return balance, balance


years = 10
balance, history = jax.lax.scan(grow, 100.0, years)
print(history)
