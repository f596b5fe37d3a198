import jax
from flax import nnx

rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
a = jax.random.normal(jax.random.key(0), (2, 7, 3))
b = jax.random.normal(jax.random.key(1), (2, 6, 3))
carry, ys_a = rnn(a)
carry, ys_b = rnn(b, initial_carry=carry)
print(carry)
