"""What the pages' files of numbers share: how a number is written, and a compressed npz without pickles."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any, Final

import numpy as np

from core.export.document import PINNED

type Array = np.ndarray[Any, Any]

SCHEMA: Final = 1
CSV_TYPE, NPZ_TYPE = "text/csv", "application/octet-stream"
#: Types that a reader of npz knows without further packages.
_PLAIN: Final = "biuf"


def number(value: Any) -> str:
    """A number as text that reads back to it: ``nan``, ``inf`` and ``-inf`` are written as such, a bool as 0 or 1."""
    if isinstance(value, bool | np.bool_):
        return str(int(value))
    if isinstance(value, int | np.integer):
        return str(int(value))
    return f"{float(value):.9g}"  # nine digits, as many as a float32 needs


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[str]]) -> bytes:
    """A table as CSV, UTF-8."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue().encode()


def npz_bytes(arrays: Mapping[str, Any], info: Mapping[str, Any]) -> bytes:
    """Arrays as one compressed npz, which ``np.load`` reads without pickles, and ``info`` as JSON text in it.

    NumPy alone has no bfloat16: such an array is written as float32, which holds the same numbers; ``info["dtypes"]``
    has every dtype as it was.
    """
    given = {name: np.asarray(values) for name, values in arrays.items()}
    plain = {name: a if a.dtype.kind in _PLAIN else a.astype(np.float32) for name, a in given.items()}
    versions = {name: metadata.version(name) for name in PINNED}
    dtypes = {name: a.dtype.name for name, a in given.items()}
    text = json.dumps({"schema": SCHEMA, "versions": versions, "dtypes": dtypes, **info}, ensure_ascii=False)
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, info=np.asarray(text), **plain)
    return file.getvalue()
