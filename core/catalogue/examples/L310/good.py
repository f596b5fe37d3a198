import jax
import jax.numpy as jnp
from flax import nnx

rnn = nnx.RNN(nnx.GRUCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
lengths = jnp.array([0, 4])
carry, ys = rnn(x, seq_lengths=lengths)
carry = jnp.where((lengths > 0)[:, None], carry, 0.0)
print(carry)
