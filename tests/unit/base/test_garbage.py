"""Garbage is collected every few seconds, by one thread, whoever asks."""

from __future__ import annotations

import contextlib
import threading
import tomllib
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from core.base.garbage import Collector


def test_not_before_it_is_time() -> None:
    clock, done = [0.0], []
    collector = Collector(5, lambda: clock[0], lambda: done.append(clock[0]))
    for clock[0] in (0.0, 4.9, 5.0, 5.1, 9.9, 10.1):
        collector.now_and_then()
    assert done == [5.0, 10.1]


def test_two_at_once_collect_once() -> None:
    began, go, done = threading.Event(), threading.Event(), []

    def slow() -> None:
        began.set()
        assert go.wait(30)
        done.append(True)

    collector = Collector(0, collect=slow)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(collector.now_and_then)
        assert began.wait(30)
        assert not collector.now_and_then()
        go.set()
        assert first.result(30)
    assert done == [True]


def test_a_collection_that_fails_is_not_the_last_one() -> None:
    calls = []

    def failing() -> None:
        calls.append(True)
        raise MemoryError

    collector = Collector(0, collect=failing)
    for _ in range(2):
        with contextlib.suppress(MemoryError):
            collector.now_and_then()
    assert len(calls) == 2


def test_what_only_a_cycle_holds_is_freed() -> None:
    class Node:
        me: Node

    node = Node()
    node.me = node
    gone = weakref.ref(node)
    del node
    assert Collector(0).now_and_then()
    assert gone() is None


def test_streamlit_does_not_collect_after_every_run() -> None:
    settings = Path(__file__).resolve().parents[3] / ".streamlit" / "config.toml"
    assert tomllib.loads(settings.read_text(encoding="utf-8"))["runner"]["postScriptGC"] is False
