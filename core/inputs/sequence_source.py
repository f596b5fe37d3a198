"""The page's inputs as a whole program in Python: it runs by itself, prints what the page shows, and opens in the Doctor.

A layer that is told lengths, or nothing, is ``nnx.RNN`` or ``nnx.Bidirectional``. One that is given a mask, or whose
cell is built inside the step (a slip), is a `lax.scan` written out (`core.inputs.sequence_source_scan`). The data are
those of `core.inputs.sequence_source_data`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Final

from core.base.sequences import Slip
from core.base.text import fill
from core.inputs.cell_source import MINUS
from core.inputs.sequence_data import Sizes
from core.inputs.sequence_fields import BIDIRECTIONAL, LEFT_OVER, LENGTHS, MASK, NOISE, NORMAL, TYPED
from core.inputs.sequence_inputs import EARLIER_SEED, Known, SequenceInputs, read
from core.inputs.sequence_source_data import MADE, call, data_lines, literal, telling_lines
from core.inputs.sequence_source_scan import layer_of, scan_lines
from core.runners.cell_formulas import KINDS
from core.weights import script

IMPORTS: Final = "import jax\nimport jax.numpy as jnp\nimport numpy as np\nfrom flax import nnx"
CELL: Final = "cell = nnx.{cell}({features}, {hidden}, rngs=nnx.Rngs({seed}))"
FORWARD: Final = "forward = nnx.{cell}({features}, {hidden}, rngs=nnx.Rngs({seed}))"
BACKWARD: Final = "backward = nnx.{cell}({features}, {hidden}, rngs=nnx.Rngs({seed}))"
DRAWN: Final = "rng = np.random.default_rng({seed})"
DRAWN_PART: Final = "{part} = jnp.asarray(rng.standard_normal(({batch}, {hidden})), jnp.float32)"
TYPED_PART: Final = "{part} = jnp.array({numbers}, jnp.float32)"
PAIR: Final = "init = (c, h)"
ALONE: Final = "init = h"
EARLIER: Final = "earlier = {values}  # another sequence"
LEFT: Final = "left_over, _ = {layer}(jnp.asarray(earlier, jnp.float32), return_carry=True)"
RUN: Final = "carry, ys = {call}"
PRINT: Final = 'print("final carry:", carry)\nprint("outputs:", ys.shape)'


def source(inputs: SequenceInputs) -> str:
    """The program; "" when an input cannot be read."""
    parts = paragraphs(inputs)
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n" if parts else ""


def source_changes(before: SequenceInputs, after: SequenceInputs) -> tuple[tuple[str, str], ...]:
    """The lines that differ between two programs: ``("−", line)`` goes, ``("+", line)`` comes, in order.

    Empty where one cannot be read, or nothing differs.
    """
    old, new = ([line for part in paragraphs(i) for text in part for line in text.split("\n")] for i in (before, after))
    if not old or not new:
        return ()
    out: list[tuple[str, str]] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what != "equal":
            out += [(MINUS, line) for line in old[i:j]] + [("+", line) for line in new[k:m]]
    return tuple(out)


def paragraphs(inputs: SequenceInputs) -> list[list[str]]:
    """The program's paragraphs, each a list of statements; empty when an input cannot be read."""
    known, problems = read(inputs)
    if known is None or problems:
        return []
    written = inputs.masking == MASK or Slip.BUILT_IN_STEP in inputs.slips
    body = scan_lines(inputs, known, list(_left_over(inputs, known))) if written else list(_layer(inputs, known))
    cells = [] if Slip.BUILT_IN_STEP in inputs.slips and inputs.init != LEFT_OVER else list(_cells(inputs, known.sizes))
    return [
        [IMPORTS, *([] if inputs.used is None else [script.IMPORTS])],
        data_lines(inputs, known),
        telling_lines(inputs, known),
        cells + list(_init(inputs, known)),
        body,
        [PRINT],
    ]


def _cells(inputs: SequenceInputs, sizes: Sizes) -> Iterator[str]:
    names = {"cell": inputs.cell, "features": sizes[2], "hidden": inputs.hidden_features}
    weights = inputs.used
    if weights is not None:
        yield from (script.load_line(weights), "\n\n" + script.check_lines(weights) + "\n")
    if inputs.direction == BIDIRECTIONAL:
        yield fill(FORWARD, seed=inputs.seed, **names)
        yield fill(BACKWARD, seed=inputs.seed + 1, **names)
    else:
        yield fill(CELL, seed=inputs.seed, **names)
    for cell in () if weights is None else weights.architecture.cells:
        yield script.put_lines(cell)


def _init(inputs: SequenceInputs, known: Known) -> Iterator[str]:
    """``init``, where it is drawn or typed."""
    parts = KINDS[inputs.cell].parts
    if inputs.init == NORMAL:
        yield fill(DRAWN, seed=inputs.init_seed)
        for part in parts:
            yield fill(DRAWN_PART, part=part, batch=known.sizes[0], hidden=inputs.hidden_features)
    elif inputs.init == TYPED and known.init is not None:
        for part, values in zip(parts, known.init, strict=True):
            yield fill(TYPED_PART, part=part, numbers=literal(values, "jnp"))
    else:
        return
    yield fill(PAIR if len(parts) > 1 else ALONE)


def _left_over(inputs: SequenceInputs, known: Known) -> Iterator[str]:
    """The carry that another sequence leaves in such a layer."""
    if inputs.init != LEFT_OVER:
        return
    made = MADE[NOISE](known.sizes, inputs.axes, inputs.data_seed + EARLIER_SEED)
    yield fill(EARLIER, values=made[-1].removeprefix("x = "))
    yield fill(LEFT, layer="rnn")


def _layer(inputs: SequenceInputs, known: Known) -> Iterator[str]:
    yield f"rnn = {layer_of(inputs)}"
    yield from _left_over(inputs, known)
    arguments = ["x"]
    if inputs.init == LEFT_OVER:
        arguments.append("initial_carry=left_over")
    elif inputs.init == NORMAL or known.init is not None:
        arguments.append(f"initial_carry={'(init, init)' if inputs.direction == BIDIRECTIONAL else 'init'}")
    if Slip.SUMMED_MASK in inputs.slips and known.mask is not None:
        arguments.append("seq_lengths=mask.sum(axis=1)")
    elif inputs.masking == LENGTHS and known.lengths is not None:
        arguments.append("seq_lengths=lengths")
    if Slip.UNPACKED not in inputs.slips:
        arguments.append("return_carry=True")
    yield fill(RUN, call=call("rnn", arguments))
