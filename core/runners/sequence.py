"""A recurrent layer over sequences, run for real, with every carry and every gate kept.

One program serves all that `nnx.RNN` and `nnx.Bidirectional` do without a mask: forward, reversed and in both
directions. What differs is the order in which steps are read, and that is done on the host, as `nnx.RNN` itself flips its
inputs before the scan. `seq_lengths` change nothing in the scan either: every step is computed, and of all carries the one
after the last valid step is returned. So lengths, like numbers, seeds and changed weights, compile nothing.

T is padded to a power of two without a mask: a scan is causal, and what comes after the last step cannot reach it
(`core.runners.scan` says more). A program with a mask is another one: its step is ::

    new, y = cell(carry, x)
    carry = where(keep[:, None], new, carry)      # keep: (B,)

and y is returned as the cell gives it, at masked steps too, as a learner's own scan would. A layer with a mask that runs
from the end runs from the end of T.

Of the mistakes made on purpose (`Slip`), a mask along the features has a program of its own, and a mask that is summed
comes as lengths. A cell built inside the step, and a result unpacked the wrong way, change nothing in what the layer
computes: the first matters when something is to be learned, the second after the layer has returned.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from core.base.sequences import Direction, Masking, SequenceResult, Slip
from core.contract.subject import SequenceTrial
from core.runners.cache import PROGRAMS
from core.runners.cell_formulas import KINDS, CellKind
from core.runners.cells import listen, parts_of
from core.runners.layers import CellParts, cells_of, layer_of
from core.runners.memo import once
from core.runners.room import keep_room
from core.runners.scan import padded_length
from core.runners.sequence_read import (
    Told,
    canonical,
    gather,
    keep_in_order,
    lengths_given,
    masking_of,
    selected,
    told,
    visiting,
)

type Array = np.ndarray[Any, Any]
type Parts = tuple[Any, ...]


def run_sequence(trial: SequenceTrial) -> SequenceResult:
    """Run the layer. Within one check (`core.runners.memo`) a trial runs once.

    Args:
        trial: init may have the parts of one carry, which both directions of a bidirectional layer start from, or
            twice as many: those of the forward direction, then those of the backward one.

    Returns:
        the result on the host. `final` is what the layer returns when it is asked for its carry. A layer that is not
        asked for it never looks at its lengths: where these would select nothing, it is the carry after all steps.

    Raises:
        whatever the layer raises, as it raises it.
    """
    return once(("sequence",), (trial,), lambda: _run_sequence(trial))


def _run_sequence(trial: SequenceTrial) -> SequenceResult:
    try:
        return _run(trial)
    except Exception:
        # Flax and JAX themselves say what is wrong with it.
        _ask_flax(trial)
        if isinstance(trial.unroll, int):
            raise
        return run_sequence(replace(trial, unroll=1))  # a number that JAX lets pass: it changes no value


def _ask_flax(trial: SequenceTrial) -> None:
    """Raises what the layer raises, if it does.

    It is traced first, which is where nearly everything is found. To call it hands `lax.scan` a new function, which is
    compiled, and JAX keeps the program: a score of memory maps for each time that somebody types a wrong length.
    """
    try:
        jax.eval_shape(lambda: call_layer(trial))
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError):  # it wants a value, which only a call has
        call_layer(trial)
    if not isinstance(trial.unroll, int):  # what is no whole number is refused when the loop is lowered
        call_layer(trial)


def _run(trial: SequenceTrial) -> SequenceResult:
    read = told(trial)
    cells = cells_of(trial)
    ways = (False, True) if trial.bidirectional else (trial.reverse,)
    begun = [
        _begin(trial, read, parts, start, backwards)
        for parts, start, backwards in zip(cells, starts_of(trial, read.batch), ways, strict=True)
    ]
    directions = [one.direction(trial, read) for one in begun]
    forward, backward = directions[0], directions[1] if trial.bidirectional else None
    outputs = forward.outputs
    if backward is not None:
        # `flip_sequences` undoes itself: the t read at a position is also the position of that t.
        outputs = np.concatenate([outputs, gather(backward.outputs, backward.order)], axis=-1)
    elif trial.reverse and trial.keep_order:
        outputs = gather(outputs, forward.order)
    return SequenceResult(
        kind=trial.kind,
        forward=forward,
        backward=backward,
        outputs=outputs,
        padded=padded_length(read.length),
        compiled=any(one.compiled for one in begun),
        reverse=trial.reverse and not trial.bidirectional,
        keep_order=trial.keep_order and not trial.bidirectional,
    )


# --- where it starts ------------------------------------------------------------------------------------------------


def starts_of(trial: SequenceTrial, batch: int) -> tuple[Parts, ...]:
    """Init of each direction, its parts on the host: given, left over from `previous`, or zeros (B, H).

    Raises:
        whatever the layer raises on `previous`.
    """
    ways = 2 if trial.bidirectional else 1
    if trial.previous is not None:
        before = replace(
            trial,
            inputs=trial.previous,
            previous=None,
            masking=Masking.NONE,
            lengths=None,
            mask=None,
            slips=frozenset(),
        )
        return tuple(direction.final for direction in run_sequence(before).directions)
    count = len(KINDS[trial.kind].parts)
    if trial.init is None:
        return ways * (tuple(np.zeros((batch, trial.hidden_features), np.float32) for _ in range(count)),)
    given = tuple(canonical(part) for part in trial.init)
    if trial.bidirectional and len(given) == 2 * count:
        return given[:count], given[count:]
    return ways * (given,)


def carry_of(kind: CellKind, parts: Parts) -> Any:
    """The carry as the cell takes it: the pair, or the one array."""
    return parts[0] if not kind.pair and len(parts) == 1 else tuple(parts)


# --- the program ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Begun:
    """One direction that is running: its arrays are still on their way."""

    start: Parts
    order: Array
    arrays: Mapping[str, Any]
    compiled: bool

    def direction(self, trial: SequenceTrial, read: Told) -> Direction:
        """Everything on the host, without the padding."""
        carries, outputs, gates = _on_host(self.arrays, self.start, read.length)
        at = selected(trial, read)
        final = tuple(part[-1] for part in carries) if at is None else tuple(part[1:][at] for part in carries)
        return Direction(carries, outputs, gates, self.order, gather(read.valid, self.order), final)


def _on_host(arrays: Mapping[str, Any], start: Parts, length: int) -> tuple[Parts, Array, dict[str, Array]]:
    """Carries with init before them, outputs and gates, cut to `length`."""
    after = [np.asarray(part)[:length] for part in arrays["carries"]]
    carries = tuple(_with_init(first, part) for first, part in zip(start, after, strict=True))
    own = arrays["outputs"]
    outputs = carries[-1][1:] if own is None else np.asarray(own)[:length]
    return carries, outputs, {name: np.asarray(values)[:length] for name, values in arrays["gates"].items()}


def _with_init(first: Array, after: Array) -> Array:
    out = np.empty((len(after) + 1, *after.shape[1:]), after.dtype)
    out[0] = first
    out[1:] = after
    return out


def _begin(trial: SequenceTrial, read: Told, parts: CellParts, start: Parts, backwards: bool) -> _Begun:
    order = visiting(read.length, read.batch, read.lengths, backwards)
    # A way through the data in their own order needs no copy of them.
    xs = gather(read.inputs, order) if backwards else read.inputs
    keep = keep_in_order(read.keep, order) if backwards and read.keep is not None else read.keep
    along_features = keep is not None and Slip.FEATURE_MASK in trial.slips
    arrays, compiled = _execute(parts, start, xs, keep, along_features, trial.unroll, padded_length(read.length))
    return _Begun(start, order, arrays, compiled)


def run_steps(trial: SequenceTrial, direction: int, start: Parts, xs: Array) -> tuple[Parts, Array]:
    """Some steps of one direction's cell, from the first to the last and none masked, by the program the trial ran with.

    Args:
        trial: whose cell.
        direction: 0, or 1 for the backward one.
        start: parts of init, each (B, H).
        xs: (N, B, F) with N up to T; B need not be the trial's.

    Returns:
        the parts of the carry (N + 1, B, H), init first; and the outputs (N, B, H).
    """
    parts = cells_of(trial)[direction]
    if not len(xs):
        return tuple(part[None] for part in start), np.zeros((0, *start[-1].shape), start[-1].dtype)
    length = padded_length(trial.read.shape[0])
    keep = np.ones(xs.shape[:2], bool) if masking_of(trial) is Masking.MASK else None
    arrays, _compiled = _execute(parts, start, xs, keep, False, trial.unroll, length)
    carries, outputs, _gates = _on_host(arrays, start, len(xs))
    return carries, outputs


def _execute(
    parts: CellParts, start: Parts, xs: Array, keep: Array | None, along_features: bool, unroll: Any, padded: int
) -> tuple[Mapping[str, Any], bool]:
    """What the program of this padded length gives, and whether it was compiled now. Without a step it is only traced."""
    masked, copies = keep is not None, _unroll(unroll, padded)
    function = _program(parts, masked, along_features, copies)
    padded_keep = None if keep is None else _pad(keep, padded)
    args = (parts.leaves, carry_of(parts.kind, start), _pad(xs, padded), padded_keep)
    if not padded:
        shapes = jax.eval_shape(function, *args)
        return jax.tree.map(lambda s: np.zeros(s.shape, s.dtype), shapes), False
    key = ("sequence", parts.kind.name, *parts.size, masked, along_features, copies)
    program, compiled = PROGRAMS.get(key, function, args)
    return program(*args), compiled


def _unroll(unroll: Any, length: int) -> int:
    """As `lax.scan` takes it: True means all steps."""
    return (max(length, 1) if unroll else 1) if isinstance(unroll, bool) else operator.index(unroll)


def _pad(values: Array, padded: int) -> Array:
    """At the length that is compiled: the last visited step repeated, so that no NaN is born there."""
    missing = padded - len(values)
    return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)]) if missing else values


def _program(parts: CellParts, masked: bool, along_features: bool, unroll: int) -> Callable[..., Any]:
    """``program(leaves, carry, xs, keep)``: every part of every carry, outputs, gates; stacked over the steps."""
    kind = parts.kind

    def program(leaves: Parts, carry: Any, xs: Any, keep: Any) -> dict[str, Any]:
        def step(carry: Any, x: Any) -> Any:
            inputs, kept_now = x
            # Put together at each trace of the step: Flax lets a cell be changed only at the level it was made at.
            cell = parts.cell(leaves)
            kept = listen(kind, cell)
            new, y = cell(carry, inputs)
            gates = {gate.name: kept[gate.name][1] for gate in kind.gates}
            if masked:
                new = hold(carry, new, kept_now, along_features)
            after = parts_of(kind, new)
            # The output of these cells is the h they leave: emitted once, but for a mask, which changes that h.
            return new, (after, None if y is after[-1] else y, gates)

        _, (carries, outputs, gates) = lax.scan(step, carry, (xs, keep), unroll=unroll)
        return {"carries": carries, "outputs": outputs, "gates": gates}

    return program


def hold(carry: Any, new: Any, keep: Any, along_features: bool = False) -> Any:
    """The new carry where `keep` (B,) says so, else the old one.

    Args:
        carry: pytree with leaves (B, H).
        new: the same, after the step.
        keep: (B,) bool.
        along_features: forget the ``[:, None]``: the mistake of L312.
    """
    mask = keep if along_features else keep[:, None]
    return jax.tree.map(lambda fresh, old: jnp.where(mask, fresh, old), new, carry)


# --- the layer itself -----------------------------------------------------------------------------------------------


def call_layer(trial: SequenceTrial) -> Any:
    """Call what the trial stands for, without jit and without anything of ours: the layer, or the scan with a mask.

    Returns:
        as the layer returns it, in its own axes. A scan with a mask: (carry, ys), or of both directions a pair of these.

    Raises:
        whatever it raises.
    """
    keep_room()
    if masking_of(trial) is Masking.MASK:
        return _masked_scans(trial, *_masked_given(trial))
    layer = layer_of(trial)
    inputs, start, lengths = _layer_given(trial)
    return layer(jax.device_put(inputs), initial_carry=jax.device_put(start), seq_lengths=lengths)


def call_compiled(trial: SequenceTrial) -> Any:
    """As `call_layer`, in a compiled program that is kept for the next of these sizes: a check after every change.

    The layer's own code is what is compiled. Called without jit it is compiled anew each time, since the function that it
    hands to `lax.scan` is a new one (110 ms, measured).
    """
    keep_room()
    parts = [*cells_of(trial)]
    sizes = tuple((cell.kind.name, *cell.size) for cell in parts)
    options = (trial.time_major, trial.unroll, trial.return_carry, trial.reverse, trial.keep_order, trial.bidirectional)
    if masking_of(trial) is Masking.MASK:
        slips = tuple(sorted(slip.name for slip in trial.slips))

        def scans(leaves: tuple[Any, ...], starts: Any, xs: Any) -> Any:
            return _masked_scans(trial, starts, xs, leaves)

        args = (tuple(cell.leaves for cell in parts), *_masked_given(trial))
        program, _ = PROGRAMS.get(("scan with a mask", sizes, options, slips), scans, args)
        return program(*args)

    def layer(leaves: tuple[tuple[Any, ...], ...], inputs: Any, start: Any, lengths: Any) -> Any:
        return layer_of(trial, leaves)(inputs, initial_carry=start, seq_lengths=lengths)

    given = (tuple(cell.leaves for cell in parts), *_layer_given(trial))
    program, _ = PROGRAMS.get(("layer of Flax", sizes, options), layer, given)
    return program(*given)


def _layer_given(trial: SequenceTrial) -> tuple[Any, Any, Any]:
    """Inputs, initial carry and lengths."""
    kind = KINDS[trial.kind]
    given = lengths_given(trial)
    start: Any = None  # as a learner has it: the layer makes zeros, of the batch that it then has
    if trial.init is not None or trial.previous is not None:
        starts = [carry_of(kind, start) for start in starts_of(trial, trial.read.shape[1])]
        start = tuple(starts) if trial.bidirectional else starts[0]
    return canonical(trial.inputs), start, None if given is None else jnp.asarray(given)


def _masked_given(trial: SequenceTrial) -> tuple[Any, Any]:
    """Initial carries of both ways, and (xs, mask) over time."""
    mask = np.asarray(trial.mask, bool)
    xs = (canonical(trial.read), mask if trial.misread else mask.swapaxes(0, 1))
    return starts_of(trial, xs[0].shape[1]), xs


def _masked_scans(trial: SequenceTrial, starts: Any, xs: Any, leaves: tuple[Any, ...] | None = None) -> Any:
    """The scan with a mask, as a learner would write it; reversed by its own ``reverse=True``."""
    along = Slip.FEATURE_MASK in trial.slips
    out = []
    ways = (False, True) if trial.bidirectional else (trial.reverse,)
    for at, (parts, start, backwards) in enumerate(zip(cells_of(trial), starts, ways, strict=True)):
        cell = parts.cell(None if leaves is None else leaves[at])

        def step(carry: Any, x: Any, cell: Any = cell) -> Any:
            new, y = cell(carry, x[0])
            return hold(carry, new, x[1], along), y

        out.append(lax.scan(step, carry_of(parts.kind, start), xs, reverse=backwards, unroll=trial.unroll))
    return tuple(out) if trial.bidirectional else out[0]
