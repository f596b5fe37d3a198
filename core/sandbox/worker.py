"""The main loop of a worker: one request at a time, from the pool's socket, to the handler, and back.

It runs in a process forked from `core.sandbox.forkserver`, behind the kernel's walls, which go up before JAX starts its
first thread: a wall holds for the thread that built it and for those that come later. One worker answers one session.

What it says (JSON frames, `channel`): ``{"ready": walls}`` once, then for each request ``{"started": true}`` and one of
``{"answer": …, "retire": …}``, ``{"long": bytes}``, ``{"time": …}``, ``{"memory": …}``, ``{"failed": type, "at": places}``.
Asked by SIGUSR1, or when it crashes, it writes where its main thread is to a second pipe (`faulthandler`: in C, also
while one long call of C holds the interpreter).
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import os
import resource
import select
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, cast

import core
from core.base.limits import LIMITS
from core.sandbox import channel, compile_cache, timeup
from core.sandbox.timeup import TimeUp
from core.sandbox.walls import enforce

__all__ = ["Job", "TimeUp", "fill", "serve"]

#: C stack of the main thread, in bytes: a deep recursion through JAX ends in a RecursionError, not in a crash.
STACK: Final = 64 << 20
#: Seconds without a request after which a worker tidies its memory.
QUIET: Final = 0.2
#: How nice the process is that fills the folder with what may be wanted later.
_LATER: Final = 15
#: Of so many collections of younger objects one is a full one: never would let a heavy loop fill the memory.
FULL: Final = 100
#: Frames of ours named in the report of a failure.
FRAMES: Final = 6


class Handler(Protocol):
    """The module that answers."""

    def warm(self) -> None:
        """Make the first request as quick as later ones."""

    def handle(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer one request with plain data."""


@dataclass(frozen=True, slots=True)
class Job:
    """What this process is for: the handler's module, the folder of compiled programs, walls, bytes of memory."""

    handler: str
    folder: Path
    walls: bool
    memory: int


def fill(talk: int, stacks: int, job: Job) -> None:
    """Warm up with the folder open for writing, and end: what every worker compiles is compiled once.

    Then, while nobody waits for it, what many scripts will want (`stock` of the handler's module, when it has one). No
    script but our own runs here, so that there are no walls.
    """
    _quiet()
    os.close(stacks)
    compile_cache.fill(job.folder)
    handler = _handler(job)
    handler.warm()
    channel.send(talk, channel.pack({"filled": True}, LIMITS["answer_bytes"].value))
    os.nice(_LATER)
    getattr(handler, "stock", int)()


def serve(talk: int, stacks: int, job: Job) -> None:
    """Put up the walls, warm up, then answer until the server is gone."""
    _quiet()
    _stack()
    faulthandler.enable(stacks, all_threads=False)
    faulthandler.register(signal.SIGUSR1, stacks, all_threads=False)
    limit = LIMITS["answer_bytes"].value
    try:
        walls = _walls((talk, stacks), job) if job.walls else []
        compile_cache.use(job.folder)
        handler = _handler(job)
        handler.warm()
    except BaseException as error:  # noqa: BLE001  # said, so that the status page can say why there are no workers
        channel.send(talk, _failed(error, limit))
        return
    gc.collect()
    gc.freeze()
    # Full collections in the middle of a check cost it a tenth of its time; `_tidy_when_quiet` makes up for them.
    gc.set_threshold(*gc.get_threshold()[:2], FULL)
    channel.send(talk, channel.pack({"ready": walls}, limit))
    while True:
        _tidy_when_quiet(talk)
        request = channel.receive(talk, LIMITS["request_bytes"].value)
        if request is None:
            return
        channel.send(talk, channel.pack({"started": True}, limit))
        channel.send(talk, _answer(handler.handle, request, limit))


def _answer(handle: Callable[[dict[str, Any]], dict[str, Any]], message: dict[str, Any], limit: int) -> bytes:
    """The frame that answers a request, whatever happens to it."""
    try:
        try:
            timeup.arm(message["alarm"])
            answer = dict(handle(message["request"]))
        finally:
            timeup.arm(0)
        retire = bool(answer.pop("retire", False))
        return channel.pack({"answer": answer, "retire": retire}, limit)
    except channel.TooLong as long:
        return channel.pack({"long": long.size}, limit)
    except TimeUp:
        return channel.pack({"time": True}, limit)
    except MemoryError:
        return channel.pack({"memory": True}, limit)
    except BaseException as error:  # noqa: BLE001  # our own failure is told, and ends this worker only
        return _failed(error, limit)


def _failed(error: BaseException, limit: int) -> bytes:
    """An exception of ours: its type, and files and lines of ours; nothing of what anybody typed."""
    root = Path(core.__file__).parent.parent
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if Path(f.filename).is_relative_to(root)]
    places = [f"{Path(f.filename).relative_to(root)}:{f.lineno}" for f in ours[-FRAMES:]]
    return channel.pack({"failed": type(error).__name__, "at": places}, limit)


def _handler(job: Job) -> Handler:
    return cast(Handler, importlib.import_module(job.handler))


def _quiet() -> None:
    """Nothing to read, and nobody's terminal to write to: what libraries say there may hold a learner's text."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    if null > 2:
        os.close(null)


def _stack() -> None:
    with suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_STACK)
        wanted = STACK if hard == resource.RLIM_INFINITY else min(STACK, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (wanted, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _walls(keep: tuple[int, ...], job: Job) -> list[list[Any]]:
    """Put up the kernel's walls. Rows for the status page: name, whether it is in force, and what it holds or why not."""
    walls = enforce(keep_fds=keep, read=(str(job.folder),), memory_bytes=job.memory)
    return [list(row) for row in walls.rows]


_trim: Callable[[int], int] | None = None
if sys.platform == "linux":
    _trim = getattr(ctypes.CDLL(None), "malloc_trim", None)


def _tidy_when_quiet(talk: int) -> None:
    """Give back memory between requests, but not between the check of a script and the question for its fixes."""
    ready, _, _ = select.select([talk], [], [], QUIET)
    if not ready:
        gc.collect()
        if _trim is not None:
            _trim(0)
