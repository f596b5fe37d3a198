"""Compiled programs that a worker need not compile again: a folder filled once by us, and its own memory above it.

The folder is JAX's persistent cache. Whoever may write to it makes other processes run what he wrote, so that only a
trusted process does (`fill`), before any script ran; workers read it (`use`). What a worker compiles itself it keeps in
its own memory: each check of a script makes its programs anew (functions of a script are new objects each time), and so
does every trial of a fix. Without that, the second check of a script costs 200 ms instead of 60 (measured).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any, Final

import jax
from jax._src import compilation_cache  # no public way to give JAX a cache that is no folder
from jax._src.compilation_cache_interface import CacheInterface

#: Compressed programs kept in one worker's memory, in bytes: some hundred of them.
MEMORY: Final = 1 << 25
_SUFFIX: Final = "-cache"


def fill(folder: Path) -> None:
    """Let this process write all that it compiles into the folder, while others read there."""
    _configure(folder, Filling(folder))


def use(folder: Path | None, memory: int = MEMORY) -> None:
    """Let this process read the folder, and keep what it compiles in its own memory.

    Args:
        folder: what `fill` filled; it is never written to. None: memory alone.
        memory: at most so many bytes are kept there.
    """
    layered = Layered(folder, memory)
    _configure(layered._path, layered)


def _configure(folder: Path, cache: Any) -> None:
    config: Any = jax.config  # untyped in jax's stubs
    config.update("jax_compilation_cache_dir", str(folder))
    compilation_cache._cache = cache
    compilation_cache._cache_initialized = True
    # Without these two nothing small is kept, and everything here is small.
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    config.update("jax_persistent_cache_min_entry_size_bytes", -1)


class Filling(CacheInterface):
    """The folder, written in a way that a reader finds a whole program or none (JAX's own cache writes in place)."""

    def __init__(self, folder: Path) -> None:
        self._path = folder

    def get(self, key: str) -> bytes | None:
        """The program kept under a key."""
        return _read(self._path, key)

    def put(self, key: str, value: bytes) -> None:
        """Keep a program."""
        whole = self._path / f"{key}{_SUFFIX}"
        part = whole.with_suffix(".part")
        part.write_bytes(value)
        part.replace(whole)


class Layered(CacheInterface):
    """A dictionary with a limit of bytes, oldest use first out, above a folder that is only read."""

    def __init__(self, folder: Path | None, limit: int) -> None:
        self._path = folder if folder is not None else Path("/nonexistent")
        self._folder = folder
        self._limit = limit
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """The program kept under a key, as JAX stored it; None when there is none."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        return None if self._folder is None else _read(self._folder, key)

    def put(self, key: str, value: bytes) -> None:
        """Keep a program, unless it alone is over the limit."""
        if len(value) > self._limit:
            return
        with self._lock:
            self._size += len(value) - len(self._kept.pop(key, b""))
            self._kept[key] = value
            while self._size > self._limit:
                _, dropped = self._kept.popitem(last=False)
                self._size -= len(dropped)


def _read(folder: Path, key: str) -> bytes | None:
    try:
        return (folder / f"{key}{_SUFFIX}").read_bytes()
    except OSError:
        return None
