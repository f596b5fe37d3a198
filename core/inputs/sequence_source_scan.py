"""A layer over sequences written out as a `lax.scan`: with a mask in its step, or with its cell built there (a slip)."""

from __future__ import annotations

from typing import Final

from core.base.sequences import Slip
from core.base.text import fill
from core.inputs.sequence_fields import BIDIRECTIONAL, BTF, LEFT_OVER, LENGTHS, MASK, NORMAL, REVERSE, TYPED
from core.inputs.sequence_inputs import Known, SequenceInputs
from core.inputs.sequence_source_data import INDENT, call
from core.runners.cell_formulas import KINDS

TIME_FIRST: Final = "xs = {x}"
WITH_MASK: Final = "xs = ({x}, {mask})"
TURN: Final = ".swapaxes(0, 1)"
FROM_THE_END: Final = "xs = jax.tree.map(lambda a: a[::-1], xs)  # visited from the end"
ORDER: Final = "order = (jnp.arange({length})[::-1, None] + lengths) % {length}  # each from its own end"
VISIT: Final = "{xs} = jnp.take_along_axis({xs}, order[..., None], axis=0)"
BUILD: Final = "cell = nnx.{cell}({features}, {hidden}, rngs=nnx.Rngs({seed}))"
INITIALIZE: Final = "init = {cell}.initialize_carry(({batch}, {features}), rngs=nnx.Rngs({seed}))"
ZEROS: Final = "jnp.zeros(({batch}, {hidden}))"
KEEP: Final = "carry = jax.tree.map(lambda n, o: jnp.where(keep{axis}, n, o), new, carry)"
LAST: Final = "carry = jax.tree.map(lambda a: a[lengths - 1, jnp.arange(a.shape[1])], carries)"
JOIN: Final = "ys = jnp.concatenate([ys_forward, ys_backward], axis=-1)"


def scan_lines(inputs: SequenceInputs, known: Known, left_over: list[str]) -> list[str]:
    """From init to ``carry, ys``, these named as a layer of Flax gives them.

    Args:
        inputs: with a mask, or with the slip of a cell built inside the step.
        known: the same, read.
        left_over: the lines that run another sequence, whose carry is init; they use a layer ``rnn``.
    """
    both = inputs.direction == BIDIRECTIONAL
    return [
        *_layer_before(inputs, left_over),
        *_init(inputs, known),
        *_sequence(inputs),
        *(_two_ways(inputs, known) if both else _one_way(inputs, known)),
        *([] if inputs.time_major else [f"ys = ys{TURN}"]),
    ]


def layer_of(inputs: SequenceInputs) -> str:
    """``nnx.RNN(cell, …)``, or ``nnx.Bidirectional(…)`` of two."""
    time_major = ["time_major=True"] if inputs.time_major else []
    unroll = [f"unroll={inputs.unroll}"] if inputs.unroll != 1 else []
    if inputs.direction == BIDIRECTIONAL:
        both = [call("nnx.RNN", [name, *unroll]) for name in ("forward", "backward")]
        return call("nnx.Bidirectional", [*both, *time_major])
    way = ["reverse=True"] if inputs.direction == REVERSE else []
    order = ["keep_order=True"] if way and inputs.keep_order else []
    return call("nnx.RNN", ["cell", *time_major, *way, *order, *unroll])


def _layer_before(inputs: SequenceInputs, left_over: list[str]) -> list[str]:
    if not left_over:
        return []
    return [f"rnn = {layer_of(inputs)}", *left_over]


def _init(inputs: SequenceInputs, known: Known) -> list[str]:
    """``init`` of zeros; one that is drawn or typed is there already, one that is left over is `left_over`."""
    if inputs.init in (NORMAL, TYPED):
        return []
    if inputs.init == LEFT_OVER:
        return [] if inputs.direction == BIDIRECTIONAL else ["init = left_over"]
    batch = _read_sizes(inputs, known)[1]
    if Slip.BUILT_IN_STEP not in inputs.slips:
        cell = "forward" if inputs.direction == BIDIRECTIONAL else "cell"
        return [fill(INITIALIZE, cell=cell, batch=batch, features=known.sizes[2], seed=inputs.seed)]
    zeros = fill(ZEROS, batch=batch, hidden=inputs.hidden_features)
    return [f"c = h = {zeros}", "init = (c, h)"] if KINDS[inputs.cell].pair else [f"init = {zeros}"]


