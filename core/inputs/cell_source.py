"""The page's inputs as the lines of Python that they stand for: what is shown is what is run."""

from __future__ import annotations

import difflib
from typing import Final

import numpy as np

from core.base.text import fill
from core.inputs.cell_fields import BFLOAT16, EXTRA_FEATURE, NO_RNGS, NONE, ONE_ARRAY, SWAPPED, TOO_WIDE, TYPED
from core.inputs.cell_inputs import SPREAD, CellInputs, carry_input_shape, typed_rows
from core.inputs.parse import UnreadableError, format_leaf
from core.runners.cell_formulas import KINDS
from core.weights import script
from core.weights.cell import CellWeights

#: Typed numbers up to here are written out.
WRITTEN: Final = 64
#: Longer lines are broken at a call's brackets: the panel that shows the program is no wider.
WIDTH: Final = 38
INDENT: Final = "    "

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
ZERO_PAIR: Final = "c = h = {zeros}\ncarry = c, h"
#: The mark of a line that goes.
MINUS: Final = "−"
STEP: Final = "new_carry, output = cell(carry, x)"
CHANGES: Final = {
    ONE_ARRAY: "carry = carry[1]  # h alone",
    SWAPPED: "carry = carry[1], carry[0]  # (h, c)",
    BFLOAT16: "carry = jax.tree.map(lambda part: part.astype(jnp.bfloat16), carry)",
}


def source(inputs: CellInputs, most: int | None = WRITTEN) -> str:
    """The program; "" when an input cannot be read. More than `most` typed numbers are left out (None: none are).

    With a file's parameters, the line that loads them is there too; None leaves it to the caller, who checks the file.
    """
    try:
        lines = _lines(inputs, most)
    except UnreadableError:
        return ""
    body = "\n".join(_broken(line) for line in lines)
    numpy = IMPORT_NUMPY if "np.random" in body else ""
    load = script.IMPORT + "\n" if most is not None and _loaded(inputs) is not None else ""
    return (IMPORT_JAX if "jax.tree" in body else "") + IMPORTS + numpy + load + "\n" + body + "\n"


def source_changes(before: CellInputs, after: CellInputs) -> tuple[tuple[str, str], ...]:
    """The lines that differ between two programs: ``("−", line)`` goes, ``("+", line)`` comes, in order.

    Statements are compared and written whole, on one line each. Empty where one cannot be read, or nothing differs.
    """
    try:
        old, new = _lines(before), _lines(after)
    except UnreadableError:
        return ()
    out: list[tuple[str, str]] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what != "equal":
            out += [(MINUS, line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
    return tuple(out)


def _broken(line: str, indent: str = "") -> str:
    """A statement as people write it: too long a call has its arguments on lines of their own, indented."""
    whole = indent + line
    start = line.find("(")
    # Lines of a block stay whole: the panel scrolls.
    if len(whole) <= WIDTH or start < 0 or "#" in line or line.startswith(" "):
        return whole
    arguments = _arguments(line[start:])
    while arguments is None and (start := line.find("(", start + 1)) >= 0:
        arguments = _arguments(line[start:])  # a call on what a call returned: the last bracket counts
    if not arguments or arguments == [""]:
        return whole
    head, inner = indent + line[: start + 1], indent + INDENT
    together = inner + ", ".join(arguments)
    if len(together) <= WIDTH:
        return "\n".join((head, together, indent + ")"))
    return "\n".join((head, *(_broken(one, inner) + "," for one in arguments), indent + ")"))


def _arguments(text: str) -> list[str] | None:
    """The arguments of ``(a, b)``; None when its first bracket closes before the end."""
    depth, begun = 0, 1
    out: list[str] = []
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0:
            return [*out, text[begun:at].strip()] if at == len(text) - 1 else None
        if depth == 1 and letter == ",":
            out.append(text[begun:at].strip())
            begun = at + 1
    return None


def _lines(inputs: CellInputs, most: int | None = WRITTEN) -> list[str]:
    parts = [*_weights(inputs, load=most is not None), *_carry(inputs, most), _input(inputs, most), STEP]
    return "\n".join(parts).split("\n")


def _loaded(inputs: CellInputs) -> CellWeights | None:
    """The file's parameters that the program needs: a cell that cannot be built has none."""
    return None if inputs.break_cell == NO_RNGS else inputs.used


def _weights(inputs: CellInputs, *, load: bool) -> list[str]:
    """The cell, and the lines that put a file's parameters into it."""
    weights = _loaded(inputs)
    if weights is None:
        return [_build(inputs)]
    loaded = [script.load_line(weights)] if load else []
    return [*loaded, _build(inputs), script.put_lines("cell")]


def _build(inputs: CellInputs) -> str:
    rngs = "" if inputs.break_cell == NO_RNGS else fill(RNGS, seed=inputs.seed)
    return fill(BUILD, cell=inputs.cell, features=inputs.in_features, hidden=inputs.hidden_features, rngs=rngs)


def _carry(inputs: CellInputs, most: int | None) -> list[str]:
    pair = KINDS[inputs.cell].pair
    if inputs.break_carry == TOO_WIDE:
        zeros = f"jnp.zeros(({inputs.batch}, {inputs.hidden_features + 1}))"
        return [fill(ZERO_PAIR if pair else ZEROS, zeros=zeros)]
    if inputs.carry == "typed":
        made = [_numbers(inputs, name if pair else "carry", f"carry_{name}", most) for name in KINDS[inputs.cell].parts]
        made += [PAIR] if pair else []
    else:
        rngs = "" if inputs.break_init == NO_RNGS else fill(RNGS, seed=inputs.carry_seed)
        init = fill(NORMAL, spread=SPREAD) if inputs.carry == "normal" else ""
        made = [fill(INITIALIZE, shape=carry_input_shape(inputs), rngs=rngs, init=init)]
    change = inputs.break_carry if pair or inputs.break_carry == BFLOAT16 else NONE
    return made + ([CHANGES[change]] if change in CHANGES else [])


def _input(inputs: CellInputs, most: int | None) -> str:
    if inputs.input in TYPED:
        return _numbers(inputs, "x", "numbers", most)
    shape = (inputs.batch, inputs.in_features + (inputs.break_input == EXTRA_FEATURE))
    return fill(ONES, shape=shape) if inputs.input == "ones" else fill(NOISE, shape=shape, seed=inputs.input_seed)


def _numbers(inputs: CellInputs, name: str, field: str, most: int | None) -> str:
    array = typed_rows(inputs, field)
    shape = tuple(array.shape)
    count = int(np.prod(shape, dtype=np.int64))
    if most is not None and count > most:
        return fill(MANY, name=name, count=count, shape=list(shape))
    numbers = format_leaf(np.asarray(array)).replace("nan", "jnp.nan").replace("inf", "jnp.inf")
    return fill(NUMBERS, name=name, numbers=numbers)
