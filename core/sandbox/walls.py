"""The walls around a worker process: after them the kernel refuses what the step language should have refused.

`enforce` comes before the process starts its first thread (JAX starts some with its first program), because Landlock and
capabilities bind one thread and those that it starts: a callback runs on JAX's threads.

Each wall is as much as this machine offers. What it does not offer is a row of the report with its reason, never an
exception: a worker behind fewer walls still runs, and the status page says so. The process itself can undo none of them.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import multiprocessing
import os
import resource
import signal
import sys
import sysconfig
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import core
from core.base.limits import LIMITS
from core.base.text import fill
from core.sandbox import filters, landlock
from core.sandbox.libc import PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_SET_PDEATHSIG, drop_capabilities, prctl

FILES = "Files"
NETWORK = "TCP"
SCOPE = "Signals and abstract sockets"
CALLS = "System calls"
PRIVILEGES = "Privileges"
ACCOUNT = "Account"
ENVIRONMENT = "Environment"
DESCRIPTORS = "Open files"
DIRECTORY = "Working directory"
TRACING = "Tracing"
PARENT = "Life"
MEMORY = "Memory"
SIZES = "File sizes"
THREADS = "Threads"
#: As the status page lists them: what keeps a script in first.
ORDER: Final = (
    *(FILES, NETWORK, SCOPE, CALLS, PRIVILEGES, ACCOUNT, TRACING, ENVIRONMENT, DESCRIPTORS, DIRECTORY),
    *(MEMORY, THREADS, SIZES, PARENT),
)

FILES_HELD = "Landlock (ABI {abi}): reads Python and system libraries only, writes and executes nothing."
NETWORK_HELD = "Landlock (ABI {abi}): no TCP connection, no TCP port."
SCOPE_HELD = "Landlock (ABI {abi}): none leaves this process."
NO_LANDLOCK = "This kernel offers no Landlock here ({error})."
LANDLOCK_TOO_OLD = "This kernel's Landlock (ABI {abi}) cannot do this; from ABI {since} on it can."
TOO_LATE = "It came when {count} other threads were already there, which it does not bind."
CALLS_HELD = "By seccomp: no sockets, programs, processes, tracing, mounts, keys, shared memory; files are read only."
PRIVILEGES_HELD = "No capabilities, and none can be gained."
ACCOUNT_HELD = "User {uid}, who owns nothing."
ACCOUNT_OTHERS = "Runs as the user of the server (not root): there is nobody else to become."
ACCOUNT_UNREADABLE = "Runs as root without capabilities: the libraries are readable by root only ({path})."
ACCOUNT_UNSTOPPABLE = "Runs as root without capabilities: the server may not stop processes of other users."
ENVIRONMENT_HELD = "Emptied, and overwritten in memory; kept: {kept}."
NOTHING = "nothing"
DESCRIPTORS_HELD = "Only the channel to the server ({count})."
DIRECTORY_HELD = "The root: nothing of the server's is near."
TRACING_HELD = "No core dumps, and no other process of this user reads the memory."
PARENT_HELD = "Ends when its parent does."
MEMORY_HELD = "At most {megabytes} MB of data (RLIMIT_DATA), beside what is reserved and not used."
SIZES_HELD = "No file can grow; {count} open files at most."
THREADS_HELD = "At most {count} threads."
THREADS_SHARED = "Not limited by number: the limit would count everything that this user runs."
REFUSED_HERE = "Not available here: {error}."

#: What JAX and the C library still read, none of it secret. Everything else goes.
KEPT: Final = ("JAX_PLATFORMS", "XLA_FLAGS", "LANG", "LC_ALL", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
#: A user of its own for each process, so that two workers cannot signal each other; then the traditional nobody.
_LONE, _NOBODY = 0x7A00_0000, 65_534
_CAP_KILL: Final = 5
#: Threads that JAX and LLVM start for each processor (measured), some more, and what each reserves for its stack.
_THREADS_EACH, _THREADS_MORE, _STACK = 6, 8, 8 << 20
_ALL_DESCRIPTORS: Final = 1 << 20


class Wall(NamedTuple):
    """One wall: whether it stands, and what it holds or why it does not stand, as a sentence for the status page."""

    name: str
    in_force: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Walls:
    """What stands around a worker."""

    rows: tuple[Wall, ...] = ()

    def __getitem__(self, name: str) -> Wall:
        """The row of this name (KeyError: there is none)."""
        for row in self.rows:
            if row.name == name:
                return row
        raise KeyError(name)


def enforce(*, keep_fds: Collection[int], memory_bytes: int, read: Iterable[Path | str] = ()) -> Walls:
    """All walls, and which of them stand. From here on the process can do no more than compute and use its channel.

    Args:
        keep_fds: the descriptors of the channel. 0, 1 and 2 become the null device, the others are closed.
        memory_bytes: how much data the process may hold, with what it holds already.
        read: what stays readable beside Python, its packages and the system's libraries: the persistent compile cache.
    """
    paths = [*library_paths(), *map(Path, read)]
    _trouble(filters.library)  # it looks for its library by starting programs
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    block, threads = _environment_block(), _count_threads()
    rows = [
        _wall(ENVIRONMENT, lambda: _empty_environment(block)),
        _wall(DIRECTORY, _leave_directory),
        _wall(MEMORY, lambda: _limit_memory(memory_bytes)),
        _wall(ACCOUNT, lambda: _leave_account(paths)),
        _wall(THREADS, _limit_threads),
        _wall(PRIVILEGES, lambda: _drop_privileges(threads)),
        *_landlock(paths, threads),
        _wall(DESCRIPTORS, lambda: _close_descriptors(frozenset(keep_fds), null)),
        _wall(TRACING, _hide_memory),
        _wall(PARENT, _end_with_parent),
        _wall(SIZES, _limit_sizes),
        _wall(CALLS, _filter_calls),
    ]
    return Walls(tuple(sorted(rows, key=lambda row: ORDER.index(row.name))))


class _NotInForce(Exception):
    """A wall that does not stand, and why: a sentence."""


def _trouble(action: Callable[[], object]) -> str:
    """What went wrong, or nothing."""
    try:
        action()
    except (OSError, ValueError, AttributeError) as error:
        return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__
    return ""


def _wall(name: str, build: Callable[[], str]) -> Wall:
    """Its row: `build` returns the sentence of a wall that stands."""
    said: list[str] = []
    try:
        error = _trouble(lambda: said.append(build()))
    except _NotInForce as reason:
        return Wall(name, False, str(reason))
    return Wall(name, False, fill(REFUSED_HERE, error=error)) if error else Wall(name, True, said[0])


# --- one thread and its children -------------------------------------------------------------------------------------


@functools.cache
def library_paths() -> tuple[Path, ...]:
    """Where Python, its packages, this project's core and the system's libraries lie, and what they read of the machine."""
    own = {*sysconfig.get_paths().values(), *sysconfig.get_paths(vars=_base_variables()).values()}
    packages = {p for p in own if Path(p).name in ("site-packages", "dist-packages") or Path(p, "os.py").exists()}
    packages |= {p for p in sys.path if Path(p).name in ("site-packages", "dist-packages", "lib-dynload")}
    packages |= {str(Path(prefix, "lib")) for prefix in (sys.prefix, sys.base_prefix)}
    return (Path(core.__file__).parent, *map(Path, sorted(packages)), *map(Path, _SYSTEM))


_SYSTEM: Final = """
    /lib /lib64 /usr/lib /usr/lib64 /usr/local/lib /etc/ld.so.cache /etc/localtime /usr/share/zoneinfo
    /dev/null /dev/urandom /proc/cpuinfo /sys/devices/system/cpu
