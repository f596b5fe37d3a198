import jax.numpy as jnp
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.cell = nnx.GRUCell(3, 4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, h, x):
        h, y = self.cell(h, x)
        return self.drop(y)


net = Net(nnx.Rngs(0))
y = net(jnp.zeros((2, 4)), jnp.ones((2, 3)))
net.eval()
z = net(jnp.zeros((2, 4)), jnp.ones((2, 3)))
