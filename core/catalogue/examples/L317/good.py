import jax
from flax import nnx

rnn = nnx.RNN(nnx.LSTMCell(3, 4, rngs=nnx.Rngs(0)), return_carry=True)
a = jax.random.normal(jax.random.key(0), (2, 7, 3))
b = jax.random.normal(jax.random.key(1), (2, 6, 3))
carry_a, ys_a = rnn(a)
carry_b, ys_b = rnn(b)
# The next steps of one sequence do begin with its carry.
carry = None
for start in range(0, 6, 2):
    carry, ys = rnn(b[:, start : start + 2], initial_carry=carry)
print(carry_a, carry_b, carry)
