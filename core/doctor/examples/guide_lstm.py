import jax.numpy as jnp
from flax import nnx
cell = nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0))
carry = cell.initialize_carry((2, 3), rngs=nnx.Rngs(1))
new_carry, output = cell(carry, jnp.ones((2, 3)))
assert len(carry) == 2 and len(new_carry) == 2
assert carry[0].shape == carry[1].shape == (2, 4)
assert new_carry[0].shape == new_carry[1].shape == (2, 4)
assert output.shape == (2, 4)
assert jnp.isfinite(output).all()
print([v.shape for v in new_carry], output.shape)
