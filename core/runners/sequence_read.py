"""What a layer over sequences is told, on the host: data, mask and lengths as it reads them, and which t it visits when.

Nothing here runs the layer. The order of `nnx.RNN` with ``reverse`` is that of its own `flip_sequences`: without
lengths t = T − 1 − p, with them ``(T − 1 − p + length) mod T`` for each example, whatever the length is; so that the
padding of a short example comes last, from its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jax import dtypes

from core.base.sequences import Masking, Slip
from core.contract.subject import SequenceTrial

type Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """What reaches the layer, time-first as it reads it: (T, B, …), or (B, T, …) of a trial that is misread.

    Attributes:
        inputs: (T, B, F) in the dtype that JAX gives them. One example that meets several rows is repeated (`_rows`).
        lengths: in the dtype that JAX gives them, where the layer is given lengths and they are an array.
        keep: (T, B) bool, where it is given a mask; (T, 1) where one example is repeated.
        valid: (T, B) bool: what belongs to a sequence by the lengths or the mask of the trial, given to the layer or not.
    """

    inputs: Array
    lengths: Array | None
    keep: Array | None
    valid: Array

    @property
    def length(self) -> int:
        """T as the layer reads it."""
        return int(self.inputs.shape[0])

    @property
    def batch(self) -> int:
        """B as the layer reads it."""
        return int(self.inputs.shape[1])


class NotTold(ValueError):
    """Lengths or a mask of which no array can be made for this layer: the layer itself says what is wrong."""


def masking_of(trial: SequenceTrial) -> Masking:
    """How the layer is really told: a mask that is summed comes as lengths, and what was not given is not told."""
    if Slip.SUMMED_MASK in trial.slips and trial.mask is not None:
        return Masking.LENGTHS
    if trial.masking is Masking.LENGTHS and trial.lengths is not None:
        return Masking.LENGTHS
    if trial.masking is Masking.MASK and trial.mask is not None:
        return Masking.MASK
    return Masking.NONE


def lengths_given(trial: SequenceTrial) -> tuple[Any, ...] | None:
    """The lengths that the layer is given, as they are: the trial's, or the sums over t of a mask that is summed."""
    if masking_of(trial) is not Masking.LENGTHS:
        return None
    if Slip.SUMMED_MASK in trial.slips and trial.mask is not None:
        return tuple(np.sum(np.asarray(trial.mask, bool), axis=1).tolist())
    return trial.lengths


def told(trial: SequenceTrial) -> Told:
    """Read the trial as its layer does.

    Raises:
        NotTold: the lengths or the mask fit no such layer.
    """
    inputs = canonical(trial.read)
    given = lengths_given(trial)
    lengths = None if given is None else _as_lengths(given, ignored=not _looks(trial))
    keep = None
    if masking_of(trial) is Masking.MASK:
        keep = _as_read(trial, np.asarray(trial.mask, bool))
        if keep.shape != inputs.shape[:2]:
            raise NotTold("mask")
    valid = _valid(trial, inputs.shape[:2])
    rows = _rows(trial, inputs.shape[1], lengths)
    if rows != inputs.shape[1]:
        inputs = np.broadcast_to(inputs, (inputs.shape[0], rows, *inputs.shape[2:]))
        valid = np.broadcast_to(valid, (valid.shape[0], rows))
    return Told(inputs, lengths, keep, valid)


def _rows(trial: SequenceTrial, batch: int, lengths: Array | None) -> int:
    """The B that the layer works with: one example is silently broadcast to the rows of init, or of the flipped inputs.

    A batch whose axes are read the wrong way has one example where it has one step. Its init still has a row for each
    true example; and `flip_sequences` takes as many rows as there are lengths, for which zeros are made then.
    """
    if batch != 1:
        return batch
    if trial.init is not None:
        rows = {np.shape(part)[0] if np.ndim(part) == 2 else 1 for part in trial.init}
        return rows.pop() if len(rows) == 1 else batch
    if trial.previous is None and trial.reverse and not trial.bidirectional and lengths is not None:
        return max(lengths.size, 1)
    return batch


def keep_in_order(keep: Array, order: Array) -> Array:
    """The mask in visiting order: (T, B), or (T, 1) where one example is repeated."""
    return gather(keep, order[:, : keep.shape[1]])


def canonical(values: Any) -> Array:
    """On the host, in the dtype that JAX makes of it."""
    array = np.asarray(values)
    with np.errstate(over="ignore"):  # 1e300 is infinite in float32: that is what JAX makes of it
        return array.astype(dtypes.canonicalize_dtype(array.dtype), copy=False)


def _looks(trial: SequenceTrial) -> bool:
    """Whether the layer looks at its lengths at all: to flip its inputs, or to return a carry."""
    return trial.reverse or trial.bidirectional or trial.return_carry


