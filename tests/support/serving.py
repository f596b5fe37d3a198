"""Starts the app, and HAProxy before it, as a person would; with all they write in files."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 120
#: How Streamlit says that the script has run to its end and nothing more is to come.
READY = "[data-testid=stApp][data-test-script-state=notRunning]"
#: Whether a test itself failed, so that its fixtures can leave pictures.
FAILED = pytest.StashKey[bool]()
NO_HAPROXY = "No haproxy: run `make proxy`, or install it (Debian: apt-get install haproxy)."


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def get(port: int, path: str, headers: Mapping[str, str] | None = None, method: str = "GET", body: bytes = b""):
    """The answer to a request to this machine: status, headers, body."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request(method, path, body or None, dict(headers or {}))
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def healthy(port: int) -> bool:
    """Whether an app (or a proxy with one behind it) answers on that port."""
    try:
        return get(port, "/_stcore/health")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def listens(port: int) -> bool:
    """Whether anybody accepts connections there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def wait_until(holds: Callable[[], bool], seconds: float) -> bool:
    """Waits until it holds, at most so long; whether it does."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


@dataclass
class Running:
    """A process that serves, its port and what it writes."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def said(self) -> str:
        """All it wrote so far."""
        return self.log.read_text(errors="replace")

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Ends it, with all that it started."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without what of whoever runs the tests would decide how the app starts."""
    strange = ("STREAMLIT_", "CARRY_LAB_")
    return {k: v for k, v in os.environ.items() if k != "HOST" and not k.startswith(strange)} | dict(more or {})


@contextmanager
def running(
    command: list[str],
    port: int,
    log: Path,
    more: Mapping[str, str] | None = None,
    ready: Callable[[], bool] | None = None,
) -> Iterator[Running]:
    """A process that serves on that port, once it does; ended in the end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment(more),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    started = Running(process, port, log)
    answers = ready or (lambda: healthy(port))
    try:
        there = wait_until(lambda: process.poll() is not None or answers(), START_SECONDS)
        if not there or process.poll() is not None:
            pytest.fail(f"it did not start:\n{started.said}")
        yield started
    finally:
        started.end()


@contextmanager
def app(log: Path, more: Mapping[str, str] | None = None) -> Iterator[Running]:
    """The app by its launcher, ready for people."""
    port = free_port()
    command = [sys.executable, str(ROOT / "deploy" / "run.py"), "--plain", "--port", str(port)]
    with running(command, port, log, more) as started:
        yield started


def haproxy() -> str:
    """The program; where there is none, CI fails and a desk is told why these tests are skipped."""
    found = shutil.which("haproxy", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(NO_HAPROXY)
    return found


def proxy_files(folder: Path, ports: list[int]) -> list[str]:
    """Options of haproxy for our configuration before replicas on these ports of this machine."""
    lines = "\n".join(f"    server replica{i} 127.0.0.1:{port}" for i, port in enumerate(ports, 1))
    replicas = folder / "replicas.cfg"
    replicas.write_text(f"backend replicas from carry_lab\n{lines}\n")
    return ["-f", str(ROOT / "deploy" / "proxy" / "haproxy.cfg"), "-f", str(replicas)]


@contextmanager
def proxy(folder: Path, ports: list[int], more: Mapping[str, str] | None = None) -> Iterator[Running]:
    """HAProxy with our configuration before the apps on these ports."""
    port = free_port()
    settings = {"CARRY_LAB_HTTP": f"127.0.0.1:{port}", "CARRY_LAB_COOKIE_KEY": "a key for this test"} | dict(more or {})
    command = [haproxy(), "-db", *proxy_files(folder, ports)]
    with running(command, port, folder / "proxy.log", settings, lambda: listens(port)) as started:
        yield started
