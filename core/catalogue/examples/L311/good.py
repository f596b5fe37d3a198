import jax.numpy as jnp
from flax import nnx

rnn = nnx.RNN(nnx.GRUCell(1, 3, rngs=nnx.Rngs(0)), return_carry=True)
x = jnp.array([[[1.0], [2.0], [0.0], [0.0]], [[1.0], [2.0], [3.0], [4.0]]])
lengths = jnp.array([2, 4])
carry, ys = rnn(x, seq_lengths=lengths)
# Or: leave the carry, and take each sequence's own last output.
_, outputs = rnn(x)
last = outputs[jnp.arange(2), lengths - 1]
print(carry, last)
