"""The page's inputs as the lines of Python that they stand for: what is shown is what is run."""

from __future__ import annotations

from typing import Final

import numpy as np

from core.base.text import fill
from core.inputs.cell_fields import BFLOAT16, EXTRA_FEATURE, NO_RNGS, NONE, ONE_ARRAY, SWAPPED, TOO_WIDE, TYPED
from core.inputs.cell_inputs import SPREAD, CellInputs, carry_input_shape, typed_rows
from core.inputs.parse import UnreadableError, format_leaf
from core.runners.cell_formulas import KINDS

#: Typed numbers up to here are written out.
WRITTEN: Final = 64

IMPORTS: Final = "import jax.numpy as jnp\nfrom flax import nnx\n"
IMPORT_JAX: Final = "import jax\n"
IMPORT_NUMPY: Final = "import numpy as np\n"
BUILD: Final = "cell = nnx.{cell}({features}, {hidden}{rngs})"
INITIALIZE: Final = "carry = cell.initialize_carry({shape}{rngs}{init})"
RNGS: Final = ", rngs=nnx.Rngs({seed})"
NORMAL: Final = ", carry_init=nnx.initializers.normal({spread})"
ONES: Final = "x = jnp.ones({shape})"
NOISE: Final = "x = jnp.asarray(np.random.default_rng({seed}).standard_normal({shape}), jnp.float32)"
NUMBERS: Final = "{name} = jnp.array({numbers}, jnp.float32)"
MANY: Final = "{name} = …  # the {count} typed numbers, float32{shape}"
PAIR: Final = "carry = c, h"
ZEROS: Final = "carry = {zeros}"
STEP: Final = "new_carry, output = cell(carry, x)"
CHANGES: Final = {
    ONE_ARRAY: "carry = carry[1]  # h alone",
    SWAPPED: "carry = carry[1], carry[0]  # (h, c)",
    BFLOAT16: "carry = jax.tree.map(lambda part: part.astype(jnp.bfloat16), carry)",
}


def source(inputs: CellInputs) -> str:
    """The program; "" when an input cannot be read."""
    try:
        lines = [_build(inputs), *_carry(inputs), _input(inputs), STEP]
    except UnreadableError:
        return ""
    body = "\n".join(lines)
    numpy = IMPORT_NUMPY if "np.random" in body else ""
    return (IMPORT_JAX if "jax.tree" in body else "") + IMPORTS + numpy + "\n" + body + "\n"


def _build(inputs: CellInputs) -> str:
    rngs = "" if inputs.break_cell == NO_RNGS else fill(RNGS, seed=inputs.seed)
    return fill(BUILD, cell=inputs.cell, features=inputs.in_features, hidden=inputs.hidden_features, rngs=rngs)


def _carry(inputs: CellInputs) -> list[str]:
    pair = KINDS[inputs.cell].pair
    if inputs.break_carry == TOO_WIDE:
        zeros = f"jnp.zeros(({inputs.batch}, {inputs.hidden_features + 1}))"
        return [fill(ZEROS, zeros=f"{zeros}, {zeros}" if pair else zeros)]
    if inputs.carry == "typed":
        made = [_numbers(inputs, name if pair else "carry", f"carry_{name}") for name in KINDS[inputs.cell].parts]
        made += [PAIR] if pair else []
    else:
        rngs = "" if inputs.break_init == NO_RNGS else fill(RNGS, seed=inputs.carry_seed)
        init = fill(NORMAL, spread=SPREAD) if inputs.carry == "normal" else ""
        made = [fill(INITIALIZE, shape=carry_input_shape(inputs), rngs=rngs, init=init)]
    change = inputs.break_carry if pair or inputs.break_carry == BFLOAT16 else NONE
    return made + ([CHANGES[change]] if change in CHANGES else [])


def _input(inputs: CellInputs) -> str:
    if inputs.input in TYPED:
        return _numbers(inputs, "x", "numbers")
    shape = (inputs.batch, inputs.in_features + (inputs.break_input == EXTRA_FEATURE))
    return fill(ONES, shape=shape) if inputs.input == "ones" else fill(NOISE, shape=shape, seed=inputs.input_seed)


def _numbers(inputs: CellInputs, name: str, field: str) -> str:
    array = typed_rows(inputs, field)
    shape = tuple(array.shape)
    count = int(np.prod(shape, dtype=np.int64))
    if count > WRITTEN:
        return fill(MANY, name=name, count=count, shape=list(shape))
    numbers = format_leaf(np.asarray(array)).replace("nan", "jnp.nan").replace("inf", "jnp.inf")
    return fill(NUMBERS, name=name, numbers=numbers)
