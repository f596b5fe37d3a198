"""A class at once: 50 and 10 sessions that each move a control every 2 s, ours and the bare page in turns.

    python -m pytest tests/bench/bench_load.py -p no:xdist -s -o python_files='bench_*.py'

Errors, and values of somebody else, fail the run; times are written down beside what was promised. The client runs on
the same machine: its share of the processor is taken from both pages alike.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.bench.load_client import Load, Outcome, run
from tests.bench.plan import plan_of
from tests.bench.table import record
from tests.support.serving import free_port, healthy, running, wait_until

ROOT = Path(__file__).resolve().parents[2]
CHANGES = int(os.environ.get("BENCH_CHANGES", "12"))
#: At most: 50 sessions, 400 ms and twice the bare page; 10 sessions, 100 ms. Of the server: 1.0 GB.
P95_FIFTY, P95_TEN, RATIO, MEMORY = 400, 100, 2.0, 1_000


@dataclass(frozen=True, slots=True)
class Move:
    """A control of a page that is moved, and where its value can be read."""

    page: str
    name: str
    widget: str
    probe: str
    high: float
    digits: int


MOVES = (
    Move("", "Scan, init", "scan_init", r"and init \(([0-9.]+)\) is not among them", 1000, 2),
    Move("lstm", "LSTM cell, parameter seed", "lstm_seed", r"nnx\.Rngs\((\d+)\) draws", 1_000_000, 0),
    Move("sequence", "Sequence, parameter seed", "sequence_seed", r"nnx\.Rngs\((\d+)\) draws", 1_000_000, 0),
)


@contextmanager
def bare(plan: Path, folder: Path) -> Iterator[tuple[str, int]]:
    """The bare page of a plan: where it is, and its process."""
    port = free_port()
    command = [
        *(sys.executable, "-m", "streamlit", "run", str(ROOT / "tests" / "bench" / "bare_page.py")),
        *("--server.port", str(port), "--server.address", "127.0.0.1", "--server.headless", "true"),
        *("--server.fileWatcherType", "none", "--browser.gatherUsageStats", "false", "--logger.level", "warning"),
    ]
    environment = {**os.environ, "BARE_PLAN": str(plan), "JAX_PLATFORMS": "cpu"}
    with (folder / "bare.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        assert wait_until(lambda: healthy(port), 60), (folder / "bare.log").read_text()
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait()


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    """The app as `make run` starts it; the budget of compiles is for people, not for this."""
    port = free_port()
    command = [sys.executable, str(ROOT / "deploy" / "run.py"), "--plain", "--port", str(port)]
    environment = {"CARRY_LAB_COMPILE_BURST": "1000000", "JAX_PLATFORMS": "cpu"}
    with running(command, port, tmp_path_factory.mktemp("load") / "app.log", environment) as app:
        yield f"http://127.0.0.1:{port}", app.process.pid


def loaded(load: Load) -> Outcome:
    """Runs it. Errors and foreign values are failures, not numbers."""
    outcome = asyncio.run(run(load))
    assert outcome.errors == []
    assert outcome.wrong == []
    assert len(outcome.reruns) == load.sessions * load.changes
    return outcome


@pytest.mark.parametrize("move", MOVES, ids=[move.name for move in MOVES])
def test_a_class_moves_a_control(move: Move, ours: tuple[str, int], tmp_path: Path) -> None:
    url, pid = ours
    plan = asyncio.run(plan_of(url, move.page, move.widget, [1, 2, 3])).write(tmp_path / "plan.json")
    load = Load(
        url, move.widget, move.probe, move.page, sessions=10, changes=CHANGES,
        high=move.high, digits=move.digits, think=2.0, pid=pid,
    )  # fmt: skip
    with bare(plan, tmp_path) as (bare_url, bare_pid):
        theirs = replace(
            load, url=bare_url, page="", pid=bare_pid, probe=r"value \(([0-9.]+)\)",
            widget="text_0" if move.widget == "scan_init" else "number_0",
        )  # fmt: skip
        for one in (load, theirs):
            loaded(replace(one, sessions=5, changes=2, think=0.2))  # warm
        ten, ten_bare = loaded(load), loaded(theirs)
        fifty, fifty_bare = loaded(replace(load, sessions=50)), loaded(replace(theirs, sessions=50))
    record(f"10 sessions, {move.name}: median of a rerun", ten.p(50), "ms")
    record(f"10 sessions, {move.name}: p95 of a rerun", ten.p(95), "ms", P95_TEN)
    record(f"10 sessions, {move.name}: p95 of the bare page", ten_bare.p(95), "ms")
    record(f"50 sessions, {move.name}: median of a rerun", fifty.p(50), "ms")
    record(f"50 sessions, {move.name}: p95 of a rerun", fifty.p(95), "ms", P95_FIFTY)
    record(f"50 sessions, {move.name}: p95 of the bare page", fifty_bare.p(95), "ms")
    record(f"50 sessions, {move.name}: p95, of the bare page's", fifty.p(95) / fifty_bare.p(95), "x", RATIO)
    record(
        f"50 sessions, {move.name}: processor time of the server per rerun", 1e3 * fifty.cpu / len(fifty.reruns), "ms"
    )
    record(f"50 sessions, {move.name}: memory of the server", fifty.memory[1], "MB", MEMORY)
