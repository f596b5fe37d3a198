import jax
from flax import nnx

rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)))
x = jax.random.normal(jax.random.key(0), (2, 5, 3))
carry, ys = rnn(x, return_carry=True)
outputs = rnn(x)
print(ys.shape, outputs.shape)
