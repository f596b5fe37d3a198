"""The page's inputs as a program in Python that computes the same numbers; it runs by itself, and in the Doctor."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.base.text import fill
from core.inputs.gradient_fields import TYPED
from core.inputs.gradient_inputs import Array, GradientInputs
from core.inputs.parse import format_leaf

#: Typed numbers up to here are written out.
WRITTEN: Final = 400

HEAD: Final = "import jax\nimport jax.numpy as jnp\n{numpy}from flax import nnx\n\n"
NUMPY: Final = "import numpy as np\n"
SIZES: Final = "T, F, H = {length}, {features}, {hidden}\n"
DATA: Final = {
    "noise": "xs = jnp.asarray(np.random.default_rng({seed}).standard_normal((T, F)), jnp.float32)\n",
    "ones": "xs = jnp.ones((T, F))\n",
    "sine": ("t, j = jnp.arange(T)[:, None], jnp.arange(F)\nxs = jnp.sin(2 * jnp.pi * t / 16 + j * jnp.pi / 4)\n"),
    "impulse": "t, j = jnp.arange(T)[:, None], jnp.arange(F)\nxs = (t == j).astype(jnp.float32)\n",
    "alternating": "t, j = jnp.arange(T)[:, None], jnp.arange(F)\nxs = 1.0 - 2.0 * ((t + j) % 2)\n",
}
NUMBERS: Final = "xs = jnp.array({numbers}, jnp.float32)\n"
MANY: Final = "xs = jnp.zeros((T, F))  # put the {count} typed numbers here\n"
BODY: Final = '''

def memory(cell):
    """(T, T): the norm of d h_s / d x_t, of the state after step s + 1 by the input of step t."""

    def states(xs):
        def step(carry, x):
            return cell(carry, x)

        carry = cell.initialize_carry((F,), rngs=nnx.Rngs(0))
        return jax.lax.scan(step, carry, xs)[1]

    jacobian = jax.jacfwd(states)(xs)  # (T, H, T, F), in forward mode
    return jnp.sqrt((jacobian**2).sum(axis=(1, 3)))  # below 1e-19 the squares leave float32


lstm = nnx.LSTMCell(F, H, rngs=nnx.Rngs({seed}))
gru = nnx.GRUCell(F, H, rngs=nnx.Rngs({seed}))
simple = nnx.SimpleCell(F, H, rngs=nnx.Rngs({seed}))
'''
FORGET: Final = "lstm.hf.bias[...] = lstm.hf.bias[...] + {value}  # forget bias\n"
SCALES: Final = """recurrent = (lstm.hi, lstm.hf, lstm.hg, lstm.ho, gru.dense_h, simple.dense_h)
for layer in recurrent:
    layer.kernel[...] = layer.kernel[...] * {value}  # recurrent scale
"""
END: Final = """
maps = {{"LSTM": memory(lstm), "GRU": memory(gru), "Simple": memory(simple)}}
for name in maps:
    print(name, maps[name][-1, 0])  # how much the last state remembers of x_0
"""


def cells_source(inputs: GradientInputs, data: Array, most: int | None = WRITTEN) -> str:
    """The program of the cells' view; it leaves the maps in ``maps``. More than `most` typed numbers are left out."""
    body = fill(BODY, seed=inputs.seed)
    changes = fill(FORGET, value=f"{inputs.forget_bias:g}") if inputs.forget_bias else ""
    changes += fill(SCALES, value=f"{inputs.recurrent_scale:g}") if inputs.recurrent_scale != 1 else ""
    made = _data(inputs, data, most)
    sizes = fill(SIZES, length=data.shape[0], features=data.shape[1], hidden=inputs.hidden_features)
    return (
        fill(HEAD, numpy=NUMPY if "np." in made.replace("jnp.", "") else "") + sizes + made + body + changes + fill(END)
    )


def _data(inputs: GradientInputs, data: Array, most: int | None) -> str:
    if inputs.source != TYPED:
        return fill(DATA[inputs.source], seed=inputs.data_seed)
    if most is not None and data.size > most:
        return fill(MANY, count=data.size)
    numbers = format_leaf(np.asarray(data)).replace("nan", "jnp.nan").replace("inf", "jnp.inf")
    return fill(NUMBERS, numbers=numbers)
