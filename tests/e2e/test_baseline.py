"""A baseline in a real browser: recorded, saved, compared, broken, and refused."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

SLOW = 90_000


def panel(page: Page):
    return page.locator(".st-key-scan_baseline")


def compare(page: Page, file):
    panel(page).locator("input[type=file]").set_input_files(file)
    return page.locator(".st-key-scan_baseline_verdict")


def test_recorded_saved_compared_and_refused_when_it_is_damaged(open_page, tmp_path):
    page = open_page("/?step=kalman")
    panel(page).get_by_role("button", name="Record").click()
    save = panel(page).get_by_role("button", name="Save the baseline")
    expect(save).to_be_visible(timeout=SLOW)
    with page.expect_download() as download:
        save.click()
    file = tmp_path / "baseline.safetensors"
    download.value.save_as(file)
    verdict = compare(page, file)
    expect(verdict.get_by_text(re.compile("^Same"))).to_be_visible(timeout=SLOW)
    expect(verdict).to_contain_text("of the page Scan: step = kalman.")
    # One byte of one array.
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(bytes(data))
    expect(compare(page, broken)).to_contain_text("was changed after it was recorded", timeout=SLOW)
    # It says nothing of what stands on the page, and changes nothing there.
    assert "step=kalman" in page.url
    expect(compare(page, file).get_by_text(re.compile("^Same"))).to_be_visible(timeout=SLOW)
