"""The pool's hands: the fork server and the workers as processes. The only module of core that starts any.

Nothing here decides anything; `core.sandbox.pool` does.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import psutil

from core.base.limits import LIMITS
from core.sandbox import channel, forkserver
from core.sandbox.words import FILENAME

#: What the fork server's interpreter runs. Isolated (-I), with the server's own path of modules put in.
BOOT: Final = (
    "import json, sys; plan = json.loads(sys.argv[1]); sys.path[:] = plan['path']; "
    "from core.sandbox.forkserver import run; run(plan)"
)
#: What of the server's environment the workers' family may know; the rest (keys, tokens, paths) stays here.
HANDED_ON: Final = ("LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH")
#: What it is given besides: one thread for each library that would start its own at import, since a fork copies one;
#: and LLVM's first level, which compiles in 0.6 of the time what then runs as quick (level 0: a dot in a scan takes four
#: times as long), with last bits that differ in 2 % of the arrays of our clean programs.
OWN_ENVIRONMENT: Final = {
    "JAX_PLATFORMS": "cpu", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "TF_CPP_MIN_LOG_LEVEL": "3", "MALLOC_ARENA_MAX": "2", "HOME": "/nonexistent", "PATH": "",
    "XLA_FLAGS": "--xla_backend_optimization_level=1",
}  # fmt: skip
#: Seconds that the fork server gets for its imports, and for one fork.
PREPARATION, FORK = 120.0, 10.0
#: A frame of the script in what `faulthandler` writes, innermost first.
_SCRIPT_LINE: Final = re.compile(rb'File "' + re.escape(FILENAME.encode()) + rb'", line (\d{1,7}) in')
_MUCH: Final = 1 << 16


class CannotStart(Exception):
    """The fork server is not there, or does not answer; the text is for the status page."""


class WorkerProcess:
    """A forked process, its socket, and the pipe on which it says where it is."""

    def __init__(self, pid: int, talk: socket.socket, stacks: int) -> None:
        self.pid = pid
        self.talk = talk
        self.inbox = channel.Inbox(LIMITS["answer_bytes"].value)
        self._stacks = stacks
        self._said = b""
        self._outbox = memoryview(b"")
        self._handle = _handle_of(pid)
        self._process: psutil.Process | None = None
        talk.setblocking(False)
        os.set_blocking(stacks, False)

    def fileno(self) -> int:
        """Of its socket, for a selector."""
        return self.talk.fileno()

    def send(self, frame: bytes) -> bool:
        """Send a frame as far as the socket takes it; whether all of it is out. The rest goes with `flush`."""
        self._outbox = memoryview(frame)
        return self.flush()

    def flush(self) -> bool:
        """Send more of what is left; whether all of it is out."""
        try:
            while self._outbox:
                self._outbox = self._outbox[self.talk.send(self._outbox) :]
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:  # it is gone: its end of the socket says so too
            self._outbox = memoryview(b"")
        return True

    def memory(self) -> int:
        """Bytes resident; 0 once it is gone."""
        try:
            self._process = self._process or psutil.Process(self.pid)
            return int(self._process.memory_info().rss)
        except psutil.Error:
            return 0

    def cpu(self) -> float:
        """Seconds of a core that it has used since it was forked; -1 once it is gone."""
        try:
            self._process = self._process or psutil.Process(self.pid)
            times = self._process.cpu_times()
            return float(times.user + times.system)
        except psutil.Error:
            return -1.0

    def ask(self) -> None:
        """Have it say where its main thread is; `line` knows as soon as it did."""
        self._signal(signal.SIGUSR1)

    def line(self) -> int | None:
        """The innermost line of the script in its main thread, as far as it said: when asked, or as it crashed."""
        with suppress(OSError):
            while len(self._said) < _MUCH and (piece := os.read(self._stacks, _MUCH)):
                self._said += piece
        found = _SCRIPT_LINE.search(self._said)
        return None if found is None else int(found[1])

    def end(self) -> None:
        """Kill it and let go of all that belongs to it. The fork server reaps it."""
        self._signal(signal.SIGKILL)
        self.talk.close()
        for fd in (self._stacks, self._handle):
            if fd is not None:
                os.close(fd)
        self._handle = None

    def _signal(self, number: signal.Signals) -> None:
        with suppress(OSError):
            if self._handle is not None and sys.platform == "linux":
                signal.pidfd_send_signal(self._handle, number)
            else:
                os.kill(self.pid, number)


def _handle_of(pid: int) -> int | None:
    """A handle that no later process of the same number takes over, where the system has such."""
    with suppress(OSError, AttributeError):
        return os.pidfd_open(pid)
    return None


class ForkServer:
    """The process that workers are forked from. Used by one thread at a time, but for `alive` and `close`."""

    def __init__(self, handler: str, *, walls: bool, memory: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="carry-lab-programs-"))
        self.folder.chmod(0o755)  # nothing in it is anybody's: it is filled before the first script
        ours, theirs = socket.socketpair()
        plan: dict[str, Any] = {"handler": handler, "folder": str(self.folder), "walls": walls, "memory": memory}
        plan["path"] = _module_path()
        with theirs:
            plan["control"] = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter, our own text
                [sys.executable, "-I", "-B", "-c", BOOT, json.dumps(plan)],
                pass_fds=(theirs.fileno(),),
                env=_environment(os.environ),
                stdin=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl+C in the server's terminal is the server's to hear
                cwd="/",
            )
        self._control = ours
        self._ready = False

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def ended_within(self, seconds: float) -> bool:
        """Whether the process is over, or is so within this time."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return not self.alive

    def fork(self, role: str) -> WorkerProcess:
        """A new process. Waits for the fork server, the first time until it has imported everything.

        Raises:
            CannotStart: it is gone, or does not answer.
        """
        try:
            if not self._ready:
                self._hear(PREPARATION)
                self._ready = True
            return self._fork(role)
        except (OSError, channel.Garbage, KeyError, ValueError) as error:
            raise CannotStart(type(error).__name__) from None

    def _fork(self, role: str) -> WorkerProcess:
        ours, theirs = socket.socketpair()
        read, write = os.pipe()
        try:
            with theirs:
                message = channel.pack({"start": role}, forkserver.MESSAGE)
                socket.send_fds(self._control, [message], [theirs.fileno(), write])
                pid = int(self._hear(FORK)["pid"])
        except BaseException:
            ours.close()
            os.close(read)
            raise
        finally:
            os.close(write)
        return WorkerProcess(pid, ours, read)

    def _hear(self, seconds: float) -> dict[str, Any]:
        self._control.settimeout(seconds)
        data = self._control.recv(forkserver.MESSAGE)
        return channel.unpack(data[channel.HEADER :])

    def close(self) -> None:
        """End it, and with it all its workers; what they shared is removed."""
        self._control.close()
        try:
            self._process.wait(2.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def _module_path() -> list[str]:
    """Where this process finds its modules, without relative entries."""
    root = str(Path(__file__).resolve().parents[2])
    return list(dict.fromkeys([root, *(entry for entry in sys.path if Path(entry).is_absolute())]))


def _environment(mine: Mapping[str, str]) -> dict[str, str]:
    limits = [limit.variable for limit in LIMITS.values()]
    return OWN_ENVIRONMENT | {name: mine[name] for name in (*HANDED_ON, *limits) if name in mine}