""".split()


def _base_variables() -> dict[str, str]:
    return {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}


def _leave_directory() -> str:
    # Not one that is removed: JAX makes paths absolute whenever an exception passes through it, and would raise its own.
    os.chdir("/")
    return fill(DIRECTORY_HELD)


def _leave_account(paths: Collection[Path]) -> str:
    """Become a user who owns nothing, where that costs nothing."""
    if os.getuid() != 0:
        raise _NotInForce(fill(ACCOUNT_OTHERS))
    if not _status("CapEff", 16) >> _CAP_KILL & 1:
        raise _NotInForce(fill(ACCOUNT_UNSTOPPABLE))
    unreadable = _unreadable_by(_NOBODY, paths)
    if unreadable:
        raise _NotInForce(fill(ACCOUNT_UNREADABLE, path=unreadable))
    os.setgroups([])
    os.setresgid(_NOBODY, _NOBODY, _NOBODY)
    lone = _LONE + os.getpid()
    if _trouble(lambda: os.setresuid(lone, lone, lone)):  # a container may have no such user
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
    return fill(ACCOUNT_HELD, uid=os.getuid())


def _unreadable_by(uid: int, paths: Collection[Path]) -> str:
    """The first of the paths that this user could not read, or nothing."""
    groups, group = os.getgroups(), os.getegid()
    there = [p for p in paths if p.exists()]
    os.setgroups([])
    os.setegid(uid)
    os.seteuid(uid)
    try:
        return next((str(p) for p in there if not os.access(p, os.R_OK, effective_ids=True)), "")
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def _drop_privileges(threads: int) -> str:
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    drop_capabilities()
    if threads > 1:
        raise _NotInForce(fill(TOO_LATE, count=threads - 1))
    return fill(PRIVILEGES_HELD)


def _landlock(paths: Collection[Path], threads: int) -> list[Wall]:
    """The rows of what Landlock does, by its version."""
    version = [0]

    def restrict() -> None:
        version[0] = landlock.abi()
        landlock.restrict(paths, version[0])

    error, abi = _trouble(restrict), version[0]

    def row(name: str, since: int, held: str) -> Wall:
        if error:
            return Wall(name, False, fill(NO_LANDLOCK, error=error))
        if abi < since:
            return Wall(name, False, fill(LANDLOCK_TOO_OLD, abi=abi, since=since))
        if threads > 1 and abi < landlock.ALL_THREADS:
            return Wall(name, False, fill(TOO_LATE, count=threads - 1))
        return Wall(name, True, fill(held, abi=abi))

    return [
        row(FILES, 1, FILES_HELD),
        row(NETWORK, landlock.TCP, NETWORK_HELD),
        row(SCOPE, landlock.SCOPES, SCOPE_HELD),
    ]


def _count_threads() -> int:
    """How many this process has."""
    try:
        return _status("Threads")
    except OSError:
        return threading.active_count()


# --- the whole process -----------------------------------------------------------------------------------------------


def _empty_environment(block: tuple[int, int]) -> str:
    """Forget every variable that is not kept, and overwrite where it stood: a script that reads memory finds nothing."""
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    objects, strings = list(os.environb.values()), list(_environment_strings())
    os.environ.clear()
    for value in objects:
        if len(value) > 1:  # the shorter ones are shared by the whole interpreter
            ctypes.memset(id(value) + bytes.__basicsize__ - 1, 0, len(value))
    for start, length in (*strings, (block[0], block[1] - block[0])):
        ctypes.memset(start, 0, length)
    os.environ.update(kept)
    # The key by which the server's processes know each other came along as well.
    multiprocessing.current_process().authkey = b""
    return fill(ENVIRONMENT_HELD, kept=", ".join(kept) or fill(NOTHING))


def _environment_strings() -> Iterator[tuple[int, int]]:
    """Address and length of every ``NAME=value`` of the C library: those set since the start lie on its heap."""
    at = ctypes.POINTER(ctypes.c_void_p).in_dll(ctypes.CDLL(None), "environ")
    for i in itertools.count():
        address = at[i] if at else None
        if address is None:
            return
        yield address, len(ctypes.string_at(address))


def _environment_block() -> tuple[int, int]:
    """Where the kernel put the environment at the start (proc(5): fields 50 and 51 of stat); equal when unknown."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0, 0
    return int(fields[47]), int(fields[48])


