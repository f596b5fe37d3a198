import jax.numpy as jnp
from flax import nnx

rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)), return_carry=True)
x = jnp.array([[[1.0], [99.0], [3.0], [4.0]]])
mask = jnp.array([[True, False, True, True]])
carry, ys = rnn(x, seq_lengths=mask.sum(1))
