"""A wall clock jumps (it is set, or a laptop wakes): nothing that waits, times or expires may look at it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(
    file for folder in ("core", "pages", "deploy") for file in (ROOT / folder).rglob("*.py") if "node_modules" not in file.parts
)  # fmt: skip
#: Of the modules `time` and `datetime`: what says which time of day it is.
WALL = {"time", "time_ns", "localtime", "gmtime", "now", "utcnow", "today"}
#: Where it is written down, and nothing else is done with it.
STAMPS = {"core/report/compose.py"}


def wall_clocks(source: str) -> list[int]:
    """Lines that ask for the time of day."""
    out = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in WALL:
            owner = node.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name in ("time", "datetime", "date"):
                out.append(node.lineno)
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            out += [node.lineno for alias in node.names if alias.name in WALL]
    return out


@pytest.mark.parametrize("source", ["import time\ntime.time()", "from time import time", "datetime.datetime.now()"])
def test_the_time_of_day_is_found(source: str) -> None:
    assert wall_clocks(source)


def test_nothing_waits_or_expires_by_the_time_of_day() -> None:
    found = {}
    for file in FILES:
        lines = wall_clocks(file.read_text(encoding="utf-8"))
        if lines and str(file.relative_to(ROOT)) not in STAMPS:
            found[str(file.relative_to(ROOT))] = lines
    assert found == {}
