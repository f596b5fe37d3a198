"""Workers that die, hang or cannot be made: the person is told, the others notice nothing, nothing stays behind."""

from __future__ import annotations

import re
import signal
import sys
import time
from pathlib import Path

import psutil
import pytest
from playwright.sync_api import Browser, Page, expect

from core.doctor.link import pack
from tests.support.serving import ROOT, Running, free_port, running, wait_until

SLOW = 60_000
ENDLESS = "import jax.numpy as jnp\n\ntotal = 0\nwhile True:\n    total += 1\n"
#: One call into compiled code that gives Python no turn for a minute.
NATIVE = "import jax.numpy as jnp\n\na = jnp.ones((5000, 5000))\nfor _ in range(1000):\n    a = a @ a\nprint(a[0, 0])\n"
#: What the strip says when a job is over that cannot end by itself.
OVER = re.compile("The worker broke off|Over a limit|stopped", re.I)
CLEAN = "import jax\nimport jax.numpy as jnp\n\nprint(jax.lax.scan(lambda c, x: (c + x, c), 0.0, jnp.ones(3)))\n"


@pytest.fixture
def page(browser: Browser):
    """A tab of somebody's own."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


def run(page: Page, served: Running, script: str) -> None:
    """Opens the Doctor with a script, and runs it."""
    page.goto(f"http://127.0.0.1:{served.port}/doctor?v=1&s={pack(script)}")
    page.locator(".st-key-doctor_run button").click(timeout=SLOW)


def strip(page: Page):
    return page.locator(".st-key-verdict")


def workers(served: Running) -> list[psutil.Process]:
    return psutil.Process(served.process.pid).children(recursive=True)


def busy(served: Running) -> list[psutil.Process]:
    """The workers that compute now: the script's, and whichever is made ready beside it."""
    before = {one.pid: sum(one.cpu_times()[:2]) for one in workers(served)}
    time.sleep(0.5)
    return [one for one in workers(served) if sum(one.cpu_times()[:2]) - before.get(one.pid, 0.0) > 0.1]


def test_a_worker_that_is_killed_in_the_middle_of_a_job_is_replaced(page: Page, served: Running) -> None:
    # On a busy machine the five seconds may be over before they are seen: then once more.
    for _ in range(5):
        run(page, served, ENDLESS)
        expect(strip(page)).to_contain_text("s of 5", timeout=SLOW)
        for one in busy(served):
            one.kill()
        expect(strip(page)).to_contain_text(OVER, timeout=SLOW)
        if "The worker broke off" in strip(page).inner_text():
            break
    expect(strip(page)).to_contain_text("The worker broke off", timeout=SLOW)
    expect(page.locator("[data-testid=stException]")).to_have_count(0)
    # The same person, at once: a new worker, and the script is still there.
    run(page, served, CLEAN)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)


def test_a_worker_that_hangs_in_native_code_is_stopped_and_others_go_on(
    page: Page, browser: Browser, served: Running
) -> None:
    run(page, served, NATIVE)
    expect(strip(page)).to_contain_text("Running", timeout=SLOW)
    context = browser.new_context()
    other = context.new_page()
    run(other, served, CLEAN)
    expect(strip(other)).to_contain_text("Contract kept", timeout=SLOW)
    context.close()
    expect(strip(page)).to_contain_text(re.compile("Over a limit|stopped", re.I), timeout=SLOW)
    expect(page.locator("[data-testid=stException]")).to_have_count(0)


@pytest.mark.faults
def test_every_worker_killed_at_once_and_the_next_person_is_served(page: Page, served: Running) -> None:
    for one in workers(served):
        one.kill()
    run(page, served, CLEAN)
    expect(strip(page)).to_contain_text(re.compile("Contract kept|broke off"), timeout=SLOW)
    run(page, served, CLEAN)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_that_ends_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    port = free_port()
    command = [sys.executable, str(ROOT / "deploy" / "run.py"), "--plain", "--port", str(port)]
    with running(command, port, tmp_path / "app.log", {"CARRY_LAB_SPARES": "2"}) as app:
        assert wait_until(lambda: len(psutil.Process(app.process.pid).children(recursive=True)) >= 2, 30)
        below = psutil.Process(app.process.pid).children(recursive=True)
        app.end(how)
    assert wait_until(lambda: not any(one.is_running() and one.status() != psutil.STATUS_ZOMBIE for one in below), 15)
