"""A server that is killed under an open page: the page finds the new one by itself, and nothing that was typed is lost."""

from __future__ import annotations

import re
import signal
import sys
from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.support.serving import ROOT, free_port, running

SLOW = 60_000


def started(port: int, log: Path):
    command = [sys.executable, str(ROOT / "deploy" / "run.py"), "--plain", "--port", str(port)]
    return running(command, port, log, {"CARRY_LAB_SPARES": "1"})


def test_what_is_typed_after_a_kill_is_kept_and_so_is_what_the_link_says(browser: Browser, tmp_path: Path) -> None:
    port = free_port()
    context = browser.new_context()
    page = context.new_page()
    box = page.locator(".st-key-lstm_batch input").first
    try:
        with started(port, tmp_path / "one.log") as one:
            page.goto(f"http://127.0.0.1:{port}/lstm?v=1&hidden=6&batch=3")
            expect(box).to_have_value("3", timeout=SLOW)
            box.fill("5")
            box.press("Enter")
            expect(page).to_have_url(re.compile("batch=5"), timeout=SLOW)
            one.end(signal.SIGKILL)
        with started(port, tmp_path / "two.log") as two:
            page.wait_for_selector("[data-testid=stApp][data-test-connection-state=CONNECTED]", timeout=SLOW)
            # The first thing that the new session hears.
            box.fill("7")
            box.press("Enter")
            expect(page).to_have_url(re.compile("batch=7"), timeout=SLOW)
            expect(box).to_have_value("7")
            assert "hidden=6" in page.url
            expect(page.locator(".cl-strip")).to_contain_text("Contract kept", timeout=SLOW)
            assert "Traceback" not in two.said
    finally:
        context.close()
