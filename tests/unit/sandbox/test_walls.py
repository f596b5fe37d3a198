"""Each wall by itself, in a process of its own: that it stands, that it is reported, and what is said where it cannot."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from core.sandbox import landlock, libc, walls

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's")

ROOT = Path(__file__).parents[3]
ALL = set(walls.ORDER)


def landlock_abi() -> int:
    try:
        return landlock.abi()
    except OSError:
        return 0


def has_seccomp() -> bool:
    return "seccomp" in subprocess.run([sys.executable, "-c", "import pyseccomp; print('seccomp')"], **_QUIET).stdout


_QUIET: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60, "check": False}
needs_landlock = pytest.mark.skipif(not landlock_abi(), reason="this kernel offers no Landlock")
needs_seccomp = pytest.mark.skipif(not has_seccomp(), reason="no pyseccomp or no libseccomp2 here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")

PREAMBLE = """
import contextlib, ctypes, json, os, socket, sys, threading, types
from core.sandbox import filters, landlock, libc, walls
channel = os.dup(1)
told = {}
def enforce(**options):
    rows = walls.enforce(**({"keep_fds": (channel,), "memory_bytes": 400_000_000} | options)).rows
    told["rows"] = [list(row) for row in rows]
def attempt(action):
    try:
        return repr(action())
    except BaseException as error:
        return type(error).__name__
