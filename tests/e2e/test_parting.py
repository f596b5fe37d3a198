"""The divergence finder in a real browser, its paths in real workers, 64 bits among them."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

SLOW = 60_000


def panel(page: Page):
    return page.locator(".st-key-scan_parting")


def test_a_chaotic_map_parts_in_64_bits_and_simplify_says_why(open_page):
    page = open_page("/?step=logistic_map")
    panel(page).get_by_role("button", name="float64", exact=True).click()
    panel(page).get_by_role("button", name="Find where the paths part").click()
    said = panel(page).get_by_text(re.compile(r"^They part at forward, carry, t = \d+: float32 \S+, float64 \S+\.$"))
    expect(said).to_be_visible(timeout=SLOW)
    head = panel(page).get_by_role("columnheader")
    expect(head).to_have_text(["stage", "Python loop", "jit", "float64"], timeout=SLOW)
    panel(page).get_by_role("button", name="Simplify").click()
    found = panel(page).get_by_text("It appears when the length T is put back, and with that alone.")
    expect(found).to_be_visible(timeout=SLOW)
    expect(panel(page).get_by_role("button", name="Cancel")).to_have_count(0, timeout=SLOW)
    expect(panel(page).get_by_role("button", name="Find where the paths part")).to_be_enabled()


def test_while_paths_run_the_page_can_be_used_and_the_run_called_off(open_page):
    # A layer of many steps: a preset's paths may all have run before a finger is on Cancel.
    page = open_page("/sequence?v=1&T=192")
    layer = page.locator(".st-key-sequence_parting")
    for name in ("padded", "unrolled", "float64"):
        layer.get_by_role("button", name=name, exact=True).click()
    layer.get_by_role("button", name="Find where the paths part").click()
    layer.get_by_role("button", name="Cancel").click()
    expect(layer.get_by_text(re.compile(r": cancelled\.$")).first).to_be_visible(timeout=SLOW)
    expect(layer.get_by_role("button", name="Find where the paths part")).to_be_enabled(timeout=SLOW)
