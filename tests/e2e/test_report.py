"""The contract report in a real browser, made in a real worker: its table, its files, and what is declared."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from core.report.as_json import read_json
from core.report.model import Name, Status

SLOW = 90_000


def dialog(page: Page, key: str = "scan"):
    """The dialog, opened from the menu."""
    page.locator(f".st-key-{key}_export button").first.click()
    page.get_by_role("button", name="Report", exact=True).last.click()
    found = page.get_by_role("dialog", name="Contract report")
    expect(found).to_be_visible()
    return found


def taken(page: Page, name: str) -> bytes:
    with page.expect_download() as info:
        page.get_by_role("button", name=name).last.click()
    return info.value.path().read_bytes()


def test_a_declared_range_is_checked_and_the_files_say_so(open_page):
    page = open_page("/?x=1%2C+2.5%2C+-4")
    box = dialog(page)
    box.get_by_text("What the data should be (optional)").click()
    box.get_by_label("Lowest value").fill("0")
    box.get_by_label("Lowest value").press("Tab")
    box.get_by_label("Axis order").fill("TT")
    box.get_by_label("Axis order").press("Tab")
    box.get_by_role("button", name="Make the report").click()
    expect(box.get_by_text("Use each of the letters T, B, F, H once at most")).to_be_visible(timeout=SLOW)
    box.get_by_label("Axis order").fill("T")
    box.get_by_label("Axis order").press("Tab")
    box.get_by_role("button", name="Make the report").click()
    said = box.get_by_text(re.compile(r"1 of 15 criteria failed: Every value lies in the declared range\."))
    expect(said).to_be_visible(timeout=SLOW)
    expect(box.get_by_role("heading", name="What this does not prove")).to_be_visible()
    report = read_json(taken(page, "Report (.json)"))
    assert report[Name.RANGE].status is Status.FAIL
    assert report[Name.RANGE].number == 1
    assert report.contract.axes == "T"
    assert report.negatives
    assert report.inputs[0].values is None
    text = taken(page, "Report (.md)").decode()
    assert text.startswith("# Contract report: A scan: Running sum\n\n**FAIL**")
    assert "1, 2.5" not in text


def test_it_can_be_called_off_and_fits_a_phone(open_page):
    page = open_page("/lstm", width=360, height=740)
    box = dialog(page, "lstm")
    box.get_by_role("button", name="Make the report").click()
    box.get_by_role("button", name="Cancel").click()
    expect(box.get_by_text("Cancelled.")).to_be_visible(timeout=SLOW)
    expect(box.get_by_role("button", name="Cancel")).to_have_count(0)
    box.get_by_role("button", name="Make the report").click()
    expect(box.get_by_role("columnheader", name="Criterion")).to_be_visible(timeout=SLOW)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
