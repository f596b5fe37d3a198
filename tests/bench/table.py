"""The numbers of a run of the benchmarks: printed as one table, and kept for `tests/bench/results.json`.

A benchmark calls `record` for each number that somebody promised. The table is printed at the end of the run, and what
was measured replaces the rows of the same name in `results.json`: a run of one file keeps the others' numbers.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

RESULTS: Final = Path(__file__).with_name("results.json")


@dataclass(frozen=True, slots=True)
class Row:
    """One number beside its limit.

    Attributes:
        name: what was measured, a sentence in lower case; it names the row.
        value: as measured.
        unit: "ms", "MB", "x" for a ratio, "" for a count.
        limit: what was promised; None for a number that nobody promised.
        ok: whether the promise is kept; true where there is none.
    """

    name: str
    value: float
    unit: str
    limit: float | None
    ok: bool


_rows: list[Row] = []


def record(name: str, value: float, unit: str, limit: float | None = None, *, least: bool = False) -> Row:
    """Keeps a number of this run.

    Args:
        name: what was measured.
        value: the number.
        unit: its unit, "x" for a ratio.
        limit: at most that much, unless `least`.
        least: `limit` is the least that was promised.
    """
    ok = limit is None or (value >= limit if least else value <= limit)
    row = Row(name, round(float(value), 4), unit, limit, bool(ok))
    _rows.append(row)
    print(line(row), flush=True)
    return row


def line(row: Row) -> str:
    """A row as it is printed."""
    limit = "" if row.limit is None else f"{row.limit:g}"
    return f"{row.name:72}{row.value:>11.4g} {row.unit:4}{limit:>9}{'' if row.ok else '   MISSED'}"


def rows() -> list[Row]:
    """Those of this run."""
    return list(_rows)


def write(path: Path = RESULTS) -> None:
    """Puts this run's rows into the file, each in the place of the one with its name."""
    if not _rows:
        return
    kept = {}
    if path.exists():
        kept = {row["name"]: row for row in json.loads(path.read_text(encoding="utf-8"))}
    kept |= {row.name: asdict(row) for row in _rows}
    text = json.dumps(sorted(kept.values(), key=lambda row: str(row["name"])), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def machine() -> str:
    """What it ran on, in a line."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    model = next(
        (
            text.partition(":")[2].strip()
            for text in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in text
        ),
        "unknown processor",
    )
    load = os.getloadavg()[0]
    return f"{len(os.sched_getaffinity(0))} cores of {model}, {pages * size / 1e9:.0f} GB, load {load:.1f}"
