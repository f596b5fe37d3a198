"""As a host of Streamlit apps runs it: what is committed, plain `streamlit run app.py`, no bundle, no lifespan, one worker."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.bench.memory import Memory, children
from tests.support.serving import READY, ROOT, Running, free_port, running

SLOW = 90_000
#: What such a host has of us and what it does not: everything that is built is missing.
TAKEN = ("app.py", "core", "pages", ".streamlit")
BUILT = shutil.ignore_patterns("dist", "node_modules", "__pycache__")
#: What the table of limits gives a machine with 1 GB (`core.base.limits`); here there is more.
ONE_WORKER = dict.fromkeys(("CARRY_LAB_WORKERS", "CARRY_LAB_SPARES", "CARRY_LAB_RUNNING"), "1")
BROKEN_SUM = """import jax
import jax.numpy as jnp

def add(total, x):
    total = total + x
    return total, total

final, ys = jax.lax.scan(add, jnp.int32(0), jnp.array([0.5, 1.5]))
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("cloud")
    for name in TAKEN:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=BUILT)
        else:
            shutil.copy(source, folder / name)
    port = free_port()
    program = Path(sys.executable).with_name("streamlit")
    command = [str(program), "run", str(folder / "app.py"), "--server.port", str(port)]
    with running(command, port, folder / "host.log", {"PYTHONPATH": str(folder)} | ONE_WORKER) as started:
        yield started


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    context.set_default_timeout(SLOW)
    yield context.new_page()
    context.close()


def test_the_first_visitor_sees_a_run_scan(host: Running, page: Page) -> None:
    page.goto(f"http://127.0.0.1:{host.port}/")
    expect(page.locator(".js-plotly-plot .main-svg").first).to_be_visible(timeout=SLOW)
    assert "Traceback" not in host.said


def test_the_doctor_takes_a_script_in_a_text_area_and_finds_the_fault(host: Running, page: Page) -> None:
    page.goto(f"http://127.0.0.1:{host.port}/doctor")
    page.wait_for_selector(READY)
    expect(page.get_by_text("This is a plain text area: the editor was not built")).to_be_visible(timeout=SLOW)
    assert page.locator(".cm-content").count() == 0
    area = page.locator(".st-key-doctor_code textarea, [class*=st-key-doctor_code] textarea").first
    area.fill(BROKEN_SUM)
    area.blur()
    page.get_by_role("button", name="Run", exact=False).first.click()
    expect(page.locator(".st-key-violations")).to_contain_text("S104", timeout=SLOW)
    below = children(host.process.pid)
    assert len(below) <= 3  # the fork server, one worker, and for a moment the one who fills its programs
    assert max(Memory(pid).rss() for pid in below) < 400
    assert Memory(host.process.pid).rss() < 600
    assert "Traceback" not in host.said
