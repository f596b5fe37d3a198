"""The one time axis of the Sequence page: where each carry of a direction stands between the columns of the batch.

Column t of the batch is the interval from t to t + 1. A step that reads column t forward takes the carry on its left
edge to the one on its right edge; read backward, from the right edge to the left one. So each carry has an edge of its
own from 0 to T, forward and reversed, with lengths too: the reversed valid part fills the edges from its length down to
0, and the padding, which ``nnx`` leaves in its order behind it, the edges after its length.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from core.base.sequences import Direction

type Array = np.ndarray[Any, Any]


def edges(direction: Direction, example: int) -> Array:
    """(T + 1,) int: for each position in visiting order, the edge that the carry of this example stands on."""
    order = direction.order[:, example]
    if not len(order):
        return np.zeros(1, np.int64)
    backward = descending(direction, example)
    first = order[0] + 1 if backward[0] else order[0]
    return np.concatenate([[first], np.where(backward, order, order + 1)]).astype(np.int64)


def descending(direction: Direction, example: int) -> Array:
    """(T,) bool: the steps of this example that read the data from right to left."""
    order = direction.order[:, example]
    if len(order) < 2 or not bool((np.diff(direction.order, axis=0) < 0).any()):
        return np.zeros(len(order), bool)
    return np.asarray(order <= order[0])


def pieces(at: Array) -> list[list[int]]:
    """The positions from left to right, in pieces whose neighbours are a step apart: a line must not join the others."""
    order = np.argsort(at, kind="stable")
    cuts = np.flatnonzero(np.abs(np.diff(order)) != 1) + 1
    return [piece.tolist() for piece in np.split(order, cuts)]


def runs(flags: Array) -> list[tuple[int, int]]:
    """Where flags are set without a gap: (first, one after the last) each."""
    padded = np.concatenate([[False], np.asarray(flags, bool), [False]]).astype(np.int8)
    steps = np.diff(padded)
    return [(int(a), int(b)) for a, b in zip(np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True)]


def skipped(direction: Direction, example: int) -> Array:
    """(T,) bool by t of the data: the columns of this example that are no part of its sequence."""
    out = np.zeros(len(direction.order), bool)
    out[direction.order[:, example]] = ~direction.valid[:, example]
    return out