def _close_descriptors(keep: frozenset[int], null: int) -> str:
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    low = 3
    for kept in (*sorted(keep - {0, 1, 2}), _ALL_DESCRIPTORS):
        os.closerange(low, kept)
        low = kept + 1
    return fill(DESCRIPTORS_HELD, count=len(keep))


def _hide_memory() -> str:
    _limit(resource.RLIMIT_CORE, 0)
    prctl(PR_SET_DUMPABLE, 0)
    return fill(TRACING_HELD)


def _end_with_parent() -> str:
    parent = os.getppid()
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended in between
        os._exit(1)
    return fill(PARENT_HELD)


def _limit_memory(size: int) -> str:
    """RLIMIT_DATA counts what is only reserved, too: stacks of threads, arenas of the allocator. That is added."""
    reserved = max(0, 1024 * (_status("VmData") - _status("RssAnon")))
    stacks = (_THREADS_EACH * len(os.sched_getaffinity(0)) + _THREADS_MORE) * _STACK
    _limit(resource.RLIMIT_DATA, size + reserved + stacks)
    return fill(MEMORY_HELD, megabytes=size // 1_000_000)


def _limit_sizes() -> str:
    for kind in (resource.RLIMIT_FSIZE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        _limit(kind, 0)
    count = LIMITS["worker_files"].value
    _limit(resource.RLIMIT_NOFILE, count)
    return fill(SIZES_HELD, count=count)


def _limit_threads() -> str:
    if os.getuid() < _LONE:
        raise _NotInForce(fill(THREADS_SHARED))
    count = LIMITS["worker_threads"].value
    _limit(resource.RLIMIT_NPROC, count)
    return fill(THREADS_HELD, count=count)


def _filter_calls() -> str:
    filters.load()
    return fill(CALLS_HELD)


def _limit(kind: int, value: int) -> None:
    """Both limits, and never above what there is already."""
    hard = resource.getrlimit(kind)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))


def _status(name: str, base: int = 10) -> int:
    """A number of this process from proc(5)'s status.

    Raises:
        OSError: there is none.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0], base)
    raise OSError(name)
