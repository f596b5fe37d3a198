import jax
import jax.numpy as jnp
from flax import nnx

T, B, F = 5, 2, 3
x = jax.random.normal(jax.random.key(0), (T, B, F))
rnn = nnx.RNN(nnx.GRUCell(F, 4, rngs=nnx.Rngs(0)))
ys = rnn(x, time_major=True)
# Or: hand over what the layer takes.
zs = rnn(jnp.swapaxes(x, 0, 1))
print(ys, zs)
