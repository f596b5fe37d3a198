import jax
import jax.numpy as jnp

def step(carry, x):
    new_carry = carry + x
    return new_carry, new_carry

xs = jnp.array([1., 2., 3.])
final_carry, outputs = jax.lax.scan(step, 0., xs)
assert final_carry.shape == ()
assert outputs.shape == (3,)
assert final_carry == 6.
assert jnp.array_equal(outputs, jnp.array([1., 3., 6.]))
print(final_carry, outputs)
