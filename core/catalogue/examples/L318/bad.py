import jax.numpy as jnp
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.linear = nnx.Linear(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5)

    def __call__(self, x):
        return self.drop(self.linear(x))


net = Net(nnx.Rngs(0))
y = net(jnp.ones((2, 3)))
