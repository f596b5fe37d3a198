"""Compiled programs that outlive the server, where somebody asks for it: a folder that JAX's persistent cache reads.

Off unless a folder is named (`core.base.program_folder`). Workers never see it: `core.sandbox.compile_cache` is theirs.
What goes wrong while something is kept, a full disk first of all, costs a compile after the next start, nothing else.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import jax
from jax._src import compilation_cache  # no public way to give JAX a cache of one's own
from jax._src.compilation_cache_interface import CacheInterface

from core.base.limits import LIMITS

_SUFFIX: Final = "-cache"


def keep_programs(folder: Path) -> None:
    """Have this process look there before it compiles, and leave there what it compiled."""
    config: Any = jax.config  # untyped in jax's stubs
    config.update("jax_compilation_cache_dir", str(folder))
    compilation_cache._cache = KeptPrograms(folder, LIMITS["kept_programs"].value)
    compilation_cache._cache_initialized = True
    # Without these two nothing small is kept, and everything here is small.
    config.update("jax_persistent_cache_min_compile_time_secs", 0)
    config.update("jax_persistent_cache_min_entry_size_bytes", -1)


class KeptPrograms(CacheInterface):
    """The folder: written so that a reader finds a whole program or none, and never beyond a number of programs.

    Args:
        folder: where they are; other servers may use it at the same time.
        most: programs kept there; with so many it is only read.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._path: Any = folder  # JAX asks for it, as a path of its own kind
        self._folder = folder
        self._room = most - sum(1 for file in folder.iterdir() if file.name.endswith(_SUFFIX))
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes | None:
        """The program kept under a key; None when there is none."""
        try:
            return (self._folder / f"{key}{_SUFFIX}").read_bytes()
        except OSError:
            return None

    def put(self, key: str, value: bytes) -> None:
        """Keep a program, if there is room for it."""
        with self._lock:
            if self._room <= 0:
                return
            self._room -= 1
        part = self._folder / f"{key}.{os.getpid()}.{threading.get_ident()}.part"
        try:
            part.write_bytes(value)
            part.replace(self._folder / f"{key}{_SUFFIX}")
        except OSError:  # the disk is full, or the folder is gone
            with suppress(OSError):
                part.unlink()
