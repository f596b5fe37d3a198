"""The running app and a real browser for the journeys.

The app is started once, by the same launcher that `make run` uses. A test asks for `open_page`, which gives a loaded
page; what must hold after every test is checked here: no exception in the server's log, none on a page, no script error
in the browser, and no request to anywhere but the app (a class without internet must work).

All tests of this folder run on one worker, one after the other, beside the other tests (tests/conftest.py).
"""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page

from tests.support.serving import FAILED

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "test-results" / "e2e"
START_SECONDS = 90
READY_MS = 60_000
#: How Streamlit says that the script has run to its end and nothing more is to come.
READY = "[data-testid=stApp][data-test-script-state=notRunning]"
NO_SKELETON = "() => !document.querySelector('[data-testid=stSkeleton]')"


@dataclass(frozen=True)
class Server:
    """The running app."""

    url: str
    log: Path

    def told_since(self, offset: int) -> str:
        """What it logged after the first `offset` bytes."""
        return self.log.read_bytes()[offset:].decode(errors="replace")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _healthy(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
    try:
        connection.request("GET", "/_stcore/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """The app, started by the launcher on a free port, with its output in a file."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    port, log = _free_port(), RESULTS / "server.log"
    # HOST and Streamlit's own variables of whoever runs the tests must not decide how the app is started.
    environment = {k: v for k, v in os.environ.items() if k != "HOST" and not k.startswith("STREAMLIT_")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "deploy" / "run.py"), "--port", str(port)],
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _healthy(port):
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"the app did not start:\n{log.read_text(errors='replace')}")
            time.sleep(0.1)
        yield Server(f"http://127.0.0.1:{port}", log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_ready(page: Page) -> None:
    page.wait_for_selector(READY, timeout=READY_MS)
    # The script is done before the browser has fetched the code of every kind of widget: grey bars stand in for them.
    page.wait_for_function(NO_SKELETON, timeout=READY_MS)


@pytest.fixture
def wait_ready() -> Callable[[Page], None]:
    """Waits until the script of a page has run to its end and every widget is drawn. After an action, wait on what should change instead."""
    return _wait_ready


@dataclass
class Opened:
    """A page that a test opened, and what went wrong in it unseen."""

    context: BrowserContext
    page: Page
    errors: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)


class OpenPage(Protocol):
    """Opens a page of the app in a browser context of its own: a session that shares nothing."""

    def __call__(
        self,
        path: str = "/",
        *,
        width: int = 1280,
        height: int = 900,
        scheme: str = "light",
        reduced_motion: bool = False,
        wait: bool = True,
    ) -> Page:
        """The page, its script run to the end unless `wait` is False; `scheme` is light or dark, as a system says it."""


def _is_stranger(url: str, server: Server) -> bool:
    parts = urlsplit(url)
    return parts.scheme in {"http", "https", "ws", "wss"} and parts.netloc != urlsplit(server.url).netloc


def _exceptions(page: Page) -> Locator:
    return page.locator("[data-testid=stException]")


@pytest.fixture
def open_page(request: pytest.FixtureRequest, server: Server, browser: Browser) -> Iterator[OpenPage]:
    """Opens pages; afterwards looks into each of them and into the server's log."""
    opened: list[Opened] = []
    logged = server.log.stat().st_size

    def open_one(
        path: str = "/",
        *,
        width: int = 1280,
        height: int = 900,
        scheme: str = "light",
        reduced_motion: bool = False,
        wait: bool = True,
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            reduced_motion="reduce" if reduced_motion else "no-preference",
        )
        one = Opened(context, context.new_page())
        opened.append(one)
        one.page.on("pageerror", lambda error: one.errors.append(str(error)))
        one.page.on(
            "request", lambda asked: one.strangers.append(asked.url) if _is_stranger(asked.url, server) else None
        )
        one.page.goto(server.url + path)
        if wait:
            _wait_ready(one.page)
        return one.page

    yield open_one

    problems: list[str] = []
    for one in opened:
        if not one.page.is_closed():
            shown = _exceptions(one.page).all_inner_texts()
            problems += [f"exception on {one.page.url}: {text}" for text in shown]
        problems += [f"script error on {one.page.url}: {text}" for text in one.errors]
        problems += [f"request to elsewhere: {url}" for url in one.strangers]
    told = server.told_since(logged)
    if "Traceback" in told or "Uncaught" in told:
        problems.append("the server logged an exception")
    failed = request.node.stash.get(FAILED, False)
    if failed or problems:
        name = re.sub(r"[^\w.-]+", "-", request.node.name)
        for number, one in enumerate(opened):
            if not one.page.is_closed():
                picture = RESULTS / f"{name}-{number}.png"
                one.page.screenshot(path=picture, full_page=True)
                print(f"screenshot: {picture}")
        print(f"server log since the test began:\n{told or '(nothing)'}")
    for one in opened:
        one.context.close()
    if problems:
        pytest.fail("\n".join(problems), pytrace=False)
