"""The status page in a browser: numbers that move, walls once a worker is there, and no fault of access."""

from __future__ import annotations

import re

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

SLOW = 60_000
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], "resultTypes": ["violations"]}
#: What Streamlit's own navigation renders against a rule (tests/e2e/test_access.py says why).
STREAMLITS = {"list", "listitem"}


def test_the_numbers_move_and_the_walls_stand(open_page):
    open_page("/lstm")
    page = open_page("/status")
    strip = page.locator(".st-key-verdict")
    expect(strip).to_contain_text(re.compile(r"In order|Not in order"))
    expect(strip).to_contain_text(re.compile(r"[1-9]\d* sessions? open"))
    row = page.locator("tr", has=page.get_by_role("rowheader", name="lstm", exact=True))
    expect(row.first).to_be_visible()
    again = page.get_by_role("button", name="Look again")
    for _ in range(40):
        if page.locator(".st-key-status_walls tbody tr").count():
            break
        again.click()
        page.wait_for_timeout(1_000)
    walls = page.locator(".st-key-status_walls tbody tr")
    expect(walls.first).to_be_visible(timeout=SLOW)
    assert walls.count() == 14
    expect(page.locator(".st-key-status_limits")).to_contain_text("worker_memory")


def test_axe_finds_no_fault_in_light_or_dark(open_page):
    for scheme in ("light", "dark"):
        page = open_page("/status", scheme=scheme)
        found = Axe().run(page, options=RULES).response["violations"]
        assert [rule["id"] for rule in found if rule["id"] not in STREAMLITS] == []


def test_it_fits_a_phone(open_page):
    page = open_page("/status", width=360)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
