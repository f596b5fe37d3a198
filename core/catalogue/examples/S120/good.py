import jax
import jax.numpy as jnp


def combine(before, after):
    """Two steps of smooth -> factor * smooth + term, as one."""
    factor, term = before
    factor_after, term_after = after
    return factor * factor_after, factor_after * term + term_after


xs = jnp.array([1.0, 2.0, 3.0, 4.0, 5.0])
factors = jnp.array([0.0, 0.9, 0.9, 0.9, 0.9])
terms = jnp.concatenate([xs[:1], 0.1 * xs[1:]])
_, smooth = jax.lax.associative_scan(combine, (factors, terms))
print(smooth)
