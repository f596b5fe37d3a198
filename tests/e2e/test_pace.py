"""New sizes in a real browser: one session that asks for many waits, is told so, and goes on by itself; another does not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.serving import READY, Running, app

SLOW = 60_000
#: A step of an LSTM cell of a new size takes about 17 programs.
FEW = {"CARRY_LAB_COMPILE_BURST": "25", "CARRY_LAB_COMPILE_REFILL": "2", "CARRY_LAB_SPARES": "1"}


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that gives each session little to compile."""
    with app(tmp_path_factory.mktemp("pace") / "server.log", FEW) as started:
        yield started


def opened(browser: Browser, server: Running, query: str = "") -> Page:
    page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
    page.goto(f"http://127.0.0.1:{server.port}/lstm{query}")
    page.wait_for_selector(READY, timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)
    return page


def strip(page: Page):
    return page.locator(".cl-strip")


def hidden(page: Page, value: int) -> None:
    box = page.locator(".st-key-lstm_hidden_features input")
    box.fill(str(value))
    box.press("Enter")
    expect(page).to_have_url(re.compile(f"hidden={value}"), timeout=SLOW)


def shows(page: Page, value: int) -> None:
    expect(strip(page)).to_contain_text(f", {value}), output", timeout=SLOW)
    expect(strip(page)).to_contain_text("Contract kept", timeout=SLOW)


def test_a_stream_of_new_sizes_waits_and_goes_on_by_itself_and_others_do_not(browser: Browser, strict: Running) -> None:
    page, other = opened(browser, strict), opened(browser, strict)
    try:
        said = page.locator(".st-key-pace_waiting")
        hidden(page, 61)
        shows(page, 61)
        hidden(page, 62)
        expect(said.or_(strip(page).get_by_text(", 62), output")).first).to_be_visible(timeout=SLOW)
        hidden(page, 63)
        expect(said).to_contain_text("new ones are slowed", timeout=SLOW)
        expect(said).to_contain_text(re.compile(r"It runs in \d+ s"))
        expect(strip(page)).to_contain_text("Waiting")
        picture = Path(strict.log).with_name("waiting.png")
        page.screenshot(path=picture)
        # A later change takes its place; meanwhile somebody else has a size of their own at once.
        hidden(page, 64)
        expect(said).to_be_visible(timeout=SLOW)
        hidden(other, 65)
        shows(other, 65)
        expect(other.locator(".st-key-pace_waiting")).to_have_count(0)
        # Nobody touches anything.
        shows(page, 64)
        expect(said).to_have_count(0)
        # What is compiled runs at once.
        hidden(page, 61)
        shows(page, 61)
        assert "Traceback" not in strict.said
    finally:
        for one in (page, other):
            one.context.close()
