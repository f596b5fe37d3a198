"""The maps as files: one row of all cells as CSV, everything as npz."""

from __future__ import annotations

import csv
import io
from typing import Any

import numpy as np

from core.inputs.gradient_fields import CELL_NAMES
from core.inputs.gradient_page import CellsResult


def row_csv(result: CellsResult, s: int) -> bytes:
    """Row `s` (1 to T): a line for each t from 0 to s − 1, a column for each cell and part; UTF-8 with a header."""
    columns = {f"{CELL_NAMES[one.kind]}_h": one.h[s - 1, :s] for one in result.maps}
    columns |= {f"{CELL_NAMES[one.kind]}_c": one.c[s - 1, :s] for one in result.maps if one.c is not None}
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["t", *columns])
    writer.writerows([t, *(repr(float(values[t])) for values in columns.values())] for t in range(s))
    return out.getvalue().encode()


def map_npz(result: CellsResult) -> bytes:
    """Every map, (T, T) float64 with ``[s, t]`` = ‖∂h_{s+1}/∂x_t‖, and the data ``xs`` (T, F)."""
    arrays: dict[str, Any] = {f"{CELL_NAMES[one.kind]}_h": one.h for one in result.maps}
    arrays |= {f"{CELL_NAMES[one.kind]}_c": one.c for one in result.maps if one.c is not None}
    out = io.BytesIO()
    np.savez_compressed(out, xs=result.data, **arrays)
    return out.getvalue()
