"""Runs a coroutine in a thread of its own: Playwright's loop may already run in this one (`tests.support.browsing`)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def run_apart[T](coroutine: Coroutine[Any, Any, T]) -> T:
    """What `asyncio.run` gives, from wherever it is called."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, coroutine).result()
