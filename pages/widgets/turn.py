"""A script's turn at the interpreter (`core.base.turn`), and what is cleared up after it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from core.base.garbage import COLLECTOR
from core.base.turn import TURNS


@contextmanager
def in_turn() -> Iterator[None]:
    """Around all that a page's script does."""
    try:
        with TURNS.turn():
            yield
    finally:
        COLLECTOR.now_and_then()
