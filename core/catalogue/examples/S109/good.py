import jax


def newton(guess, _):
    guess = 0.5 * (guess + 2.0 / guess)
    return guess, guess


root, guesses = jax.lax.scan(newton, 1.0, length=6)
print(guesses)
