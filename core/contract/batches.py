"""How the batch axes of a cell's carry stand to those of its input."""

from __future__ import annotations

import enum

import numpy as np

from core.base.violation import Severity
from core.contract.cells import CellUse, Part


class Kind(enum.IntEnum):
    """How the batch of one part stands to the input's; the worst comes first."""

    CLASH = 0
    SHARED = 1
    INPUT = 2
    AXES = 3
    FITS = 4


def kind_of(use: CellUse, part: Part) -> Kind:
    """Compare the batch axes of one part with the input's."""
    if use.batch is None or not part.aval.shape or part.aval.shape[:-1] == use.batch:
        return Kind.FITS
    both = spread(use)
    if both is None:
        return Kind.CLASH
    if size(part.aval.shape[:-1]) < size(both):
        return Kind.SHARED
    return Kind.INPUT if size(use.batch) < size(both) else Kind.AXES


def severity_of(kind: Kind, *, grows: bool) -> Severity:
    """An error where JAX raises (no broadcast, or a scan's carry that grows), a note where nothing is shared."""
    if kind is Kind.CLASH or grows:
        return Severity.ERROR
    return Severity.NOTE if kind is Kind.AXES else Severity.WARNING


def spread(use: CellUse) -> tuple[int, ...] | None:
    """The batch axes that come of the whole carry and the input together; None when they do not broadcast."""
    if use.batch is None:
        return None
    try:
        return np.broadcast_shapes(use.batch, *(part.aval.shape[:-1] for part in use.parts))
    except ValueError:
        return None


def size(shape: tuple[int, ...]) -> int:
    """Number of elements of a shape."""
    return int(np.prod(shape, dtype=np.int64))
