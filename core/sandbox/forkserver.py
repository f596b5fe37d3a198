"""The process that workers are forked from: everything imported, nothing started.

Started by `core.sandbox.pool_process`, once; a worker forked from it is there in milliseconds and shares its memory. It
imports and computes nothing else: no JAX backend, no second thread (a fork copies one thread only). It is no
`multiprocessing` forkserver because that one runs the main module again in every child (under Streamlit: the page
itself), hands each child the authentication key and the resource tracker's pipe, and keeps the server's environment in
its memory; this one was started with an environment of its own, and knows nothing that a script must not read.

It says and hears JSON (`channel`): ``{"start": "worker"}`` with two file descriptors, answered by ``{"pid": n}``. When
the server is gone the connection ends; then it ends its workers, removes what they shared, and ends itself. Should it
die first, the kernel ends its workers (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import selectors
import shutil
import signal
import socket
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from core.sandbox import channel

#: Bytes of one message of the server.
MESSAGE: Final = 4_096
#: What the server may ask to be forked: a worker for a session, or the one that fills the folder of programs.
WORKER, FILLER = "worker", "filler"
#: What pasted scripts use besides, and what JAX imports only when it lowers a factorisation; where it is there.
USED: Final = ("optax", "scipy.linalg", "jaxlib.lapack", "jaxlib.mlir.dialects.mhlo", "concurrent.futures.thread")
#: A module of handlers may have these: what is imported and prepared once for all workers, without a backend.
PRELOAD: Final = "preload"

_PR_SET_PDEATHSIG: Final = 1
_FAILED: Final = 70


@dataclass(frozen=True, slots=True)
class Plan:
    """What the server told this process at its start.

    Attributes:
        handler: the module whose `handle` answers requests and whose `warm` makes the first one quick.
        folder: compiled programs, filled by a `FILLER`, read by workers; removed at the end.
        walls: whether workers put up the kernel's walls.
        memory: bytes that a worker may have.
    """

    handler: str
    folder: Path
    walls: bool
    memory: int


def main(control: int, plan: Plan) -> NoReturn:
    """Prepare, then fork whatever the server asks for until it is gone."""
    _prepare(plan.handler)
    children: set[int] = set()
    with socket.socket(fileno=control) as server, _wakeups() as wakeups, selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        selector.register(wakeups, selectors.EVENT_READ)
        server.sendall(channel.pack({"ready": True}, MESSAGE))
        while True:
            selector.select()
            _drain(wakeups)
            _reap(children)
            asked = _asked(server)
            if asked is None:
                continue
            data, fds = asked
            if not data:
                break
            role = channel.unpack(data[channel.HEADER :])["start"]
            pid = _fork(role, fds, plan, (server, wakeups))
            children.add(pid)
            for fd in fds:
                os.close(fd)
            with suppress(OSError):  # gone in between: the next look says so
                server.sendall(channel.pack({"pid": pid}, MESSAGE))
        _end(children, plan)


def _asked(server: socket.socket) -> tuple[bytes, list[int]] | None:
    """A message and its descriptors; no bytes when the server is gone, None when there is nothing yet."""
    server.setblocking(False)
    try:
        data, fds, _, _ = socket.recv_fds(server, MESSAGE, 2)
    except BlockingIOError:
        return None
    except OSError:
        return b"", []
    finally:
        server.setblocking(True)
    return data, list(fds)


def _prepare(handler: str) -> None:
    """Import all that workers use, and take it out of the garbage collector's sight (its marks would copy pages)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)  # programs that we write are read by workers who are other users
    module = importlib.import_module(handler)
    import flax.nnx  # noqa: F401
    import jax  # noqa: F401

    import core.sandbox.worker  # noqa: F401
    from core.sandbox import filters, walls

    walls.library_paths()
    with suppress(OSError):
        filters.library()  # it looks for its library by starting programs: not once a worker
    for name in USED:
        with suppress(ImportError):
            importlib.import_module(name)

    preload = getattr(module, PRELOAD, None)
    if preload is not None:
        preload()
    gc.collect()
    gc.freeze()


def _fork(role: str, fds: list[int], plan: Plan, ours: tuple[socket.socket, socket.socket]) -> int:
    here = os.getpid()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX's, about its threads: here it has none
        pid = os.fork()
    if pid:
        return pid
    try:
        die_with_parent(here)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for end in ours:
            end.close()
        _become(role, fds, plan)
    except BaseException:  # noqa: BLE001  # nothing of a worker may come back into this loop
        os._exit(_FAILED)
    os._exit(0)


def _become(role: str, fds: list[int], plan: Plan) -> None:
    from core.sandbox import worker

    talk, stacks = fds
    job = worker.Job(plan.handler, plan.folder, plan.walls, plan.memory)
    (worker.fill if role == FILLER else worker.serve)(talk, stacks, job)


def die_with_parent(parent: int) -> None:
    """Have the kernel kill this process when its parent ends (Linux; elsewhere the end of its channel ends it)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(_FAILED)


def _wakeups() -> socket.socket:
    """Becomes readable when a child ended."""
    read, write = socket.socketpair()
    read.setblocking(False)
    write.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(write.detach(), warn_on_full_buffer=False)
    return read


def _drain(wakeups: socket.socket) -> None:
    with suppress(BlockingIOError):
        while wakeups.recv(4_096):
            pass


def _reap(children: set[int]) -> None:
    with suppress(ChildProcessError):
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            children.discard(pid)


def _end(children: set[int], plan: Plan) -> NoReturn:
    signal.set_wakeup_fd(-1)
    for pid in children:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(plan.folder, ignore_errors=True)
    os._exit(0)


def run(arguments: dict[str, Any]) -> NoReturn:
    """What the command line of this process calls."""
    plan = Plan(arguments["handler"], Path(arguments["folder"]), arguments["walls"], arguments["memory"])
    main(arguments["control"], plan)