"""
EPILOGUE = """
os.write(channel, json.dumps(told).encode())
"""


def behind(script: str, **environment: str) -> Any:
    """What a script tells that puts up walls in a process of its own; `rows` by their names."""
    source = PREAMBLE + textwrap.dedent(script) + EPILOGUE
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), **environment}
    ran = subprocess.run([sys.executable, "-c", source], env=env, cwd="/", **_QUIET)
    assert ran.stdout, ran.stderr
    told = json.loads(ran.stdout)
    told["rows"] = {name: (in_force, reason) for name, in_force, reason in told["rows"]}
    return told


def held(told: Any, *names: str) -> list[bool]:
    return [told["rows"][name][0] for name in names]


def test_every_wall_has_its_row_and_a_whole_sentence() -> None:
    rows = behind("enforce()")["rows"]
    assert set(rows) == ALL
    for name, (_, reason) in rows.items():
        assert re.fullmatch(r"[A-Z].*\.", reason), name
        assert "{" not in reason, name


def test_what_needs_no_luck_is_in_force_everywhere() -> None:
    told = behind("enforce()")
    names = (walls.ENVIRONMENT, walls.DESCRIPTORS, walls.DIRECTORY, walls.PRIVILEGES, walls.TRACING)
    assert held(told, *names, walls.MEMORY, walls.SIZES, walls.PARENT) == [True] * 8


@needs_landlock
def test_landlock_reads_what_it_was_given_and_writes_nothing(tmp_path: Path) -> None:
    given, other = tmp_path / "given", tmp_path / "other"
    for folder in (given, other):
        folder.mkdir()
        (folder / "a.txt").write_text("text")
    told = behind(f"""
        filters.load = lambda: None  # Landlock alone
        enforce(read=({str(given)!r},))
        told["given"] = attempt(lambda: open({str(given / "a.txt")!r}).read())
        told["other"] = attempt(lambda: open({str(other / "a.txt")!r}).read())
        told["written"] = attempt(lambda: open({str(given / "b.txt")!r}, "w"))
        told["listed"] = attempt(lambda: os.listdir("/"))
        told["project"] = attempt(lambda: open({str(ROOT / "pyproject.toml")!r}).read())
        told["library"] = attempt(lambda: __import__("wave").__name__)
        told["core"] = attempt(lambda: __import__("core.sandbox.words").__name__)
    """)
    refused = "PermissionError"
    assert held(told, walls.FILES) == [True]
    assert [told[n] for n in ("other", "written", "listed", "project")] == [refused] * 4
    assert [told[n] for n in ("given", "library", "core")] == ["'text'", "'wave'", "'core'"]


@needs_landlock
@pytest.mark.parametrize("version", range(1, landlock.NEWEST + 1))
def test_every_landlock_abi_does_what_it_can_and_says_so(version: int) -> None:
    if version > landlock_abi():
        pytest.skip("this kernel's is older")
    told = behind(f"""
        filters.load = lambda: None  # Landlock alone
        landlock.abi = lambda: {version}
        server = socket.create_server(("127.0.0.1", 0))
        port = server.getsockname()[1]
        enforce(keep_fds=(channel, server.fileno()))
        told["tcp"] = attempt(lambda: socket.create_connection(("127.0.0.1", port)).close())
        told["kill"] = attempt(lambda: os.kill(os.getppid(), 0))
        told["read"] = attempt(lambda: open("/etc/passwd"))
    """)
    assert held(told, walls.FILES, walls.NETWORK, walls.SCOPE) == [True, version >= 4, version >= 6]
    assert told["read"] == "PermissionError"
    assert told["tcp"] == ("PermissionError" if version >= 4 else "None")
    if os.geteuid() == 0:  # without its capabilities root still is root to its own processes
        assert told["kill"] == ("PermissionError" if version >= 6 else "None")
    for name, since in ((walls.NETWORK, 4), (walls.SCOPE, 6)):
        assert (f"from ABI {since} on" in told["rows"][name][1]) == (version < since)


def test_a_kernel_without_landlock_is_reported_and_the_rest_stands() -> None:
    """The filter of another process answers as such a kernel does."""
    told = behind("""
        def missing(number, *values):
            raise OSError(38, os.strerror(38))
        landlock.call = missing
        enforce()
    """)
    assert held(told, walls.FILES, walls.NETWORK, walls.SCOPE) == [False] * 3
    assert "Function not implemented" in told["rows"][walls.FILES][1]
    assert held(told, walls.ENVIRONMENT, walls.PRIVILEGES, walls.DESCRIPTORS) == [True] * 3
    assert held(told, walls.CALLS) == [has_seccomp()]


@needs_seccomp
def test_a_kernel_that_really_has_no_landlock() -> None:
    told = behind("""
        seccomp = filters.library()
        rules = seccomp.SyscallFilter(seccomp.ALLOW)
        rules.add_rule(seccomp.ERRNO(95), 444)  # EOPNOTSUPP: built in and switched off
        rules.load()
        enforce()
        told["socket"] = attempt(socket.socket)
    """)
    assert held(told, walls.FILES, walls.NETWORK, walls.SCOPE, walls.CALLS) == [False, False, False, True]
    assert told["socket"] == "OSError"


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ('sys.modules["pyseccomp"] = None', "pyseccomp"),
        (
            'import ctypes.util as u; u.find_library = lambda name: None if name == "seccomp" else "libc.so.6"',
            "libseccomp",
        ),
    ],
    ids=["pyseccomp", "libseccomp2"],
)
def test_a_machine_without_libseccomp_still_runs_and_says_so(missing: str, said: str) -> None:
    told = behind(f"""
        {missing}
        enforce()
        told["socket"] = attempt(lambda: socket.socket().close())
    """)
    assert held(told, walls.CALLS) == [False]
    assert said in told["rows"][walls.CALLS][1]
    assert told["socket"] == "None"  # that wall is really not there
    assert held(told, walls.FILES) == [landlock_abi() > 0]
    assert held(told, walls.MEMORY, walls.PRIVILEGES) == [True, True]


@needs_seccomp
def test_calls_that_are_not_on_the_list_are_not_implemented() -> None:
    told = behind("""
        victim = os.getppid()
        enforce()
        c = ctypes.CDLL(None, use_errno=True)
        def raw(*values):
            return c.syscall(*(ctypes.c_long(v) for v in values)), ctypes.get_errno()
        told["socket"] = attempt(socket.socket)
        told["fork"] = attempt(os.fork)
        told["exec"] = attempt(lambda: os.execv("/bin/true", ["true"]))
        told["kill"] = attempt(lambda: os.kill(victim, 0))
        told["kill all"] = attempt(lambda: os.kill(-1, 0))
        told["own"] = attempt(lambda: os.kill(os.getpid(), 0))
        told["unknown"] = raw(9999)
        told["thread"] = []
        thread = threading.Thread(target=lambda: told["thread"].append(attempt(socket.socket)))
        thread.start()
        thread.join()
    """)
    assert told["rows"][walls.CALLS][0]
    assert [told[n] for n in ("socket", "fork", "exec", "kill", "kill all")] == ["OSError"] * 5
    assert told["own"] == "None"
    assert told["unknown"] == [-1, 38]
    assert told["thread"] == ["OSError"]


def test_threads_that_were_there_before_are_reported_and_the_filter_binds_them() -> None:
    told = behind("""
        go, done = threading.Event(), threading.Event()
        def late():
            go.wait()
            told["file"], told["socket"] = attempt(lambda: open("/etc/passwd").close()), attempt(socket.socket)
            done.set()
        threading.Thread(target=late).start()
        enforce()
        go.set()
        done.wait()
    """)
    if landlock_abi() >= landlock.ALL_THREADS:
        assert (held(told, walls.FILES), told["file"]) == ([True], "PermissionError")
    else:
        assert held(told, walls.FILES, walls.NETWORK, walls.SCOPE, walls.PRIVILEGES) == [False] * 4
        assert told["file"] == "None"  # it is true
    if has_seccomp():
        assert (held(told, walls.CALLS), told["socket"]) == ([True], "OSError")


def test_the_environment_is_empty_and_not_in_memory_either() -> None:
    """In the mapped memory of the process there is no trace of the values, wherever they were kept."""
    # The pattern is put together at run time: its own text is in memory.
    scan = """
        import re
        maps = os.open("/proc/self/maps", os.O_RDONLY)
        os.environ["PUT_THERE_LATER"] = "-".join(("planted", "f" * 16))
        def found():
            text, pattern = b"", re.compile(b"planted" + b"-[0-9a-f]{16}")
            while piece := os.pread(maps, 1 << 16, len(text)):
                text += piece
            hits = 0
            for line in text.decode().splitlines():
                span, rights, *_ = line.split()
                if rights.startswith("rw") and "[v" not in line:
                    start, end = (int(n, 16) for n in span.split("-"))
                    hits += sum(1 for _ in pattern.finditer((ctypes.c_char * (end - start)).from_address(start)))
            return hits
        told["before"] = found()
        enforce(keep_fds=(channel, maps))
        told["after"], told["environ"] = found(), dict(os.environ)
        told["getenv"] = repr(ctypes.CDLL(None).getenv(b"SECRET_KEY"))
    """
    told = behind(scan, SECRET_KEY="planted-0123456789abcdef", JAX_PLATFORMS="cpu")
    assert told["before"] >= 2
    assert told["after"] == 0
    assert told["environ"] == {"JAX_PLATFORMS": "cpu"}
    assert told["getenv"] == "0"


def test_only_the_channel_stays_open() -> None:
    told = behind("""
        mine, high = os.open("/etc/passwd", os.O_RDONLY), os.dup2(1, 200)
        pipe = os.pipe()
        enforce()
        def is_open(fd):
            try:
                os.fstat(fd)
                return True
            except OSError:
                return False
        told["open"] = [fd for fd in range(300) if is_open(fd)]
        told["channel"] = channel
        told["standard"] = [os.fstat(fd).st_rdev for fd in (0, 1, 2)]
        told["read"] = attempt(lambda: os.read(0, 10))
    """)
    assert told["open"] == [0, 1, 2, told["channel"]]
    assert told["standard"] == [Path("/dev/null").stat().st_rdev] * 3
    assert told["read"] == "b''"


def test_memory_has_a_limit_that_honest_arrays_pass() -> None:
    told = behind("""
        enforce(memory_bytes=300_000_000)
        told["honest"] = attempt(lambda: len(bytearray(200_000_000)))
        told["too much"] = attempt(lambda: len(bytearray(900_000_000)))
        def grow():
            kept = []
            while True:
                kept.append(bytearray(10_000_000))
        told["grown"] = attempt(grow)
        import mmap
        told["shared"] = attempt(lambda: mmap.mmap(-1, 1 << 20).close())
        told["downwards"] = attempt(lambda: mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON | 0x100))
        told["private"] = attempt(lambda: mmap.mmap(-1, 1 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANON).close())
    """)
    assert (told["honest"], told["too much"], told["grown"]) == ("200000000", "MemoryError", "MemoryError")
    assert told["private"] == "None"
    if has_seccomp():  # what the limit does not count cannot be had
        assert (told["shared"], told["downwards"]) == ("OSError", "OSError")


def test_limits_cannot_be_raised_and_nothing_is_dumped() -> None:
    told = behind("""
        import resource
        enforce()
        told["core"], told["size"] = (resource.getrlimit(k) for k in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE))
        told["data"] = attempt(lambda: resource.setrlimit(resource.RLIMIT_DATA, (-1, -1)))
    """)
    assert told["core"] == told["size"] == [0, 0]
    assert told["data"] in ("OSError", "ValueError", "PermissionError")


@needs_root
def test_root_becomes_nobody_where_the_libraries_allow_it() -> None:
    told = behind("""
        walls.library_paths = lambda: (walls.Path("/usr/lib"), walls.Path("/usr/nothing-here"))
        enforce()
        told["ids"] = [os.getresuid(), os.getresgid(), os.getpid()]
        told["back"] = attempt(lambda: os.setresuid(0, 0, 0))
    """)
    uids, gids, pid = told["ids"]
    assert held(told, walls.ACCOUNT, walls.THREADS) == [True, True]
    assert len(set(uids)) == len(set(gids)) == 1
    assert uids[0] in (walls._LONE + pid, walls._NOBODY)
    assert told["back"] in ("OSError", "PermissionError")


@needs_root
def test_root_stays_root_without_capabilities_where_only_root_can_read(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    tmp_path.chmod(0o700)
    told = behind(f"""
        walls.library_paths = lambda: (walls.Path("/usr/lib"), walls.Path({str(tmp_path / "lib")!r}))
        status = os.open("/proc/self/status", os.O_RDONLY)
        enforce(keep_fds=(channel, status))
        told["status"] = os.pread(status, 9999, 0).decode()
        told["uid"] = os.getuid()
    """)
    assert told["uid"] == 0
    assert held(told, walls.ACCOUNT, walls.PRIVILEGES) == [False, True]
    assert "root only" in told["rows"][walls.ACCOUNT][1]
    for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
        assert re.search(rf"^{name}:\s+0+$", told["status"], re.M), name
    assert re.search(r"^NoNewPrivs:\s+1$", told["status"], re.M)


def test_a_worker_ends_with_its_parent() -> None:
    parent = """
