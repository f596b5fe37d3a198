from flax import nnx

cell = nnx.GRUCell(3, 4, rngs=nnx.Rngs(0))
h = cell.initialize_carry((2, 3), nnx.Rngs(1), carry_init=nnx.initializers.normal(0.1))
# zeros and ones are initializers themselves.
g = cell.initialize_carry((2, 3), nnx.Rngs(1), carry_init=nnx.initializers.ones)
