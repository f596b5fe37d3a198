"""A scan that ran as files of numbers: its carry from init on, and at each step the x that was read and the y."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from core.base.results import ScanResult, Series
from core.export.rows import csv_bytes, npz_bytes, number
from core.inputs.scan_check import Checked

CSV_NAME, NPZ_NAME = "carry-lab-scan.csv", "carry-lab-scan.npz"
#: The first columns; then one for each number of each leaf, ``carry['mean']`` or ``carry[0]``, ``x[2]``, ``y``.
COLUMNS: Final = ("position", "t")


def scan_csv(result: ScanResult) -> bytes:
    """A line for each position 0 … T in the order of the visits.

    Position 0 is init: there is no ``t``, x or y there. ``t`` is the step of xs that was read to get to a position; x and
    y are of that step. A leaf with axes has a column for each of its numbers, in C order.
    """
    carries, steps = _columns(result.carries), (*_columns(result.xs), *_columns(result.ys_series))
    header = [*COLUMNS, *(name for name, _ in (*carries, *steps))]
    return csv_bytes(header, _rows(result, carries, steps))


def _rows(
    result: ScanResult, carries: Sequence[tuple[str, Any]], steps: Sequence[tuple[str, Any]]
) -> Iterator[list[str]]:
    order = ("", *map(str, result.order))
    for position in range(result.length + 1):
        row = [str(position), order[position], *(number(values[position]) for _, values in carries)]
        yield row + [number(values[position - 1]) if position else "" for _, values in steps]


def _columns(series: Sequence[Series]) -> list[tuple[str, Any]]:
    """(name, values over time) of every number of every leaf."""
    out = []
    for one in series:
        places = list(np.ndindex(one.values.shape[1:]))
        flat = one.values.reshape(len(one.values), len(places))
        for column, index in enumerate(places):
            where = f"[{', '.join(map(str, index))}]" if index else ""
            out.append((one.path + where, flat[:, column]))
    return out


def scan_npz(checked: Checked, result: ScanResult) -> bytes:
    """Everything of a run as one npz; keys are the paths of the leaves.

    ``carry…`` (T + 1, …): position 0 is init; ``x…`` and ``y…`` (T, …), all three in the order of the visits; ``t`` (T,):
    the step of xs read at each. ``info``: JSON with versions and the page's inputs. PRNG keys stand as their raw data.
    """
    series = (*result.carries, *result.xs, *result.ys_series)
    arrays = {one.path: one.values for one in series} | {"t": np.asarray(result.order, np.int32)}
    return npz_bytes(arrays, {"inputs": dict(checked.values)})
