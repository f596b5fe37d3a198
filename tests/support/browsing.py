"""One Chromium for all tests of a process, and whether a test failed, for the fixtures that leave pictures.

One, because Playwright's synchronous face runs a loop in its thread for as long as it lives: a second one beside it is
refused, and so is `asyncio.run` (`tests.support.loop.run_apart`).
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.support.serving import FAILED

CHROMIUM_FLAGS = [
    # As root there is no sandbox, and there is no GPU here; the others keep the browser's own business off the network.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NO_BROWSER = "No Chromium: run `make browser` (it says what can be done). The browser tests never pass without one."


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remembers whether the test itself failed."""
    report = yield
    if call.when == "call":
        item.stash[FAILED] = report.failed
    return report


def _starts(executable: str) -> bool:
    """Whether that browser really starts: a package may be an empty hull."""
    if not Path(executable).exists():
        return False
    return subprocess.run([executable, "--version"], capture_output=True, timeout=60, check=False).returncode == 0


def _chromium(playwright: Playwright) -> str:
    """The browser to use: `chromium` on PATH, else Playwright's own; `make browser` sees to it that there is one."""
    for candidate in (shutil.which("chromium"), playwright.chromium.executable_path):
        if candidate is not None and _starts(candidate):
            return candidate
    pytest.fail(NO_BROWSER)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One Chromium for the session."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=_chromium(playwright), args=CHROMIUM_FLAGS)
        yield started
        started.close()
