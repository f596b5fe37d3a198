import jax.numpy as jnp
from flax import nnx

dropout = nnx.Dropout(0.5, rngs=nnx.Rngs(0))


@nnx.scan(in_axes=(None, nnx.Carry, 0), out_axes=(nnx.Carry, 0))
def run(dropout, total, x):
    masked = dropout(x)
    return total + masked.sum(), masked


total, masked = run(dropout, jnp.zeros(()), jnp.ones((3, 8)))
print(masked)