def _sequence(inputs: SequenceInputs) -> list[str]:
    """``xs``: the data, and the mask with them, time-first as the layer is told."""
    x = "x" if inputs.time_major else f"x{TURN}"
    if inputs.masking != MASK:
        return [fill(TIME_FIRST, x=x)]
    return [fill(WITH_MASK, x=x, mask="mask" if _misread(inputs) else "mask.T")]


def _misread(inputs: SequenceInputs) -> bool:
    return inputs.time_major == (inputs.axes == BTF)


def _read_sizes(inputs: SequenceInputs, known: Known) -> tuple[int, int]:
    """T and B as the layer takes them."""
    batch, length, _ = known.sizes
    return (batch, length) if _misread(inputs) else (length, batch)


def _step(inputs: SequenceInputs, known: Known, seed: int | str) -> list[str]:
    """The lines of the step."""
    masked, built = inputs.masking == MASK, Slip.BUILT_IN_STEP in inputs.slips
    lines = [f"def step(carry, {'inputs' if masked else 'x_t'}):"]
    body = ["x_t, keep = inputs  # (B, F) and (B,)"] if masked else []
    if built:
        names = {"cell": inputs.cell, "features": known.sizes[2], "hidden": inputs.hidden_features}
        body.append(fill(BUILD, seed=seed, **names))
    if masked:
        axis = "" if Slip.FEATURE_MASK in inputs.slips else "[:, None]"
        body += ["new, y = cell(carry, x_t)", fill(KEEP, axis=axis), "return carry, y"]
    elif _selects(inputs, known):
        body += ["carry, y = cell(carry, x_t)", "return carry, (carry, y)"]
    else:
        body.append("return cell(carry, x_t)")
    return [*lines, *(INDENT + line for line in body)]


def _selects(inputs: SequenceInputs, known: Known) -> bool:
    return inputs.masking == LENGTHS and known.lengths is not None


def _scan(inputs: SequenceInputs, known: Known, init: str, reverse: str | None) -> list[str]:
    """The scan, and the carry after each example's last step where lengths are given."""
    arguments = ["step", init, "xs"]
    if reverse is not None:
        arguments.append(f"reverse={reverse}")
    if inputs.unroll != 1:
        arguments.append(f"unroll={inputs.unroll}")
    made = call("jax.lax.scan", arguments)
    if not _selects(inputs, known):
        return [f"carry, ys = {made}"]
    return [f"carry, (carries, ys) = {made}", LAST]


def _one_way(inputs: SequenceInputs, known: Known) -> list[str]:
    before: list[str] = []
    after: list[str] = []
    reverse = None
    if inputs.direction == REVERSE:
        if _selects(inputs, known):
            before = [fill(ORDER, length=_read_sizes(inputs, known)[0]), fill(VISIT, xs="xs")]
            after = [fill(VISIT, xs="ys")] if inputs.keep_order else []
        elif inputs.keep_order:
            reverse = "True"
        else:
            before = [FROM_THE_END]
    step = _step(inputs, known, inputs.seed)
    return [*before, "\n", *step, "\n", *_scan(inputs, known, "init", reverse), *after]


def _two_ways(inputs: SequenceInputs, known: Known) -> list[str]:
    """A function that scans in one direction, called for each."""
    built, selects = Slip.BUILT_IN_STEP in inputs.slips, _selects(inputs, known)
    body = ["", *_step(inputs, known, "seed"), ""]
    if selects:
        body = ["if backwards:", INDENT + fill(VISIT, xs="xs"), *body, *_scan(inputs, known, "init", None)]
        body += ["if backwards:", INDENT + fill(VISIT, xs="ys"), "return carry, ys"]
    else:
        scan = _scan(inputs, known, "init", "backwards")
        body += [*scan[:-1], scan[-1].replace("carry, ys = ", "return ", 1)]
    inner = [INDENT + line if line else "" for text in body for line in text.split("\n")]
    head = f"def run({'seed' if built else 'cell'}, init, xs, backwards=False):"
    left = inputs.init == LEFT_OVER
    starts = ("left_over[0]", "left_over[1]") if left else ("init", "init")
    names = (str(inputs.seed), str(inputs.seed + 1)) if built else ("forward", "backward")
    return [
        *([fill(ORDER, length=_read_sizes(inputs, known)[0])] if selects else []),
        "\n",
        head,
        *inner,
        "\n",
        f"carry_forward, ys_forward = run({names[0]}, {starts[0]}, xs)",
        f"carry_backward, ys_backward = run({names[1]}, {starts[1]}, xs, backwards=True)",
        "carry = (carry_forward, carry_backward)",
        JOIN,
    ]
