"""From the start of a process to the first plot in a browser, and the memory of the server: against a bare page.

Both are started anew in turns, by the same settings, and opened the moment that they answer, in a browser that has
nothing of them. What is compared is the median.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, Page

from tests.bench.load_client import Load, run
from tests.bench.memory import Memory, children
from tests.bench.table import record
from tests.support.loop import run_apart
from tests.support.serving import READY, ROOT, Running, free_port, running, wait_until

ROUNDS = 5
PLOT = ".js-plotly-plot .main-svg"
#: Every page, as a person goes through them.
PAGES = ("", "lstm", "sequence", "gradients", "lessons", "challenges", "doctor", "catalogue", "status")
SLOW = 60_000
SETTLE = 3.0
SECONDS = 60.0
#: `load_client` on the LSTM page: the seed is shown in the text of what was drawn.
SESSIONS, CHANGES, THINK = 50, 8, 2.0


def _ours(port: int) -> list[str]:
    return [sys.executable, str(ROOT / "deploy" / "run.py"), "--plain", "--port", str(port)]


def _bare(port: int) -> list[str]:
    page = Path(__file__).with_name("bare_start.py")
    return [sys.executable, "-m", "streamlit", "run", str(page), "--server.port", str(port)]


def _first_plot(browser: Browser, command: list[str], port: int, log: Path) -> tuple[float, float]:
    """Seconds from the start to an answering port, and to the first plot."""
    context = browser.new_context()
    page = context.new_page()
    began = time.perf_counter()
    with running(command, port, log):
        answers = time.perf_counter() - began
        page.goto(f"http://127.0.0.1:{port}/")
        page.wait_for_selector(PLOT, timeout=SLOW)
        plotted = time.perf_counter() - began
        context.close()
    return answers, plotted


def test_start_to_first_plot(browser: Browser, tmp_path: Path) -> None:
    ours, bare = [], []
    for turn in range(ROUNDS + 1):
        for kept, command in ((bare, _bare), (ours, _ours)):
            port = free_port()
            took = _first_plot(browser, command(port), port, tmp_path / "start.log")
            if turn:  # the first of each only reads the disk
                kept.append(took)
    answer, first = (statistics.median(times) for times in zip(*ours, strict=True))
    bare_first = statistics.median(plotted for _, plotted in bare)
    record("start to an answering port, warm", answer, "s")
    record("start to the first plot in a browser", first, "s")
    record("start to the first plot: a bare page that imports jax", bare_first, "s")
    assert record("start to the first plot, of a bare page that imports jax", first / bare_first, "x", 2.0).ok


def _workers(server: Running) -> list[float]:
    return [Memory(pid).rss() for pid in children(server.process.pid)]


def _walk(page: Page, port: int) -> None:
    for path in PAGES:
        page.goto(f"http://127.0.0.1:{port}/{path}")
        page.wait_for_selector(READY, timeout=SLOW)


def test_memory_of_the_server(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    with running(_ours(port), port, tmp_path / "memory.log") as server:
        memory = Memory(server.process.pid)
        assert wait_until(lambda: len(children(server.process.pid)) > 1, SECONDS)
        time.sleep(SETTLE)
        record("memory of the server before anybody came", memory.rss(), "MB")
        context = browser.new_context()
        page = context.new_page()
        _walk(page, port)
        # Rows that come after the page (checks beside the plot) are done when nothing more is computed.
        used = memory.cpu_seconds()
        time.sleep(SETTLE)
        assert wait_until(lambda: memory.cpu_seconds() - used < SETTLE * os.cpu_count(), SECONDS)
        one = record("memory of the server, one session on every page", memory.rss(), "MB", 600)
        context.close()
        load = Load(
            f"http://127.0.0.1:{port}",
            widget="lstm_seed",
            probe=r"nnx\.Rngs\((\d+)\) draws",
            page="lstm",
            sessions=SESSIONS,
            changes=CHANGES,
            high=1_000_000,
            digits=0,
            think=THINK,
            pid=server.process.pid,
        )
        outcome = run_apart(run(load))
        many = record("memory of the server, 50 sessions, at its highest", outcome.memory[1], "MB", 1_000)
        each = record("memory of the largest worker", max(_workers(server)), "MB", 400)
        assert not outcome.errors
        assert not outcome.wrong
        assert one.ok
        assert many.ok
        assert each.ok