def _as_lengths(given: tuple[Any, ...], ignored: bool) -> Array | None:
    """As ``jnp.asarray(lengths)`` would have them, if they can select steps at all.

    Raises:
        NotTold: they are no whole numbers, or too large for the integers of JAX.
    """
    try:
        array = np.asarray(given)
    except ValueError as error:
        raise NotTold("lengths") from error
    if array.dtype.kind == "b":
        array = array.astype(np.int32)
    if ignored and array.dtype.kind == "f":
        return None
    wanted = dtypes.canonicalize_dtype(array.dtype) if array.dtype.kind in "iu" else None
    if wanted is None or not array.size:
        raise NotTold("lengths")
    bounds = np.iinfo(wanted)
    if int(array.min()) < bounds.min or int(array.max()) > bounds.max:
        raise NotTold("lengths")
    return array.astype(wanted)


def _as_read(trial: SequenceTrial, mask: Array) -> Array:
    """A (B, T) array by the true axes, laid out and read as the data are."""
    return mask if trial.misread else mask.swapaxes(0, 1)


def _valid(trial: SequenceTrial, shape: tuple[int, ...]) -> Array:
    """(T, B) as read: what the mask says where one is told or nothing else is given, else what the lengths say."""
    said: Array | None = None
    mask_counts = trial.masking is not Masking.LENGTHS or Slip.SUMMED_MASK in trial.slips or trial.lengths is None
    if trial.mask is not None and mask_counts:
        said = np.asarray(trial.mask, bool)
    elif trial.lengths is not None:
        try:
            bounds = np.asarray(trial.lengths, np.float64)
        except (TypeError, ValueError):  # words, gaps: they say nothing of any step
            bounds = np.empty(0)
        if bounds.ndim == 1 and len(bounds) in (1, trial.batch):
            said = np.broadcast_to(np.arange(trial.length) < bounds[:, None], (trial.batch, trial.length))
    if said is None or said.shape != (trial.batch, trial.length):
        return np.ones(shape, bool)
    return _as_read(trial, said)


def held(trial: SequenceTrial, read: Told, order: Array) -> Array | None:
    """Where a mask lets the new carry count, in visiting order, to broadcast with (T, B, H).

    (T, B, 1); (T, 1, B) of a mask that meets the features by mistake; None of a layer without a mask.
    """
    if read.keep is None:
        return None
    keep = keep_in_order(read.keep, order)
    return keep[:, None, :] if Slip.FEATURE_MASK in trial.slips else keep[:, :, None]


def visiting(length: int, batch: int, lengths: Array | None, backwards: bool) -> Array:
    """(T, B) int: the t that is read at each position, as `nnx.RNN` flips it.

    Raises:
        NotTold: the lengths do not broadcast with the batch.
    """
    positions = np.arange(length)[:, None]
    if not backwards:
        return np.broadcast_to(positions, (length, batch))
    if lengths is None:
        return np.broadcast_to(positions[::-1], (length, batch))
    if lengths.ndim != 1 or len(lengths) not in (1, batch):
        raise NotTold("lengths")
    if length == 0:
        return np.zeros((0, batch), np.int64)
    # In the integers of JAX, which wrap around.
    return np.broadcast_to((positions[::-1].astype(np.int32) + lengths) % np.int32(length), (length, batch)).astype(int)


def gather(values: Array, order: Array) -> Array:
    """``values[order[p, b], b]`` for every position and example: (T, B, …)."""
    return values[order, np.arange(values.shape[1])] if values.shape[0] else values


def selected(trial: SequenceTrial, read: Told) -> tuple[Array, Array] | None:
    """Indices (step, example) of the carry that is returned where lengths select it; None where the last one is.

    A layer that is not asked for its carry does not look: then lengths that select nothing are no error.

    Raises:
        NotTold: the layer is asked for a carry, and the lengths select none.
    """
    if read.lengths is None:
        return None
    asked = trial.return_carry or trial.bidirectional
    if not asked and (read.length == 0 or read.lengths.size not in (1, read.batch)):
        return None
    return last_valid(read.length, read.batch, read.lengths)


def last_valid(length: int, batch: int, lengths: Array) -> tuple[Array, Array]:
    """Indices (step, example) of the carry that `nnx.RNN` returns: ``carries[lengths − 1, arange(B)]``.

    As JAX reads out of an array: an index below 0 counts from the end (a length of 0 takes the last step), and what
    is out of bounds even so is brought to the nearest step.

    Raises:
        NotTold: there is no step to take, or the lengths do not broadcast with the batch.
    """
    if length == 0:
        raise NotTold("lengths")
    with np.errstate(over="ignore"):
        index = lengths - lengths.dtype.type(1)  # may wrap around, as it does in JAX
    wide = index.astype(np.int64)
    wide = np.clip(np.where(wide < 0, wide + length, wide), 0, length - 1)
    try:
        step, example = np.broadcast_arrays(wide, np.arange(batch))
    except ValueError as error:
        raise NotTold("lengths") from error
    return step, example