import os, sys, time
pid = os.fork()
if pid:
    os.read(0, 1)
    os._exit(0)
from core.sandbox import walls
channel = os.dup(1)
walls.enforce(keep_fds=(channel,), memory_bytes=400_000_000)
os.write(channel, str(os.getpid()).encode())
while True:
    time.sleep(9)
"""
    env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    running = subprocess.Popen(
        [sys.executable, "-c", parent],
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert running.stdout is not None
    first = running.stdout.read(1)
    assert first.isdecimal()  # the worker is there
    try:
        # The pipe ends when the last process that holds it is gone: the worker.
        running.communicate("x", timeout=20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_a_function_that_is_not_there_is_an_oserror(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    """As on a system that is no Linux, and on one whose C library lacks it."""
    monkeypatch.setattr(libc, "_libc", lambda: object())
    monkeypatch.setattr(sys, "platform", platform)
    for action in (lambda: libc.prctl(38, 1), lambda: libc.call(444), libc.drop_capabilities, landlock.abi):
        with pytest.raises(OSError, match=r"prctl|syscall|capset|not implemented"):
            action()


def test_a_system_that_is_no_linux_is_reported_and_nothing_crashes() -> None:
    told = behind("""
        walls.library_paths()  # what it found is kept
        sys.platform = "darwin"
        del os.sched_getaffinity, os.setresuid
        walls._status = lambda *a: (_ for _ in ()).throw(FileNotFoundError(2, "No such file or directory"))
        filters.load = lambda: (_ for _ in ()).throw(OSError("Unable to find libseccomp"))
        enforce()
        told["file"] = attempt(lambda: open("/etc/passwd").close())
    """)
    names = (walls.FILES, walls.NETWORK, walls.SCOPE, walls.CALLS, walls.PRIVILEGES, walls.TRACING, walls.MEMORY)
    assert held(told, *names, walls.PARENT) == [False] * 8
    assert held(told, walls.ENVIRONMENT, walls.DESCRIPTORS, walls.DIRECTORY) == [True] * 3
    assert told["file"] == "None"
