"""5,000 random changes through the server, invalid ones among them: no error, and its memory stays flat.

    python -m pytest tests/bench/bench_soak.py -p no:xdist -s -o python_files='bench_*.py'

Four people at a time, each on a page of their own, who leave and come back as somebody else after every 125 changes.
`BENCH_SOAK` sets another number of changes.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bench.memory import Memory, children
from tests.bench.table import record
from tests.support.serving import ROOT, free_port, running
from tests.support.session import Session

CHANGES = int(os.environ.get("BENCH_SOAK", "5000"))
STAY = int(os.environ.get("BENCH_STAY", "125"))
#: Of the server: growth from the second to the last quarter, in per cent of what it holds, and in memory maps.
GROWTH, MAPS, WORKER = 5.0, 1_000, 400

type Draw = Callable[[random.Random], object]


def one_of(*values: object) -> Draw:
    return lambda rng: rng.choice(values)


def number(low: float, high: float, digits: int = 0) -> Draw:
    return lambda rng: round(rng.uniform(low, high), digits)


#: By page: what is changed, and to what.
PAGES: dict[str, dict[str, Draw]] = {
    "": {
        "scan_init": lambda rng: f"{rng.uniform(-100, 100):.3f}" if rng.random() < 0.7 else rng.choice(["", "nan", "a b", "1,2", "[[", "1e99"]),
        "scan_length": number(-1, 30),
        "scan_reverse": one_of(True, False),
        "scan_unroll": one_of("1", "2", "0", "x"),
        "scan_init_weak": one_of(True, False),
        "scan_as_list": one_of(True, False),
    },
    "lstm": {
        "lstm_seed": number(0, 10**6),
        "lstm_carry_seed": number(0, 10**6),
        "lstm_batch": number(-1, 5),
        "lstm_hidden_features": number(0, 6),
        "lstm_unit": number(0, 3),
    },
    "sequence": {
        "sequence_seed": number(0, 10**6),
        "sequence_data_seed": number(0, 10**6),
        "sequence_length": number(0, 10),
        "sequence_lengths": one_of("", "3", "3,2,1", "9,9,9", "-1", "x", "2.5"),
        "sequence_time_major": one_of(True, False),
        "sequence_t": number(0, 8),
    },
    "gradients": {
        "gradients_seed": number(0, 10**6),
        "gradients_forget_bias": number(-2, 3, 1),
        "gradients_recurrent_scale": number(0, 2, 1),
        "gradients_length": number(0, 20),
        "gradients_row": number(0, 20),
    },
}  # fmt: skip


#: What makes a program of its own where it is new: one change in so many.
SIZES = ("scan_length", "lstm_batch", "lstm_hidden_features", "sequence_length", "gradients_length")
SIZE_SHARE = 0.06


async def visit(url: str, page: str, changes: int, rng: random.Random, errors: list[str]) -> None:
    """Somebody who changes one thing after the other."""
    async with Session(url, page, timeout=120) as session:
        await session.rerun()
        for _ in range(changes):
            sized = rng.random() < SIZE_SHARE
            name, draw = rng.choice([one for one in PAGES[page].items() if (one[0] in SIZES) == sized])
            found = [widget for widget in session.widgets.values() if widget.matches(name)]
            if len(found) == 1:  # a widget may be gone with another choice
                run = await session.change(found[0], draw(rng))
                errors += run.exceptions


@pytest.mark.timeout(3600)
def test_five_thousand_changes(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, str(ROOT / "deploy" / "run.py"), "--plain", "--port", str(port)]
    settings = {"CARRY_LAB_COMPILE_BURST": "1000000", "JAX_PLATFORMS": "cpu"}
    with running(command, port, tmp_path / "app.log", settings) as app:
        memory, errors = Memory(app.process.pid), list[str]()
        held: list[tuple[float, int]] = []

        async def all_of_it() -> None:
            rng = random.Random(0)
            done = 0
            while done < CHANGES:
                people = [
                    visit(f"http://127.0.0.1:{port}", page, STAY, random.Random(rng.random()), errors) for page in PAGES
                ]
                await asyncio.gather(*people)
                done += STAY * len(PAGES)
                held.append((memory.rss(), memory.maps()))

        asyncio.run(all_of_it())
        worker = max((Memory(child).rss() for child in children(app.process.pid)), default=0.0)
        assert errors == []
        assert "Traceback" not in app.said
    quarter = len(held) // 4
    before, after = held[quarter : 2 * quarter], held[-quarter:]

    def median(rows: list[tuple[float, int]], which: int) -> float:
        return statistics.median(row[which] for row in rows)

    record(f"{CHANGES:,} changes: memory of the server in the end", held[-1][0], "MB", 1_000)
    grown = 100 * (median(after, 0) / median(before, 0) - 1)
    record(f"{CHANGES:,} changes: memory in the last quarter, above that in the second", grown, "%", GROWTH)
    maps = median(after, 1) - median(before, 1)
    record(f"{CHANGES:,} changes: more memory maps in the last quarter than in the second", maps, "", MAPS)
    record(f"{CHANGES:,} changes: the largest worker", worker, "MB", WORKER)
