from flax import nnx


@nnx.vmap(in_axes=None, out_axes=0, axis_size=4)
def make(rngs):
    return nnx.GRUCell(3, 4, rngs=rngs)


cells = make(nnx.Rngs(0))
